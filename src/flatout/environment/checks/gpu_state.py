"""The state of each GPU: memory in use by others, lowered clocks, a narrow link, a lowered power limit.

A GPU that is shared, hot, short of power or connected by too few PCIe lanes works more slowly than its data sheet says,
and no change of the program helps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from flatout.environment.reading import Check, Facts, Reading, gibibytes, number, part

_SLOWED = {
    0x08: "hardware slowdown",
    0x20: "heat",
    0x40: "heat (hardware)",
    0x80: "power brake",
}
"""Bits of the driver's reasons for a low clock that are a fault. 0x1 is idle, 0x4 the power cap."""


def check(facts: Facts) -> Iterator[Reading]:
    for gpu in part(facts, "nvidia").get("gpus") or ():
        found = list(_complaints(gpu))
        yield from found
        if not found:
            yield Reading(
                _name(gpu),
                "free and at full speed",
                "ok",
                "No other process uses its memory, and its clock is not lowered.",
            )


def _name(gpu: Mapping[str, Any]) -> str:
    return f"gpu {number(gpu.get('index')) or 0:.0f} state"


def _complaints(gpu: Mapping[str, Any]) -> Iterator[Reading]:
    name = _name(gpu)
    used, total = number(gpu.get("memory_used")), number(gpu.get("memory_total"))
    if used is not None and total and used > max(512.0, 0.05 * total):
        yield Reading(
            name,
            f"{gibibytes(used * 2**20)} of {gibibytes(total * 2**20)} taken",
            "warning",
            "Another process holds memory of this GPU and may be computing on it.",
            "Look with `nvidia-smi`; end what is not needed, or choose another GPU with CUDA_VISIBLE_DEVICES.",
        )
    reasons = _slowed(gpu.get("clocks_throttle_reasons_active"))
    if reasons:
        meaning = "The driver has lowered the clock: every kernel takes longer than this GPU needs."
        yield Reading(name, ", ".join(reasons), "fault", meaning, "Check cooling and power before you measure.")
    width, widest = number(gpu.get("pcie_link_width_current")), number(gpu.get("pcie_link_width_max"))
    if width is not None and widest is not None and width < widest:
        yield Reading(
            name,
            f"link x{width:.0f} of x{widest:.0f}",
            "warning",
            "Copies between memory and GPU use only a part of the lanes.",
            "Put the card into a full slot; in a virtual machine ask the provider.",
        )
    limit, most = number(gpu.get("power_limit")), number(gpu.get("power_max_limit"))
    if limit is not None and most and limit < 0.8 * most:
        meaning = "The power limit is set below what the card allows: long runs clock down."
        yield Reading(name, f"{limit:.0f} of {most:.0f} W", "info", meaning, f"sudo nvidia-smi -pl {most:.0f}")


def _slowed(active: Any) -> list[str]:
    try:
        bits = int(str(active), 16)
    except ValueError:
        return []
    return [name for bit, name in _SLOWED.items() if bits & bit]


CHECK = Check(group="gpu", check=check)
