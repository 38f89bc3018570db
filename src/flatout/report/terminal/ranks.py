"""The ranks of a job side by side: what each does in a step, how long it waits for others, how it ended."""

from __future__ import annotations

from pathlib import Path

from flatout.model import ranks
from flatout.model.case import Case, Host
from flatout.report.formatting import clean, duration
from flatout.report.terminal.page import Page
from flatout.report.terminal.screen import labelled, near

MOST = 8


def lead(case: Case) -> str:
    """The first words of a job's verdict: how many ranks, and which of them did not end well."""
    found = ranks.of(case)
    return f"{clean(ranks.sentence(found))} " if found else ""


def block(case: Case, page: Page) -> None:
    """One line for each rank; of many, those that others wait for most."""
    found = ranks.of(case)
    if not found:
        return
    shown = found
    if len(found) > MOST:
        troubled = [host for host in found if host.state not in ("ended", "stopped")]
        slow = sorted(found, key=lambda host: -(host.own_ms or 0.0))
        chosen = {host.name for host in (*troubled[: MOST // 2], *slow[:MOST])}
        shown = tuple(host for host in found if host.name in chosen)[:MOST]
    for position, host in enumerate(shown):
        labelled(page, "Ranks" if not position else "", _line(host))
    if len(shown) < len(found):
        labelled(page, "", f"and {len(found) - len(shown):,} more: flatout show --view devices")


def next_step(case: Case, page: Page) -> bool:
    """For a job: the case of the rank to look at. Trials are of one process, so there is no tune to offer."""
    found = [host for host in ranks.of(case) if host.case]
    if not found:
        return bool(ranks.of(case))
    ended = [host for host in found if host.state in ("failed", "killed")]
    shown = ended[0] if ended else max(found, key=lambda host: (host.own_ms or 0.0, -host.index))
    what = "what it did before it ended" if ended else "what this rank does in a step"
    labelled(page, "Next", (f"flatout show {near(Path(shown.case))}", "bold"), f"   {what}")
    return True


def _line(host: Host) -> str:
    name = clean(host.name, 30)
    if host.step_ms is None:
        return f"{name}: {_state(host)}, no step"
    parts = [f"{name}: {duration(host.step_ms)} a step"]
    if host.own_ms is not None:
        parts.append(f"{duration(host.own_ms)} its own work, {duration(host.collective_ms)} with or for other ranks")
    if host.state not in ("ended", None):
        parts.append(_state(host))
    return ", ".join(parts)


def _state(host: Host) -> str:
    return f"{host.state or 'unknown'}{f' ({clean(host.note, 80)})' if host.note else ''}"
