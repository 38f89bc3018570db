"""Energy, read from the processor's own counters (RAPL) where the user may read them."""

from __future__ import annotations

from pathlib import Path

ROOT = Path("/sys/class/powercap")


class Meter:
    def __init__(self, root: Path = ROOT) -> None:
        packages = [folder for folder in sorted(root.glob("intel-rapl:*")) if folder.name.count(":") == 1]
        self._counters = [(folder / "energy_uj", _number(folder / "max_energy_range_uj")) for folder in packages]

    def read(self) -> list[int] | None:
        """Microjoules of each processor package; None where there are no readable counters."""
        values = [_number(path) for path, _ in self._counters]
        return [value for value in values if value is not None] if values and None not in values else None

    def joules(self, before: list[int] | None, after: list[int] | None) -> float | None:
        """Energy used between two readings. The range of a counter makes up for one that has wrapped around."""
        if not before or not after:
            return None
        used = 0
        for (_, most), first, last in zip(self._counters, before, after, strict=True):
            used += last - first if last >= first else last - first + (most or 0)
        return used / 1e6


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None
