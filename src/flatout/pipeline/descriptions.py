"""The stages of a dataset as facts of a Case: their kinds, settings and state."""

from __future__ import annotations

import contextlib
from typing import Any

from flatout.model.case import Json, Stage, StageDetail
from flatout.observe import stages
from flatout.source import context, users_code

AUTOTUNE = -1
SETTINGS = {
    "_batch_size": "batch",
    "_drop_remainder": "drop_remainder",
    "_count": "count",
    "_cycle_length": "cycle",
    "_block_length": "block",
    "_filename": "cache_file",
    "_num_parallel_reads": "parallel_reads",
    "_seed": "seed",
    "_reshuffle_each_iteration": "reshuffle",
}
CALLED = ("_map_func", "_predicate", "_scan_func")


def described(dataset: Any, depth: int = 0) -> Stage:
    """One stage as written, without costs."""
    function = next((getattr(dataset, name) for name in CALLED if hasattr(dataset, name)), None)
    code = getattr(getattr(function, "_func", None), "__code__", None)
    where = getattr(dataset, "_flatout_where", None)
    detail: Json = {"by": getattr(dataset, "_flatout_by", ""), "depth": depth}
    for attribute, label in SETTINGS.items():
        if (value := stages.setting(dataset, attribute)) is not None:
            detail[label] = value
    with contextlib.suppress(Exception):
        detail["cardinality"] = int(dataset.cardinality())
        detail["spec"] = str(dataset.element_spec)[:400]
        detail["element_bytes"] = stages.element_bytes(dataset.element_spec)
    if hasattr(dataset, "_filenames"):
        with contextlib.suppress(Exception):
            detail["files"] = _number_of_files(dataset._filenames)
    if hasattr(dataset, "_tensors"):
        detail["source_bytes"] = sum(int(t.shape.num_elements() or 0) * max(t.dtype.size, 1) for t in dataset._tensors)
    if code is not None and users_code.is_users(code):
        detail["function_where"] = (users_code.absolute(code.co_filename), code.co_firstlineno, code.co_name)
    states = stages.states(dataset)
    return Stage(
        name=stages.kind(dataset),
        op=stages.kind(dataset),
        where=context.where(*where) if where else None,
        function=code.co_name if code is not None and users_code.is_users(code) else None,
        parallelism=_number(stages.setting(dataset, "_num_parallel_calls")),
        buffer=_number(stages.setting(dataset, "_buffer_size")),
        deterministic={"true": True, "false": False}.get(str(getattr(dataset, "_deterministic", ""))),
        stateful=states[0] if states else None,
        detail=StageDetail(**detail),
    )


def _number(value: Any) -> str | None:
    return None if value is None else "autotuned" if value == AUTOTUNE else str(value)


def _number_of_files(names: Any) -> int | None:
    if hasattr(names, "cardinality"):
        count = int(names.cardinality())
        return count if count >= 0 else None
    return int(names.shape.num_elements() or 1)
