"""Turns `map(f).batch(n)` into `batch(n).map(f)`, after comparing both on the program's own data.

A function of one element may also work on a batch, because its operations broadcast; otherwise `tf.vectorized_map`
makes one that does. Neither is trusted: both forms run on two batches, as they are and with some rows changed, and
every value must agree. Rows are changed because a function of the whole batch (its largest value, for example) may
agree by chance on rows that are alike.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flatout.model.errors import Internal
from flatout.observe import stages
from flatout.pipeline import recipes

BATCHES = 2
TOLERANCE = 1e-5
MAPS = ("Map", "ParallelMap")
UNTOUCHED = ("random", "lookup table")
"""State that each iterator has for itself, or that is only read."""


class Unlike(Internal):
    """The two forms do not agree, or cannot be compared."""


@dataclass(frozen=True)
class LateBatch:
    """Maps, first to last, and the batch behind them."""

    maps: tuple[Any, ...]
    batch: Any

    @property
    def source(self) -> Any:
        return recipes.upstream(self.maps[0])[0]


def late_batches(dataset: Any) -> list[LateBatch]:
    found = []
    line = list(recipes.main_line(dataset))
    for position, stage in enumerate(line):
        recipe = recipes.recipe_of(stage)
        if recipe is None or recipe.method != "batch" or not stages.setting(stage, "_batch_size"):
            continue
        maps: list[Any] = []
        for before in line[position + 1 :]:
            made = recipes.recipe_of(before)
            if made is None or made.method != "map" or stages.kind(before) not in MAPS or stages.states(before):
                break
            maps.insert(0, before)
        if maps:
            found.append(LateBatch(tuple(maps), stage))
    return found


def vectorized(late: LateBatch, again: bool = False) -> tuple[Any, bool]:
    """The dataset that takes the place of the batch, and whether it agrees to the bit. Raises `Unlike`."""
    known: Any = getattr(late.batch, "_flatout_vectorized", None)  # several pipelines may have the stage in common
    if known is None:
        # The first map may have no form for batches (decoding an image), and those behind it have one.
        for first in range(len(late.maps)):
            try:
                known = compared(LateBatch(late.maps[first:], late.batch), again)
                break
            except Unlike as unlike:
                known = unlike
        late.batch._flatout_vectorized = known
    if isinstance(known, Unlike):
        raise known
    dataset, exact = known
    return dataset, exact


def compared(late: LateBatch, again: bool = False) -> tuple[Any, bool]:
    """As `vectorized`, for all maps at once. `again`: code that the program could notice may run once more for it."""
    try:
        held = _first_batches(late, again)
    except Exception as error:
        raise Unlike(_said(error)) from None
    failures = []
    for whole in (_as_it_stands, _vectorized):
        functions = [whole(_arguments(stage)["map_func"]) for stage in late.maps]
        try:
            agreed = [_agree(late, functions, rows) for batch in held for rows in (batch, _changed(batch))]
            result = _rebuilt(late, late.source, functions)
            result._flatout_form = "" if whole is _as_it_stands else "vectorized"  # as the edit of the source has it
            return result, all(agreed)
        except Exception as error:
            failures.append(_said(error))
    raise Unlike("; ".join(dict.fromkeys(failures)))


def _said(error: Exception) -> str:
    """The line of an error that says what is wrong: the last part, where TensorFlow repeats the user's code first."""
    text = str(error)
    parts = text.split("\n\n") if "in user code" in text else text.splitlines()
    said = next((part.strip() for part in reversed(parts) if part.strip()), type(error).__name__)
    return said.partition("\n")[0][:150]


def _arguments(stage: Any) -> dict[str, Any]:
    recipe = recipes.recipe_of(stage)
    return recipe.arguments if recipe is not None else {}


def _as_it_stands(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


def _vectorized(function: Callable[..., Any]) -> Callable[..., Any]:
    import tensorflow as tf

    def whole(*elements: Any) -> Any:
        def one(packed: Any) -> Any:
            return function(*packed)

        return tf.vectorized_map(one, elements, fallback_to_while_loop=False)

    return whole


def _rebuilt(late: LateBatch, source: Any, functions: list[Callable[..., Any]]) -> Any:
    dataset = recipes.replay(late.batch, {id(recipes.upstream(late.batch)[0]): source})
    for stage, function in zip(late.maps, functions, strict=True):
        dataset = recipes.stands_for(dataset.map(**{**_arguments(stage), "map_func": function}), stage)
    return dataset


def _first_batches(late: LateBatch, again: bool) -> list[Any]:
    """Batches of what enters the maps. Nothing that the program could notice runs once more, unless it may."""

    def aside(stage: Any) -> Any:
        """Without shuffles and caches: they remember who has read them."""
        if stages.kind(stage) in ("Shuffle", "Cache", "Repeat", "Prefetch"):
            return recipes.rebuild(recipes.upstream(stage)[0], aside)
        return None

    for stage, _ in stages.chain(late.source):
        touched = [state for state in stages.every_state(stage) if state not in UNTOUCHED]
        if touched and not again:
            raise Unlike(f"{stages.location(stage)} ({touched[0]}) would have to run once more to compare")
    upstream = recipes.rebuild(late.source, aside)
    size = stages.setting(late.batch, "_batch_size")
    batches = list(upstream.batch(size).take(BATCHES))
    if not batches:
        raise Unlike("there are no elements to compare")
    return batches


def _changed(batch: Any) -> Any:
    """The batch without its last row, as the last batch may be smaller, and every other row unlike its neighbours."""
    import tensorflow as tf

    def change(tensor: Any) -> Any:
        tensor = tensor[: max(int(tensor.shape[0]) - 1, 1)]
        if not (tensor.dtype.is_floating or tensor.dtype.is_integer):
            return tensor
        rows = tf.range(tf.shape(tensor)[0])
        odd = tf.reshape(rows % 2 == 1, tf.concat([[-1], tf.ones(tf.rank(tensor) - 1, tf.int32)], 0))
        return tf.where(odd, tensor // 2 if tensor.dtype.is_integer else tensor * 0.5, tensor)

    return tf.nest.map_structure(change, batch)


def _agree(late: LateBatch, functions: list[Callable[..., Any]], batch: Any) -> bool:
    """Whether both forms give the same for one batch, to the bit; raises `Unlike` where they do not even nearly."""
    import tensorflow as tf

    rows = tf.data.Dataset.from_tensor_slices(batch)
    for stage in late.maps:
        rows = recipes.replay_once(stage, {id(recipes.upstream(stage)[0]): rows})
    size = int(tf.shape(tf.nest.flatten(batch)[0])[0])
    one_by_one = next(iter(rows.batch(size)))
    whole = tf.data.Dataset.from_tensors(batch)
    for function in functions:
        whole = whole.map(function)
    at_once = next(iter(whole))
    tf.nest.assert_same_structure(one_by_one, at_once)
    pairs = zip(tf.nest.flatten(one_by_one), tf.nest.flatten(at_once), strict=True)
    agreed = [_same(expected, found) for expected, found in pairs]
    return all(agreed)


def _same(expected: Any, found: Any) -> bool:
    import numpy as np

    if expected.dtype != found.dtype or expected.shape != found.shape:
        raise Unlike(f"{expected.dtype.name}{expected.shape} becomes {found.dtype.name}{found.shape}")
    before, after = expected._numpy(), found._numpy()
    if before.tobytes() == after.tobytes() if before.dtype != object else np.array_equal(before, after):
        return True
    if not expected.dtype.is_floating or not np.allclose(before, after, rtol=TOLERANCE, atol=0, equal_nan=True):
        raise Unlike("the values differ")
    return False
