"""The frequency governor of the CPU.

`powersave` holds the lowest clock on the classic drivers. Under `intel_pstate` and `amd-pstate-epp` the
same word names a dynamic mode that does raise the clock under load, and is no fault.
"""

from __future__ import annotations

from collections.abc import Iterator

from flatout.environment.reading import Check, Facts, Reading, part

_DYNAMIC = ("intel_pstate", "amd-pstate-epp", "amd_pstate_epp")


def check(facts: Facts) -> Iterator[Reading]:
    cpu = part(facts, "cpu")
    governor, driver = cpu.get("governor"), cpu.get("frequency_driver")
    if not governor:
        return
    if governor == "powersave" and driver not in _DYNAMIC:
        yield Reading(
            "cpu governor",
            str(governor),
            "warning",
            f"With the driver {driver or 'in use'} this governor holds the CPU at its lowest clock.",
            "sudo cpupower frequency-set -g performance (or schedutil).",
        )
    else:
        yield Reading("cpu governor", str(governor), "ok", "Raises the clock under load.")


CHECK = Check(group="machine", check=check)
