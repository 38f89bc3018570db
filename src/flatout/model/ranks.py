"""Questions that are asked of the ranks of a job: who leads, how each ended, who waits for whom."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from flatout.model.case import Case, Host
from flatout.model.evidence.job import RankOf
from flatout.model.record import record

ROLES = ("chief", "worker", "ps", "evaluator")
MOST_NAMED = 4
HUNG = 20.0
"""Seconds without a step, before its end, from which on a rank that did not end by itself is said to have hung."""


def of(case: Case) -> tuple[Host, ...]:
    """The ranks of a job; empty for a program of one process, and for a trace of several hosts."""
    found = tuple(host for host in case.hosts if host.role)
    return found if len(found) > 1 else ()


def coordinates(case: Case) -> bool:
    """The steps run on other ranks; what this process does between its calls is not what they wait for."""
    return any(item.coordinates for item in case.evidence_of(RankOf))


def stepping(case: Case) -> tuple[Host, ...]:
    """Those that make the training steps, together."""
    return tuple(host for host in of(case) if host.step_ms is not None and host.role in ("chief", "worker"))


def order(host: Host) -> tuple[int, int, str]:
    return (ROLES.index(host.role) if host.role in ROLES else len(ROLES), host.index, host.name)


def leader(hosts: Sequence[Host]) -> Host:
    """The rank whose steps are those of the job: the first by role and number that has made some."""
    ranked = sorted(hosts, key=order)
    return next((host for host in ranked if host.step_ms is not None and host.case), ranked[0])


def named(names: Sequence[str]) -> str:
    """`worker 1, worker 2 and 38 more`"""
    if len(names) > MOST_NAMED:
        return f"{', '.join(names[: MOST_NAMED - 1])} and {len(names) - MOST_NAMED + 1} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1]))) if names else ""


def sentence(hosts: Iterable[Host]) -> str:
    """How many ranks there are, and what became of those that did not end well."""
    found = [host for host in hosts if host.role]
    return " ".join((f"{len(found)} ranks.", *troubles(found)))


def troubles(hosts: Sequence[Host]) -> list[str]:
    """One sentence for each rank that died, hung, was lost or never came; the first of many stand for the rest.

    Where one rank dies, others fail for want of it: the one that ended first comes first.
    """
    ended = sorted(
        (host for host in hosts if host.state in ("failed", "killed")), key=lambda host: host.began + host.seconds
    )
    texts = [_death(host, first=index == 0 and len(ended) > 1) for index, host in enumerate(ended[:MOST_NAMED])]
    if len(ended) > MOST_NAMED:
        texts.append(f"{len(ended) - MOST_NAMED} more failed or were killed.")
    texts += [_hung(host) for host in hung(hosts)[:MOST_NAMED]]
    for state, text in (
        ("lost", "has not been heard of since; it may be dead, or its machine is"),
        ("missing", "never came"),
        ("running", "still runs"),
    ):
        names = [host.name for host in hosts if host.state == state]
        if names:
            texts.append(f"{named(names)[:1].upper()}{named(names)[1:]} {text}.")
    return texts


def hung(hosts: Sequence[Host]) -> list[Host]:
    """Those that made no step for a while before they were ended; without those that only waited for them."""
    still = [
        host for host in hosts if host.without_step_seconds >= HUNG and host.state in ("killed", "stopped", "failed")
    ]
    outside = [host for host in still if "inside of a call" not in host.note]
    return outside or still


def _death(host: Host, first: bool) -> str:
    how = f" ({host.note})" if host.note else ""
    verb = "was killed" if host.state == "killed" else "failed"
    return f"{host.name[:1].upper()}{host.name[1:]} {verb}{' first' if first else ''} after {host.seconds:.0f} s{how}."


def _hung(host: Host) -> str:
    place = host.note.partition(" at ")[2]
    where = f", at {place}" if place else ""
    return f"{host.name[:1].upper()}{host.name[1:]} made no step in its last {host.without_step_seconds:.0f} s{where}."


# ── who waits for whom ───────────────────────────────────────────────────────────────────────────────────────────


@record(frozen=True)
class Exchange:
    """What a step of a synchronous job spends on its collectives."""

    ms: float
    """What the exchange itself takes: the rank that comes last waits for nobody, so its collectives last that long."""
    last: dict[str, float]
    """Share of the steps in which a rank came last, by name."""
    steps: int


def exchange(hosts: Sequence[Host]) -> Exchange | None:
    """From the steps that were traced on all ranks; None where there are none.

    Step by step: ranks that are late in turns would otherwise look as if the exchange itself took long.
    """
    traced = [host for host in hosts if host.collectives is not None and host.collectives.step_ms]
    if len(traced) < 2 or len(traced) < len(hosts):
        return None
    series = {
        host.name: dict(enumerate(host.collectives.step_ms, host.collectives.first_step))
        for host in traced
        if host.collectives is not None
    }
    common = sorted(set.intersection(*(set(one) for one in series.values())))
    if not common:
        return Exchange(min(host.collective_ms or 0.0 for host in traced), {}, 0)
    lowest = [min((one[step], name) for name, one in series.items()) for step in common]
    last = {name: sum(who == name for _, who in lowest) / len(common) for name in series}
    return Exchange(statistics.median(value for value, _ in lowest), last, len(common))
