"""The limits of the container: CPU quota and memory limit of the control groups, version 1 and 2.

Limits nest, and the lowest one from the group of this process to the root applies. Inside a container the path in
/proc/self/cgroup is often that of the host and not visible; then the mounted root is the group.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

Limit = tuple[float, str]
"""A limit, and the file that it was read from."""

_UNLIMITED_V1 = 1 << 60  # version 1 says "no limit" with a number near 2**63


def cpu_quota(root: Path = Path("/")) -> Limit | None:
    """Number of cores that the group may use (a fraction is possible), or None without a quota."""
    found: list[Limit] = []
    for directory in _directories(root, "cpu"):
        words = _read(directory / "cpu.max").split()
        if len(words) == 2 and words[0] != "max":
            found += _ratio(words[0], words[1], directory / "cpu.max", root)
        quota, period = _read(directory / "cpu.cfs_quota_us"), _read(directory / "cpu.cfs_period_us")
        if quota and not quota.startswith("-"):
            found += _ratio(quota, period, directory / "cpu.cfs_quota_us", root)
    return min(found, default=None)


def memory_limit(root: Path = Path("/")) -> Limit | None:
    """Bytes that the group may use, or None without a limit."""
    found: list[Limit] = []
    for directory in _directories(root, "memory"):
        for name in ("memory.max", "memory.high", "memory.limit_in_bytes"):
            text = _read(directory / name)
            if text.isdigit() and int(text) < _UNLIMITED_V1:
                found.append((float(text), _shown(directory / name, root)))
    return min(found, default=None)


def memory_used(root: Path = Path("/")) -> int | None:
    """Bytes that the group uses, without the page cache, which the kernel frees on demand."""
    for directory in _directories(root, "memory"):
        text = _read(directory / "memory.current") or _read(directory / "memory.usage_in_bytes")
        if text.isdigit():
            return max(0, int(text) - _statistics(directory / "memory.stat").get("inactive_file", 0))
    return None


def memory_left(root: Path = Path("/")) -> int | None:
    """Bytes that are still available on the machine or in the group, whichever is less."""
    lines = (line.split() for line in _read(root / "proc/meminfo").splitlines())
    left = [int(words[1]) * 1024 for words in lines if words[:1] == ["MemAvailable:"] and words[1].isdigit()]
    limit, used = memory_limit(root), memory_used(root)
    if limit is not None and used is not None:
        left.append(max(int(limit[0]) - used, 0))
    return min(left, default=None)


def throttled(root: Path = Path("/")) -> float | None:
    """Share of the scheduling periods in which the group was limited by its quota."""
    shares = []
    for directory in _directories(root, "cpu"):
        counts = _statistics(directory / "cpu.stat")
        if counts.get("nr_periods", 0) > 0:
            shares.append(counts.get("nr_throttled", 0) / counts["nr_periods"])
    return max(shares, default=None)


def _directories(root: Path, controller: str) -> Iterator[Path]:
    """The group's own directory first, then its parents up to the mount."""
    mounts = _mounts(root)
    for line in _read(root / "proc/self/cgroup").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        unified = number == "0" and not controllers
        if not unified and controller not in controllers.split(","):
            continue
        mount = mounts.get("" if unified else controller)
        if mount is None:
            continue
        group = mount / path.lstrip("/")
        while group != mount and mount in group.parents:
            yield group
            group = group.parent
        yield mount


def _mounts(root: Path) -> dict[str, Path]:
    """Mount points by controller; version 2 has one, under the name ''."""
    found: dict[str, Path] = {}
    for line in _read(root / "proc/self/mountinfo").splitlines():
        left, separator, right = line.partition(" - ")
        fields, kind = left.split(), right.split()
        if not separator or len(fields) < 5 or len(kind) < 3:
            continue
        where = root / fields[4].lstrip("/")
        if kind[0] == "cgroup2":
            found.setdefault("", where)
        elif kind[0] == "cgroup":
            for option in kind[2].split(","):
                found.setdefault(option, where)
    return found


def _ratio(quota: str, period: str, path: Path, root: Path) -> list[Limit]:
    try:
        return [(int(quota) / int(period), _shown(path, root))]
    except (ValueError, ZeroDivisionError):
        return []


def _statistics(path: Path) -> dict[str, int]:
    pairs = (line.split() for line in _read(path).splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


def _shown(path: Path, root: Path) -> str:
    return "/" + str(path.relative_to(root))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except (OSError, ValueError):
        return ""
