"""The memory allocator of the process: what is preloaded, and which debugging aids are left on.

glibc's malloc serves TensorFlow well on most machines; tcmalloc or jemalloc may help programs with many
threads that allocate. Whether it does is for a trial to show. What is a fault by itself is a preloaded
library that is not there, and the aids that check every call.
"""

from __future__ import annotations

from collections.abc import Iterator

from flatout.environment.reading import Check, Facts, Reading, part, variable

_AIDS = {
    "MALLOC_CHECK_": "glibc checks the heap on every call.",
    "MALLOC_PERTURB_": "glibc overwrites every block that is handed out or given back.",
    "PYTHONMALLOC": "Python's own allocator is replaced; the debug kinds check every block.",
}


def check(facts: Facts) -> Iterator[Reading]:
    preload = variable(facts, "LD_PRELOAD") or ""
    missing = part(facts, "libraries").get("preload_missing") or ()
    if missing:
        yield Reading(
            "allocator",
            ", ".join(map(str, missing)),
            "fault",
            "LD_PRELOAD names a library that is not there: the loader complains and goes on without it.",
            "Install the library (libtcmalloc-minimal4, libjemalloc2), or mend the path.",
        )
    else:
        name = next((name for name in ("tcmalloc", "jemalloc", "mimalloc") if name in preload), "glibc malloc")
        yield Reading("allocator", name, "ok", "Loaded for the whole process.")
    for aid, meaning in _AIDS.items():
        value = variable(facts, aid)
        if value in (None, "0", "default", "pymalloc", "mimalloc"):
            continue
        yield Reading(aid, str(value), "warning", meaning, f"unset {aid} when you are not hunting a memory fault.")
    if variable(facts, "MALLOC_ARENA_MAX") == "1":
        yield Reading(
            "MALLOC_ARENA_MAX",
            "1",
            "warning",
            "All threads share one heap and wait for its lock.",
            "unset MALLOC_ARENA_MAX, or allow a few arenas (4) when memory is what you save.",
        )


CHECK = Check(group="settings", check=check)
