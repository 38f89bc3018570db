"""Levers of a tune raced on the nodes of a cluster; what has won is confirmed and claimed on the machine that tunes.

    spreading.py    the coordinator's side: levers in groups, a race for each, their trials taken over
    messages.py     what coordinator and node say to each other
    remote_race.py  the node's side: one race, in a process of its own
    node.py         what starts that process on a node, and looks whether the node has what the program needs
    cores.py        processors of a machine that one race has for itself
    on_ray.py       Ray: nodes, resources, tasks. The one module that imports it

What travels is a race: two baselines and some levers, on one node, in the same rounds. A ratio is never taken of two
machines, or of two moments.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from flatout.tune.request import TuneRequest
from flatout.tune.spread.spreading import Cluster, Spreading, where_raced

__all__ = ["Cluster", "Spreading", "joined", "where_raced"]


@contextlib.contextmanager
def joined(request: TuneRequest, command: Sequence[str]) -> Iterator[Cluster | None]:
    """The cluster that is asked for, with nodes that have what the program needs; None where none is asked for."""
    if request.on is None:
        yield None
        return
    from flatout.tune.spread.on_ray import joined as joined_by_ray

    with joined_by_ray(request.on.partition(":")[2], command, request.leave) as cluster:
        yield cluster
