"""The shared memory under /dev/shm, through which worker processes and GPUs hand over data.

Docker gives a container 64 MiB of it. Keras' `PyDataset` with `use_multiprocessing`, Python's multiprocessing
with shared arrays, and NCCL between GPUs need more, and fail or fall back to slower ways.
"""

from __future__ import annotations

from collections.abc import Iterator

from flatout.environment.reading import Check, Facts, Reading, gibibytes, number, part

_SMALL = 512 * 2**20


def check(facts: Facts) -> Iterator[Reading]:
    memory = part(facts, "memory")
    total, free = number(memory.get("shared_total")), number(memory.get("shared_free"))
    if not total:
        return
    if total <= _SMALL:
        yield Reading(
            "shared memory",
            gibibytes(total),
            "warning",
            "This little /dev/shm is enough for one process, not for worker processes that hand over "
            "batches, nor "
            "for NCCL between GPUs.",
            "Start the container with --shm-size=8g, or --ipc=host.",
        )
    elif free is not None and free < 0.1 * total:
        yield Reading(
            "shared memory",
            f"{gibibytes(free)} free of {gibibytes(total)}",
            "warning",
            "/dev/shm is nearly full, often with leavings of programs that crashed.",
            "Look with `ls -l /dev/shm` and remove what no running program owns.",
        )
    else:
        yield Reading("shared memory", gibibytes(total), "ok", "Enough for worker processes.")


CHECK = Check(group="machine", check=check)
