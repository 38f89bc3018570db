"""What a check takes and gives.

`Facts` is a plain dict, so that a test can write one by hand and a saved case can hold it; a check must bear
any part of it missing. A `Reading` is one line of the audit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Facts = Mapping[str, Any]
Status = Literal["ok", "info", "warning", "fault"]

GROUPS = ("machine", "tensorflow", "gpu", "settings")
"""The sections of the audit, in the order in which they are shown."""


@dataclass(frozen=True)
class Reading:
    name: str
    value: str
    status: Status
    meaning: str
    todo: str = ""


def part(facts: Facts, name: str) -> Mapping[str, Any]:
    """One room of the facts, empty where it was not gathered."""
    found = facts.get(name)
    return found if isinstance(found, Mapping) else {}


def variable(facts: Facts, name: str) -> str | None:
    """An environment variable, or None where it is unset or empty (TensorFlow takes both for the same)."""
    value = part(facts, "variables").get(name)
    return str(value) if value not in (None, "") else None


def is_on(value: str | None) -> bool:
    return value is not None and value.strip().lower() in ("1", "true", "yes", "on")


def whole_number(value: str | None) -> int | None:
    try:
        return int(value) if value is not None else None
    except ValueError:
        return None


def number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def usable_cores(facts: Facts) -> int | None:
    """Cores that this process may really use: the affinity mask, cut down by the quota."""
    cores = part(facts, "cores")
    affinity, quota = number(cores.get("affinity")), number(cores.get("quota"))
    if affinity is None:
        return None
    return max(1, int(min(affinity, quota + 0.999 if quota is not None else affinity)))


def gibibytes(count: float) -> str:
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"
