"""Memory nodes. On a machine with several, memory of the other node is slower to reach.

TensorFlow binds neither threads nor memory to a node by itself. A program that needs no more cores and memory
than one node has runs steadier when it is bound to one, best to the node that its GPU is attached to.
"""

from __future__ import annotations

from collections.abc import Iterator

from flatout.environment.reading import Check, Facts, Reading, number, part


def check(facts: Facts) -> Iterator[Reading]:
    nodes = number(part(facts, "cpu").get("numa_nodes"))
    if nodes is None:
        return
    if nodes > 1:
        yield Reading(
            "memory nodes",
            f"{nodes:.0f}",
            "info",
            "TensorFlow spreads its threads over all of them, and accesses cross from one to the other.",
            "Try `numactl --cpunodebind=0 --membind=0 python …` and measure: it pays for programs that fit one node.",
        )
    else:
        yield Reading("memory nodes", "1", "ok", "All memory is equally near.")


CHECK = Check(group="machine", check=check)
