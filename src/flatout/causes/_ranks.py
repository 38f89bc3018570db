"""What causes of a job share: the rank that the others wait for, and what it does differently."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from flatout.causes._spec import WORTH
from flatout.model import queries, ranks
from flatout.model.case import Case, Host

MOSTLY_LAST = 0.6
"""Share of the steps in which one rank has to come last before it is called the late one."""
EXCHANGE_MATTERS = 0.1
"""Share of the step from which on the exchange of values between ranks is worth a look."""
MANY_COLLECTIVES = 8.0
"""Of a step: from here on they are many."""
STARVED = 0.25
"""Share of their processors that others have had, on all ranks, from which on slower computing is not a rank's own."""
PARTS = {
    "input": "waiting for its input",
    "python": "Python between the calls",
    "compute": "computing",
    "idle": "waiting in the runtime",
}


@dataclass(frozen=True)
class Late:
    """A rank that the others wait for."""

    host: Host
    ms: float
    """Of each step, in which the others wait."""
    others_ms: float
    """What the others work in a step, in the middle."""
    part: str
    """The part of the step that is longer than on the others."""
    part_ms: float
    others_part_ms: float

    @property
    def own_ms(self) -> float:
        known = self.host.own_ms
        return known if known is not None else self.others_ms + self.ms

    @property
    def estimate(self) -> str:
        if self.host.collectives is not None:
            return "what the other ranks spend in collectives beyond the exchange itself, in the traced steps"
        return "how much longer the other ranks are inside of their calls, as they compute alike"


def late(case: Case) -> Late | None:
    """The rank that comes last in most steps, where that costs the others a part of the step."""
    hosts = ranks.stepping(case)
    found = ranks.exchange(hosts)
    if case.steps is None or case.steps.kind != "train":
        return None
    if found is None:
        return _late_without_trace(case, hosts)
    slow = max(hosts, key=lambda host: host.own_ms or 0.0)
    others = [host for host in hosts if host is not slow]
    if found.steps and found.last.get(slow.name, 0.0) < MOSTLY_LAST:
        return None
    usual = statistics.median(host.own_ms or 0.0 for host in others)
    waited = statistics.median(host.collective_ms or 0.0 for host in others) - found.ms
    cost = min((slow.own_ms or 0.0) - usual, waited)
    if cost <= 0 or queries.share(case, cost) < WORTH:
        return None
    differs = {name: own(slow, name) - middle(others, name) for name in PARTS}
    part = max(differs, key=lambda name: differs[name])
    if part in ("compute", "idle") and all((host.taken or 0.0) >= STARVED for host in hosts):
        return None  # whichever rank gets less of its processors at the moment
    return Late(slow, cost, usual, part, own(slow, part), middle(others, part))


def _late_without_trace(case: Case, hosts: Sequence[Host]) -> Late | None:
    """From hooks alone: the ranks compute alike, so what one is longer inside of its calls than the one that is there
    shortest, it waits for that one. Only what is outside of the calls can be the reason then."""
    if len(hosts) < 2 or any(host.split_ms is None or host.collectives is not None for host in hosts):
        return None
    slow = min(hosts, key=lambda host: own(host, "compute"))
    others = [host for host in hosts if host is not slow]
    cost = middle(others, "compute") - own(slow, "compute")
    differs = {name: own(slow, name) - middle(others, name) for name in ("input", "python")}
    part = max(differs, key=lambda name: differs[name])
    if queries.share(case, cost) < WORTH or differs[part] < cost / 2:
        return None
    usual = statistics.median((host.step_ms or 0.0) for host in others) - cost
    return Late(slow, min(cost, differs[part]), usual, part, own(slow, part), middle(others, part))


def own(host: Host, part: str) -> float:
    """Milliseconds of a part of the step, without what the rank spends in collectives."""
    if host.split_ms is None:
        return 0.0
    spent = float(getattr(host.split_ms, part))
    return max(spent - (host.collective_ms or 0.0), 0.0) if part == "compute" else spent


def middle(hosts: Sequence[Host], part: str) -> float:
    return statistics.median(own(host, part) for host in hosts)


def since(case: Case, cost: float) -> str:
    """`, since about step 400`, where the steps before were shorter by that; empty where it was so from the start."""
    times = case.steps.times_ms if case.steps is not None else ()
    if case.steps is None or len(times) < 40:
        return ""
    block = max(len(times) // 40, 5)
    middles = [statistics.median(times[begin : begin + block]) for begin in range(0, len(times) - block + 1, block)]
    limit = statistics.median(times[-len(times) // 3 :]) - cost / 2
    if middles[-1] < limit or middles[1] >= limit:
        return ""
    index = next(number for number in range(1, len(middles)) if all(one >= limit for one in middles[number:]))
    return f", since about step {index * block * case.steps.count // len(times):,}"
