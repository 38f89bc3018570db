"""Switches for debugging and for reproducible results that were left on.

Each has its use, and each costs time on every step: verbose logs, dumps of every graph, GPU calls that
wait for their end, deterministic kernels where faster ones exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from flatout.environment.reading import Check, Facts, Reading, is_on, variable, whole_number


def _positive(value: str) -> bool:
    return (whole_number(value) or 0) > 0


def _given(value: str) -> bool:
    return True


def _off(value: str) -> bool:
    return value.strip().lower() in ("0", "false")


_SWITCHES: tuple[tuple[str, Callable[[str], bool], str], ...] = (
    (
        "TF_CPP_MAX_VLOG_LEVEL",
        _positive,
        "TensorFlow writes its verbose log, with lines for every operation.",
    ),
    (
        "TF_CPP_MIN_VLOG_LEVEL",
        _positive,
        "TensorFlow writes its verbose log, with lines for every operation.",
    ),
    ("TF_CPP_VMODULE", _given, "Some source files of TensorFlow write their verbose log."),
    ("TF_DUMP_GRAPH_PREFIX", _given, "TensorFlow writes graphs to disk while it optimizes them."),
    (
        "CUDA_LAUNCH_BLOCKING",
        is_on,
        "Every GPU call waits until it is done: CPU and GPU never work side by side.",
    ),
    (
        "CUDA_CACHE_DISABLE",
        is_on,
        "Kernels that are compiled at start are thrown away and compiled anew each time.",
    ),
    ("TF_CUDNN_USE_AUTOTUNE", _off, "cuDNN takes its first algorithm for each convolution, not the fastest."),
    ("TF_DETERMINISTIC_OPS", is_on, "Deterministic kernels are used where faster ones exist."),
    ("TF_CUDNN_DETERMINISTIC", is_on, "cuDNN may use its deterministic algorithms only."),
    ("NVIDIA_TF32_OVERRIDE", _off, "Matrix products in float32 cannot use the tensor cores (TF32)."),
    ("PYTHONDEVMODE", _given, "Python's development mode checks every allocation."),
    ("PYTHONTRACEMALLOC", _positive, "Python keeps the traceback of every allocation."),
)


def check(facts: Facts) -> Iterator[Reading]:
    clean = True
    for name, costs, meaning in _SWITCHES:
        value = variable(facts, name)
        if value is not None and costs(value):
            clean = False
            yield Reading(name, value, "warning", meaning, f"unset {name} unless this run needs it.")
    if clean:
        yield Reading("debug switches", "none on", "ok", "Nothing that costs time on every step is left on.")


CHECK = Check(group="settings", check=check)
