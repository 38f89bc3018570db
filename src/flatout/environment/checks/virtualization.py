"""Virtual machines, and the time that their host takes from them.

Stolen time is time in which this machine wanted to run and the host ran somebody else. Timings taken while it
happens spread widely, and no change of the program helps.
"""

from __future__ import annotations

from collections.abc import Iterator

from flatout.environment.reading import Check, Facts, Reading, number, part

_STOLEN = 0.02


def check(facts: Facts) -> Iterator[Reading]:
    cpu = part(facts, "cpu")
    stolen = number(cpu.get("steal_share")) or 0.0
    kind = " · ".join(
        word for word in ("virtual machine" if cpu.get("hypervisor") else "", str(cpu.get("container") or "")) if word
    )
    if stolen > _STOLEN:
        yield Reading(
            "virtualization",
            f"{kind or 'virtual machine'}, {stolen:.0%} stolen",
            "warning",
            "The host ran other guests while this one wanted to work. Step times will spread, whatever the program.",
            "Measure at another hour, or on a machine with cores of its own.",
        )
    elif kind:
        yield Reading("virtualization", kind, "ok", "The host takes no time away that counts.")


CHECK = Check(group="machine", check=check)
