"""Memory: what is there, what the container allows, what is left, and whether the machine is swapping.

A program near its limit loses the page cache first, so that every epoch reads its files from disk again,
and is killed next. A program that swaps is slow everywhere and at random.
"""

from __future__ import annotations

from collections.abc import Iterator

from flatout.environment.reading import Check, Facts, Reading, gibibytes, number, part

_LITTLE = 0.10
_SWAPPED = 256 * 2**20


def check(facts: Facts) -> Iterator[Reading]:
    memory = part(facts, "memory")
    total, available, limit = (number(memory.get(name)) for name in ("total", "available", "limit"))
    if total is None:
        return
    ceiling = min(total, limit) if limit is not None else total
    left = available if available is not None else ceiling
    used = number(memory.get("group_used"))
    if limit is not None and limit < total and used is not None:
        left = min(left, max(0.0, limit - used))
    value = f"{gibibytes(left)} free of {gibibytes(ceiling)}"
    if limit is not None and limit < total:
        value += f" (limit; machine {gibibytes(total)})"
    if left < _LITTLE * ceiling:
        yield Reading(
            "memory",
            value,
            "warning",
            "Little is left: the page cache shrinks, so that files are read from disk again, and the "
            "kernel may "
            "end the program.",
            "Free memory, raise the limit, or use smaller batches, shuffle buffers and caches.",
        )
    else:
        yield Reading("memory", value, "ok", "Enough is free.")
    swap_total, swap_free = number(memory.get("swap_total")), number(memory.get("swap_free"))
    if swap_total and swap_free is not None and swap_total - swap_free > _SWAPPED:
        yield Reading(
            "swap",
            f"{gibibytes(swap_total - swap_free)} in use",
            "warning",
            "Pages have been pushed out to disk. Touching one of them costs milliseconds in place of nanoseconds.",
            "Free memory, then `swapoff -a && swapon -a` brings the pages back.",
        )


CHECK = Check(group="machine", check=check)
