"""How often the findings of `flatout check` were useful, by draw, confidence and pattern, from the single judgements.

    python benchmarks/check_precision.py [DRAW]

benchmarks/check_judgements.csv has one line per finding that was looked at: its draw, its place, and the verdict.
docs/check-precision.md says how the repositories were drawn and what the verdicts mean.
"""

from __future__ import annotations

import csv
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

VERDICTS = ("useful", "no consequence", "wrong")
FILE = Path(__file__).with_name("check_judgements.csv")


def main() -> None:
    with FILE.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    draws = sys.argv[1:] or list(dict.fromkeys(row["draw"] for row in rows))
    _table("draw", rows, lambda row: row["draw"])
    for draw in draws:
        mine = [row for row in rows if row["draw"] == draw]
        print(f"\n## {draw}: {len({row['repository'] for row in mine})} repositories with findings\n")
        _table("confidence", mine, lambda row: row["confidence"])
        print()
        _table("pattern", mine, lambda row: row["pattern"])
        print()
        _table("repository", mine, lambda row: f"{row['repository']} {row['commit']}")


def _table(title: str, rows: list[dict[str, str]], key: Callable[[dict[str, str]], str]) -> None:
    counts: dict[str, Counter[str]] = {}
    for row in rows:
        counts.setdefault(key(row), Counter())[row["verdict"]] += 1
    print(f"| {title} | useful | no consequence | wrong | useful % |\n|---|---|---|---|---|")
    for name, count in sorted(counts.items(), key=lambda item: -sum(item[1].values())):
        numbers = " | ".join(str(count[verdict]) for verdict in VERDICTS)
        print(f"| {name} | {numbers} | {100 * count['useful'] / sum(count.values()):.0f} |")


if __name__ == "__main__":
    main()
