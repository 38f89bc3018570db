"""Remembers how datasets are made, so that a stage can be replaced and those behind it be made anew.

Every public method that makes a dataset of another one is wrapped once: the result remembers its input, the method and
the arguments. `rebuild` replays only what comes behind a change, with the program's own arguments. Replaying has no
effect that the program could see: functions that were traced are used again, not traced anew; a shuffle keeps the
seeds that it has drawn; and nothing is taken from the sequences of random numbers. For datasets that existed before,
the call is read from the stage itself (`stage_calls`). A dataset that was made in another way is an opaque source:
nothing before it can be changed.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import random
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from flatout.model.errors import Internal
from flatout.observe import stages
from flatout.observe.private_names import DATASET_METHODS, Missing, patch, resolve
from flatout.pipeline import stage_calls

Change = Callable[[Any], Any]
"""Given a stage: the dataset that takes its place, or None to leave it and look further upstream."""


CONSTRUCTORS = ("TFRecordDataset",)
"""Makers of datasets in `tf.data` that take another dataset first, of file names."""


class Opaque(Internal):
    """A stage stands behind the change that nobody knows how to make again."""


@dataclass(frozen=True)
class Recipe:
    """The call that made a dataset: `source.method(*args, **kwargs)`."""

    source: Any
    method: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    @functools.cached_property
    def arguments(self) -> dict[str, Any]:
        """All arguments by name, without `self`."""
        bound = inspect.signature(_method(self.method)).bind(self.source, *self.args, **self.kwargs)
        return dict(list(bound.arguments.items())[1:])


class _Replay(threading.local):
    stage: Any = None
    """The stage that is being made again on this thread."""


_replay = _Replay()


def install() -> None:
    """Begin to remember; called by whatever rewrites pipelines."""
    if getattr(resolve("dataset-seed")[2], "of_flatout", False):
        return
    for name in DATASET_METHODS:
        with contextlib.suppress(Missing):
            patch(f"dataset-{name.replace('_', '-')}", functools.partial(_remembering, name))
    patch("dataset-function", _reusing_functions)
    patch("dataset-seed", _reusing_seeds)


def recipe_of(dataset: Any) -> Recipe | None:
    found = _remembered(dataset)
    if found is None and (call := stage_calls.call_of(dataset)) is not None:
        found = dataset._flatout_recipe = Recipe(stage_calls.source_of(dataset), call[0], (), call[1])
    return found


def _remembered(dataset: Any) -> Recipe | None:
    found = getattr(dataset, "_flatout_recipe", None)
    return found if isinstance(found, Recipe) else None


def upstream(dataset: Any) -> list[Any]:
    """The datasets that a stage was made from, as the program sees them."""
    recipe = recipe_of(dataset)
    if recipe is None:
        return [stages.plain(item) for item in dataset._inputs()]
    others = [item for item in (*recipe.args, *recipe.kwargs.values()) if _is_dataset(item)]
    return [stages.plain(item) for item in (recipe.source, *others)]


def _is_dataset(value: Any) -> bool:
    """A class may stand among the arguments: `flat_map(tf.data.TFRecordDataset)`."""
    return hasattr(value, "_variant_tensor") and not isinstance(value, type)


def main_line(dataset: Any) -> Iterator[Any]:
    """The stages from the last to the first, along the first input of each."""
    current = stages.plain(dataset)
    for _ in range(stages.MOST_STAGES):
        yield current
        inputs = upstream(current)
        if not inputs:
            return
        current = inputs[0]


def rebuild(dataset: Any, change: Change) -> Any:
    """The dataset with the change made; the very same object where nothing was changed. A stage that several branches
    have in common is made again once."""
    done: dict[int, Any] = {}

    def rebuilt(stage: Any) -> Any:
        if id(stage) not in done:
            done[id(stage)] = made(stage)
        return done[id(stage)]

    def made(stage: Any) -> Any:
        replaced = change(stage)
        if replaced is not None:
            return replaced
        inputs = {id(before): rebuilt(before) for before in upstream(stage)}
        if all(inputs[id(before)] is before for before in upstream(stage)):
            return stage
        return replay(stage, inputs)

    return rebuilt(stages.plain(dataset))


def exchange(before: Any, after: Any) -> Change:
    """The change of one stage."""
    return lambda stage: after if stage is before else None


def replay(stage: Any, inputs: Mapping[int, Any], arguments: Mapping[str, Any] | None = None) -> Any:
    """Make a stage again on other inputs, given by the id of those it had, and with some arguments changed.

    Pipelines that share a stage share what it becomes, too: a shuffle goes on where another pipeline has left it.
    """
    made: dict[Any, Any] = stage.__dict__.setdefault("_flatout_replayed", {})
    key = (*((before, id(after)) for before, after in inputs.items()), *(arguments or {}).items())
    if key not in made:
        made[key] = replay_once(stage, inputs, arguments)
    return made[key]


Replay = Callable[[Any, Mapping[int, Any], Mapping[str, Any] | None], Any]
"""`replay` or `replay_once`."""


def replay_once(stage: Any, inputs: Mapping[int, Any], arguments: Mapping[str, Any] | None = None) -> Any:
    """As `replay`, for nobody else to share."""

    def swap(value: Any) -> Any:
        return inputs.get(id(stages.plain(value)), value)

    recipe = recipe_of(stage)
    with _replaying(stage):
        if recipe is not None and arguments:
            named = {name: swap(value) for name, value in {**recipe.arguments, **arguments}.items()}
            result = _method(recipe.method)(swap(recipe.source), **named)
        elif recipe is not None:
            named = {name: swap(value) for name, value in recipe.kwargs.items()}
            result = _method(recipe.method)(swap(recipe.source), *map(swap, recipe.args), **named)
        elif stages.kind(stage) == "Zip":
            result = _zipped(stage, swap)
        else:
            raise Opaque(f"nobody knows how {stages.location(stage)} ({stages.kind(stage)}) was made")
    return stands_for(result, stage)


def stands_for(dataset: Any, stage: Any) -> Any:
    """Let a new stage be known under the user's line of the one that it replaces."""
    for name in ("_flatout_where", "_flatout_by", "_flatout_maker"):
        if hasattr(stage, name):
            setattr(dataset, name, getattr(stage, name))
    return dataset


@contextlib.contextmanager
def without_draws() -> Iterator[None]:
    """Whatever is drawn inside, the program's next random numbers are those that it would have drawn."""
    import numpy
    from tensorflow.python.eager import context

    seeds: Any = getattr(context.context(), "_rng", None)
    drawn = seeds.getstate() if seeds is not None else None
    python, arrays = random.getstate(), numpy.random.get_state()
    try:
        yield
    finally:
        random.setstate(python)
        numpy.random.set_state(arrays)
        if drawn is not None:
            seeds.setstate(drawn)


def _method(name: str) -> Callable[..., Any]:
    if name in CONSTRUCTORS:
        import tensorflow as tf

        made: Callable[..., Any] = getattr(tf.data, name)
        return made
    found: Callable[..., Any] = resolve(f"dataset-{name.replace('_', '-')}")[2]
    return found


@contextlib.contextmanager
def _replaying(stage: Any) -> Iterator[None]:
    before, _replay.stage = _replay.stage, stage
    try:
        yield
    finally:
        _replay.stage = before


def _zipped(stage: Any, swap: Callable[[Any], Any]) -> Any:
    import tensorflow as tf

    # A dataset is a structure to tf.nest, so that the leaves have to be named.
    return tf.data.Dataset.zip(_map_datasets(swap, stage._datasets))


def _map_datasets(swap: Callable[[Any], Any], structure: Any) -> Any:
    if isinstance(structure, dict):
        return type(structure)((key, _map_datasets(swap, item)) for key, item in structure.items())
    if isinstance(structure, tuple):
        items = [_map_datasets(swap, item) for item in structure]
        return type(structure)(*items) if hasattr(structure, "_fields") else tuple(items)
    return swap(structure)


def _remembering(name: str, original: Any) -> Any:
    from tensorflow.python.eager import context

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        if context.executing_eagerly():
            with contextlib.suppress(Exception):
                _remember(result, Recipe(self, name, args, kwargs))
        return result

    return method


def _remember(result: Any, recipe: Recipe) -> None:
    """The innermost call that made a dataset is its recipe: the first one to see it."""
    made, source = stages.plain(result), stages.plain(recipe.source)
    if made is source or _remembered(made) is not None or not hasattr(made, "_variant_tensor"):
        return
    if any(stage is source for stage, _ in stages.chain(made)):  # `apply` may answer with anything
        made._flatout_recipe = recipe


def _reusing_functions(original: Any) -> Any:
    """Tracing again would run the program's Python again: prints, counters, numbers drawn while tracing."""

    def __init__(self: Any, func: Any, *args: Any, **kwargs: Any) -> None:
        stage, dataset = _replay.stage, kwargs.get("dataset")
        for known in stage._functions() if stage is not None else ():
            takes = dataset.element_spec if dataset is not None else kwargs.get("input_structure")
            if known._func is func and takes is not None and known._input_structure == takes:
                self.__dict__.update(known.__dict__)
                return
        original(self, func, *args, **kwargs)

    return __init__


def _reusing_seeds(original: Any) -> Any:
    def get_seed(seed: Any) -> Any:
        stage = _replay.stage
        if stage is not None and hasattr(stage, "_seed2"):
            return stage._seed, stage._seed2
        return original(seed)

    get_seed.of_flatout = True  # type: ignore[attr-defined]
    return get_seed
