"""Trees for the flame graph: sampled Python stacks, and ops grouped by their scope.

Stacks come from py-spy's SVG if the run had `--flame`, else from flatout's own sampler, which records the frames of the
program and the innermost function.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flatout.model import json_text
from flatout.model.case import Case
from flatout.report.formatting import clean

MOST_NODES = 4000
DEEPEST = 60
LARGEST = 32 * 2**20
_FRAME = re.compile(
    r"<title>(?P<name>[^<]*) \([\d,]+ samples?, [\d.]+%\)</title>"
    r'<rect [^>]*?y="(?P<y>[\d.]+)"[^>]*?fg:x="(?P<x>\d+)" fg:w="(?P<w>\d+)"'
)


@dataclass(frozen=True)
class Tree:
    title: str
    note: str
    unit: str
    """ms or samples."""
    root: dict[str, Any]
    """name, value, children, as the page's script reads it."""


@dataclass
class _Node:
    value: float = 0.0
    children: dict[str, _Node] = field(default_factory=dict)

    def add(self, path: Iterable[str], value: float) -> None:
        node = self
        node.value += value
        for name in path:
            node = node.children.setdefault(name, _Node())
            node.value += value

    def plain(self, name: str, least: float, depth: int = 0) -> dict[str, Any]:
        found: dict[str, Any] = {"name": clean(name, 160), "value": round(self.value, 6)}
        kept = [(n, c) for n, c in self.children.items() if c.value >= least] if depth < DEEPEST else []
        if kept:
            kept.sort(key=lambda item: -item[1].value)
            found["children"] = [child.plain(child_name, least, depth + 1) for child_name, child in kept]
        return found


def python_stacks(directory: Path | None) -> Tree | None:
    if directory is None:
        return None
    return _from_picture(directory / "flame.svg") or _from_samples(directory / "counters.jsonl")


def ops_by_scope(case: Case) -> Tree | None:
    """By the names of the ops, which are paths: the model, its layers, their ops."""
    root = _Node()
    for op in case.ops:
        if op.self_ms > 0:
            scopes = [part for part in op.name.split("/") if part]
            root.add((*scopes[-DEEPEST:-1], f"{scopes[-1] if scopes else op.name} ({op.type})"), op.self_ms)
    if not root.children:
        return None
    per = "a step" if case.steps else "in the window"
    return Tree("Ops by scope", f"self time of the ops {per}, grouped by the names in the graph", "ms", _plain(root))


def _plain(root: _Node) -> dict[str, Any]:
    values: list[float] = []
    pending = [root]
    while pending:
        node = pending.pop()
        values.append(node.value)
        pending.extend(node.children.values())
    values.sort(reverse=True)
    least = values[MOST_NODES] if len(values) > MOST_NODES else 0.0
    return root.plain("all", least)


def _from_samples(path: Path) -> Tree | None:
    rows, interval = _samples(path)
    root = _Node()
    for row in rows:
        try:
            count, users, inner = row[0], row[1], row[2]
            frames = [f"{name} ({file.rpartition('/')[2]}:{line})" for file, line, name, *_ in reversed(users)]
            if inner and (not users or inner[1] != users[0][2]):
                frames.append(f"{inner[1]} ({inner[0].rpartition('/')[2]})")
            root.add(frames or ["(outside the program's own code)"], float(count))
        except (TypeError, ValueError, IndexError, KeyError):
            continue
    if not root.value:
        return None
    every = f", one every {1000 * interval:.0f} ms" if interval else ""
    return Tree(
        "Python stacks",
        f"{root.value:,.0f} samples of the main thread{every}: the program's own frames and the function at the top",
        "samples",
        _plain(root),
    )


def _samples(path: Path) -> tuple[Sequence[Any], float]:
    try:
        if path.stat().st_size > LARGEST:
            return (), 0.0
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            if '"samples"' in line:
                fact = json_text.parse(line)
                if isinstance(fact, dict) and fact.get("kind") == "samples" and isinstance(fact.get("rows"), list):
                    return fact["rows"], float(fact.get("interval") or 0.0)
    except (OSError, ValueError, TypeError):
        pass
    return (), 0.0


def _from_picture(path: Path) -> Tree | None:
    """py-spy's SVG has the position of every frame: `fg:x` and `fg:w` are samples, `y` grows with depth."""
    try:
        if path.stat().st_size > LARGEST:
            return None
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    frames = [(float(m["y"]), int(m["x"]), int(m["w"]), html.unescape(m["name"])) for m in _FRAME.finditer(text)]
    if not frames:
        return None
    frames.sort()
    root = _Node()
    ancestors: list[list[tuple[int, int, _Node]]] = []
    level, row_y = -1, None
    for y, x, width, name in frames:
        if y != row_y:
            level, row_y = level + 1, y
            ancestors.append([])
        if level == 0:
            node = root
        else:
            parent = next((n for begin, end, n in ancestors[level - 1] if begin <= x < end), None)
            if parent is None:
                continue
            node = parent.children.setdefault(name, _Node())
        node.value += width
        ancestors[level].append((x, x + width, node))
    note = f"{root.value:,.0f} samples of every thread, taken by py-spy"
    return Tree("Python stacks", note, "samples", _plain(root)) if root.children else None
