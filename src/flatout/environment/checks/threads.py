"""Variables that size TensorFlow's thread pools, against the cores that there are.

`TF_NUM_INTRAOP_THREADS` splits one operation over threads, `TF_NUM_INTEROP_THREADS` runs independent
operations side by side. `OMP_NUM_THREADS` and `KMP_*` steer OpenMP: the wheels from PyPI are linked
without it, so they change NumPy and similar libraries and not TensorFlow, whatever older guides say.
"""

from __future__ import annotations

from collections.abc import Iterator

from flatout.environment.reading import Check, Facts, Reading, usable_cores, variable, whole_number

_POOLS = ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")
_OPENMP = ("OMP_NUM_THREADS", "OMP_PROC_BIND", "KMP_AFFINITY", "KMP_BLOCKTIME")


def check(facts: Facts) -> Iterator[Reading]:
    usable = usable_cores(facts)
    given = {name: value for name in _POOLS if (value := variable(facts, name)) is not None}
    for name, value in given.items():
        yield _judge(name, value, usable)
    if not given:
        yield Reading("threads", "TensorFlow's choice", "ok", "Nothing sizes the thread pools from outside.")
    openmp = [f"{name}={value}" for name in _OPENMP if (value := variable(facts, name)) is not None]
    if openmp:
        yield Reading(
            "openmp",
            ", ".join(openmp),
            "info",
            "The TensorFlow wheels are linked without OpenMP: these reach NumPy and other libraries only.",
            "To size TensorFlow's pools set TF_NUM_INTRAOP_THREADS and TF_NUM_INTEROP_THREADS.",
        )


def _judge(name: str, value: str, usable: int | None) -> Reading:
    count = whole_number(value)
    if count is None or count < 0:
        return Reading(
            name,
            value,
            "fault",
            "This is not a number of threads: TensorFlow ignores it and chooses by itself.",
            f"unset {name}, or give it a whole number.",
        )
    if count == 0 or usable is None:
        return Reading(name, value, "ok", "Zero leaves the choice to TensorFlow." if count == 0 else "As asked.")
    if count > usable:
        return Reading(
            name,
            value,
            "warning",
            f"{count} threads on {usable} usable cores take turns and push each other out of the caches.",
            f"unset {name}, or set it to at most {usable}.",
        )
    if name == "TF_NUM_INTRAOP_THREADS" and count * 2 < usable:
        return Reading(
            name,
            value,
            "warning",
            f"One operation may use {count} of {usable} cores: the others are idle unless several "
            f"programs share "
            "the machine.",
            f"unset {name} when this program has the machine to itself.",
        )
    return Reading(name, value, "ok", f"Fits the {usable} usable cores.")


CHECK = Check(group="settings", check=check)
