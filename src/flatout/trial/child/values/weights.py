"""Snapshots of the variables, read without leaving a trace in the program."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

from flatout.trial.child.values.tapes import tapes

MOST_OF_A_VARIABLE = 2_000
MOST_OF_ALL = 200_000
"""Elements that a snapshot keeps."""

Weight = tuple[str, int, Any, int]
"""Type and shape, the checksum of all bytes, a sample of the elements, and how many of all are no numbers."""


def snapshot(references: Sequence[Any], session: Any, most_of_all: int = MOST_OF_ALL) -> dict[int, Weight]:
    """The weights by their number. `session`: a weak reference to a session of TF1, or None."""
    import numpy as np

    found: dict[int, Weight] = {}
    variables = [(index, reference()) for index, reference in enumerate(references)]
    most = max(1, min(MOST_OF_A_VARIABLE, most_of_all // max(1, len(variables))))
    alive = [
        (index, variable)
        for index, variable in variables
        if variable is not None and not getattr(variable, "_flatout_not_compared", False)
    ]
    for index, array in itertools.chain(_eager_values(alive), _session_values(alive, session)):
        flat = np.ascontiguousarray(array).reshape(-1)
        sample = flat[:: max(1, -(-flat.size // most))]
        name = f"{array.dtype}{list(array.shape)}"
        found[index] = (name, zlib.crc32(flat.view(np.uint8).data), plain(sample), _no_numbers(flat))
    return found


def _no_numbers(array: Any) -> int:
    """How many elements are NaN or infinite."""
    import numpy as np

    try:
        return int(array.size - np.count_nonzero(np.isfinite(array)))
    except TypeError:  # of a type that knows neither
        return 0


NOT_COMPARED = ("flatout", "seed", "rng", "random")
"""In the name of a variable: what a comparison itself has made, and the states of generators, which are pinned."""


def states(references: Sequence[Any], session: Any, most_of_all: int = MOST_OF_ALL) -> dict[str, Weight]:
    """The variables that are not trained, by their name, type and shape, and which of those that have them in common.
    A change may make some of its own: the order of creation would not tell which is which."""
    named = [(reference, reference()) for reference in references]
    wanted = [reference for reference, variable in named if variable is not None and _is_compared(variable)]
    names = [_name(reference()) for reference in wanted]
    found: dict[str, Weight] = {}
    counts: dict[str, int] = {}
    for index, weight in sorted(snapshot(wanted, session, most_of_all).items()):
        key = f"{names[index]} {weight[0]}"
        counts[key] = counts.get(key, 0) + 1
        found[f"{key}#{counts[key]}"] = weight
    return found


def _is_compared(variable: Any) -> bool:
    dtype = getattr(variable, "dtype", None)
    known = getattr(dtype, "is_floating", False) or getattr(dtype, "name", "") in ("int32", "int64")
    return known and not any(word in _name(variable) for word in NOT_COMPARED)


def _name(variable: Any) -> str:
    try:
        return str(variable.name)
    except Exception:
        return ""


def plain(array: Any) -> Any:
    """Of a type that numpy itself knows."""
    import numpy as np

    array = np.asarray(array)
    return array if array.dtype.kind in "fiub" and array.dtype.name != "bfloat16" else array.astype(np.float32)


def _eager_values(variables: Sequence[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
    from tensorflow.python.eager import context
    from tensorflow.python.ops import gen_resource_variable_ops

    if not context.executing_eagerly():
        return
    with tapes().stop_recording():
        for index, variable in variables:
            try:
                value = gen_resource_variable_ops.read_variable_op(variable.handle, variable.dtype)._numpy()
            except Exception:  # made in a graph, or without a value yet
                continue
            yield index, value


def _session_values(variables: Sequence[tuple[int, Any]], reference: Any) -> Iterator[tuple[int, Any]]:
    session: Any = None if reference is None else reference()
    graph = None if session is None else session.graph
    elements = [(index, _graph_element(variable)) for index, variable in variables]
    own = [(index, element) for index, element in elements if getattr(element, "graph", None) is graph is not None]
    if own:
        values = session._flatout_plain_run(session, [element for _, element in own])
        yield from zip((index for index, _ in own), values, strict=True)


def _graph_element(variable: Any) -> Any:
    """What a session fetches to read the variable: of a resource, and of a variable that is a reference."""
    element = getattr(variable, "_graph_element", None)
    return getattr(variable, "_variable", None) if element is None else element
