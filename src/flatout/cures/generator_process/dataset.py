"""A Python generator runs in a process of its own and hands its elements over in chunks.

Its side effects stay in that process. Only generators of plain arrays, made without arguments, that do not use
TensorFlow themselves: its threads do not survive the fork.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from types import CodeType, ModuleType
from typing import Any

from flatout.observe import stages
from flatout.pipeline import generator_process, recipes
from flatout.pipeline.rewriting import Context, Proposal, Refused

FORBIDDEN = ("tensorflow", "keras", "tf_keras", "jax", "torch")


def rewrite(dataset: Any, context: Context) -> Proposal | None:
    if not sys.platform.startswith("linux"):
        return None
    found = next(((s, g) for s, _ in stages.chain(dataset) if (g := generator_of(s)) is not None), None)
    if found is None:
        return None
    stage, generator = found
    used = _uses(generator)
    if used:
        raise Refused(f"the generator at {stages.location(stage)} uses {used}, which does not work in a forked process")
    if not _is_plain(stage.element_spec):
        raise Refused(f"the generator at {stages.location(stage)} gives more than plain arrays")
    made = recipes.stands_for(in_a_process(generator, stage.element_spec), stage)
    result = recipes.rebuild(dataset, recipes.exchange(stage, made))
    return Proposal(result, f"the generator at {stages.location(stage)} runs in a process of its own")


def generator_of(stage: Any) -> Any | None:
    """The Python function behind `from_generator`; None for any other stage, or where it takes arguments."""
    function: Any = getattr(getattr(stage, "_map_func", None), "_func", None)
    if stages.kind(stage) != "FlatMap" or getattr(function, "__name__", "") != "flat_map_fn":
        return None
    try:
        begin = inspect.getclosurevars(function).nonlocals["get_iterator_id_fn"]
        state = inspect.getclosurevars(begin).nonlocals["generator_state"]
        given = inspect.getclosurevars(begin).nonlocals.get("args", ())
    except (KeyError, TypeError, ValueError):
        return None
    return None if len(given) else state._generator


def in_a_process(generator: Any, spec: Any) -> Any:
    import numpy as np
    import tensorflow as tf

    leaves = tf.nest.flatten(spec)
    kinds = [leaf.dtype.as_numpy_dtype if leaf.dtype != tf.string else object for leaf in leaves]

    def flatten(element: Any) -> tuple[Any, ...]:
        # No TensorFlow here: this runs in the forked process.
        return tuple(np.asarray(value, kind) for value, kind in zip(_flat(spec, element), kinds, strict=True))

    def chunks() -> Iterator[Any]:
        return generator_process.chunks(generator, flatten)

    several = tuple(tf.TensorSpec([None, *leaf.shape], leaf.dtype) for leaf in leaves)
    rows = tf.data.Dataset.from_generator(chunks, output_signature=several).unbatch()
    return rows.map(lambda *row: tf.nest.pack_sequence_as(spec, row))


def _flat(spec: Any, element: Any) -> list[Any]:
    if isinstance(spec, dict):
        return [value for key in sorted(spec) for value in _flat(spec[key], element[key])]
    if isinstance(spec, (tuple, list)):
        return [value for part, item in zip(spec, element, strict=True) for value in _flat(part, item)]
    return [element]


def _is_plain(spec: Any) -> bool:
    import tensorflow as tf

    return all(type(leaf).__name__ == "TensorSpec" and leaf.shape.rank is not None for leaf in tf.nest.flatten(spec))


def _uses(function: Any) -> str:
    """The first of the libraries with threads of their own that a function touches."""
    code = getattr(function, "__code__", None)
    if code is None:
        return "something that is no plain function"
    known = {**getattr(function, "__globals__", {}), **_closed_over(function)}
    for name in _names(code):
        value = known.get(name)
        home = value.__name__ if isinstance(value, ModuleType) else type(value).__module__
        if isinstance(home, str) and home.partition(".")[0] in FORBIDDEN:
            return name
    return ""


def _closed_over(function: Any) -> dict[str, Any]:
    cells = function.__closure__ or ()
    return {n: c.cell_contents for n, c in zip(function.__code__.co_freevars, cells, strict=True) if _is_set(c)}


def _is_set(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018  # an empty cell raises
    except ValueError:
        return False
    return True


def _names(code: CodeType) -> Iterator[str]:
    yield from (*code.co_names, *code.co_freevars)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
