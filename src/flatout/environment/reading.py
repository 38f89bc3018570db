"""What a check declares, takes and yields.

`Facts` is a plain dict, so that a test can write one by hand and a saved case can hold it. Any part of it may be
missing, and a fact that is missing is never a fault. A `Reading` is one line of the audit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from flatout.model.errors import PluginInvalid

Facts = Mapping[str, Any]
Status = Literal["ok", "info", "warning", "fault"]

Group = Literal["machine", "tensorflow", "gpu", "settings"]
GROUPS: tuple[Group, ...] = get_args(Group)
"""The sections of the audit, in the order in which they are shown."""


@dataclass(frozen=True)
class Reading:
    name: str
    value: str
    status: Status
    meaning: str
    todo: str = ""


@dataclass(frozen=True)
class Check:
    """A check of the environment: `CHECK = Check(…)` at the end of its file."""

    group: Group
    check: Callable[[Facts], Iterable[Reading]]
    """Yields a Reading for each thing worth a line."""

    def __post_init__(self) -> None:
        if self.group not in GROUPS:
            raise PluginInvalid(f"{self.group!r} is no group of checks. The groups are: {', '.join(GROUPS)}.")


def part(facts: Facts, name: str) -> Mapping[str, Any]:
    """One section of the facts, empty where it was not gathered."""
    found = facts.get(name)
    return found if isinstance(found, Mapping) else {}


def variable(facts: Facts, name: str) -> str | None:
    """An environment variable; None if it is unset or empty, which TensorFlow treats the same."""
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
    """Cores that this process may use: the affinity mask, limited by the quota."""
    cores = part(facts, "cores")
    affinity, quota = number(cores.get("affinity")), number(cores.get("quota"))
    if affinity is None:
        return None
    return max(1, int(min(affinity, quota + 0.999 if quota is not None else affinity)))


def gibibytes(count: float) -> str:
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"
