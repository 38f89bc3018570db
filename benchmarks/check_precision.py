"""How often the findings of `flatout check` were useful, by draw, confidence and pattern, from the single judgements.

    python benchmarks/check_precision.py [DRAW]

benchmarks/check_judgements.csv has one line per finding that was looked at: its draw, its place, the verdict, and that
of a second reader where there was one. docs/check-precision.md says how the repositories were drawn and what the
verdicts mean. benchmarks/check_recall.csv has the faults that were looked for by hand, and which of them were reported.
"""

from __future__ import annotations

import csv
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

VERDICTS = ("useful", "no consequence", "wrong")
FILE = Path(__file__).with_name("check_judgements.csv")
FAULTS = Path(__file__).with_name("check_recall.csv")


def main() -> None:
    rows = _read(FILE)
    draws = sys.argv[1:] or list(dict.fromkeys(row["draw"] for row in rows))
    _table("draw", rows, lambda row: row["draw"])
    _second([row for row in rows if row["second"]])
    _recall(_read(FAULTS))
    for draw in draws:
        mine = [row for row in rows if row["draw"] == draw]
        print(f"\n## {draw}: {len({row['repository'] for row in mine})} repositories with findings\n")
        _table("confidence", mine, lambda row: row["confidence"])
        print()
        _table("pattern", mine, lambda row: row["pattern"])
        print()
        _table("repository", mine, lambda row: f"{row['repository']} {row['commit']}")


def _read(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def _second(rows: list[dict[str, str]]) -> None:
    """What the second reader said, and how often both said the same."""
    print("\n## Second judgements\n")
    _table("draw", [{**row, "verdict": row["second"]} for row in rows], lambda row: row["draw"])
    for draw in dict.fromkeys(row["draw"] for row in rows):
        mine = [row for row in rows if row["draw"] == draw]
        same = sum(row["verdict"] == row["second"] for row in mine)
        print(f"\n{draw}: both the same in {same} of {len(mine)} ({100 * same / len(mine):.0f} %)")


def _recall(rows: list[dict[str, str]]) -> None:
    print("\n## Faults found by hand\n\n| set | cause | faults | reported at first | now |\n|---|---|---|---|---|")
    for faults in dict.fromkeys(row["set"] for row in rows):
        mine = [row for row in rows if row["set"] == faults]
        for cause in [*sorted({row["cause"] for row in mine}), "all"]:
            some = [row for row in mine if cause in (row["cause"], "all")]
            first, now = (sum(row[when] == "yes" for row in some) for when in ("first", "now"))
            print(f"| {faults} | {cause} | {len(some)} | {first} | {now} |")


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
