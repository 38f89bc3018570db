"""The result of a technique: the model, its size before and after, and the checks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from flatout.optimize.compress.checks import Check


@dataclass(frozen=True)
class Size:
    parameters: int
    flops: float = 0.0
    nonzero: int | None = None


@dataclass(frozen=True)
class Compressed:
    """`model` is a Keras model like any other: it trains, saves, loads and exports."""

    model: Any
    technique: str
    before: Size
    after: Size
    checks: tuple[Check, ...] = ()
    held: dict[str, str] = field(default_factory=dict)
    """Layers that were left alone, and why."""
    details: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [f"{self.technique}: {self.before.parameters:,} → {self.after.parameters:,} parameters"]
        if self.before.flops:
            share = self.after.flops / self.before.flops
            lines[0] += f", {self.before.flops / 1e6:,.1f} → {self.after.flops / 1e6:,.1f} MFLOPs ({share:.0%})"
        lines += [
            f"  check {check.name}: differs by {check.deviation:.1e}, allowed {check.allowed:.0e}"
            for check in self.checks
        ]
        lines += [f"  {name}: {value}" for name, value in self.details.items()]
        return "\n".join(lines)
