"""The cores of the machine, the ones this process may use, and the quota that its container sets.

TensorFlow starts one thread per core that the affinity mask allows. A container's CPU limit is no mask
but a quota of time: with 64 cores to see and a quota of 4, 64 threads use up the quota in the first
sixteenth of every period, and then all of them stand still until the next.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from flatout.environment.reading import Check, Facts, Reading, number, part, variable, whole_number


def check(facts: Facts) -> Iterator[Reading]:
    cores = part(facts, "cores")
    machine, affinity, quota = (number(cores.get(name)) for name in ("machine", "affinity", "quota"))
    if affinity is None:
        return
    value = f"{affinity:.0f} of {machine or affinity:.0f}"
    if quota is None or quota >= affinity:
        limited = machine is not None and affinity < machine
        yield Reading(
            "cores",
            value + ", no quota" if quota is None else value,
            "info" if limited else "ok",
            "TensorFlow keeps to the cores it may use; `os.cpu_count()` in your own code counts them all."
            if limited
            else "TensorFlow starts a thread for each.",
            "Use `len(os.sched_getaffinity(0))` where your code sizes a pool by the cores." if limited else "",
        )
        return
    value += f", quota {quota:g}"
    fitting = max(1, math.ceil(quota))
    threads = whole_number(variable(facts, "TF_NUM_INTRAOP_THREADS"))
    if threads is not None and threads <= fitting:
        yield Reading("cores", value, "ok", "TF_NUM_INTRAOP_THREADS keeps TensorFlow within the quota.")
        return
    throttled = number(cores.get("throttled_share"))
    seen = f" So far the group ran into it in {throttled:.0%} of the periods." if throttled else ""
    yield Reading(
        "cores",
        value,
        "fault" if affinity >= 2 * quota else "warning",
        f"TensorFlow starts {affinity:.0f} threads per pool, but the container may use {quota:g} cores' "
        f"worth of "
        f"time: the threads spend the quota together and then all wait for the next period.{seen}",
        f"export TF_NUM_INTRAOP_THREADS={fitting} TF_NUM_INTEROP_THREADS={fitting}, "
        "or give the container a set of cores (--cpuset-cpus) in place of a quota.",
    )


CHECK = Check(group="machine", check=check)
