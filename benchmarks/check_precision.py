"""How often the findings of `flatout check` were useful, by draw, confidence and pattern, from the single judgements.

    python benchmarks/check_precision.py [DRAW]

benchmarks/check_judgements.csv has one line per finding that was looked at: its draw, its place, the verdict, and that
of a second reader where there was one; `place` says of patterns that are on in some files only whether theirs is one
of these. docs/check-precision.md says how the repositories were drawn and what the verdicts mean.
benchmarks/check_recall.csv has the faults that were looked for by hand: which of them were reported at first, are
reported now, and are with all confidences.
"""

from __future__ import annotations

import csv
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

VERDICTS = ("useful", "no consequence", "wrong")
OUTSIDE = {
    "sixth": ("second",),
    "seventh": ("verdict",),
    "eighth": ("verdict", "second"),
    "ninth": ("verdict", "second"),
}
"""The columns with verdicts of readers who had no part in the rules. Rows are findings of the rules of their time."""
ENOUGH = 0.75
"""Share of useful findings from which a pattern is on by default."""
ALSO_ON = ("python-in-pipeline/python-function", "serial-stateful-map/random-map", "late-shuffle/shuffle-after-batch")
"""On where they feed a training, though less than that was useful when it was fresh: else too much is missed."""
FILE = Path(__file__).with_name("check_judgements.csv")
FAULTS = Path(__file__).with_name("check_recall.csv")


def main() -> None:
    rows = _read(FILE)
    draws = sys.argv[1:] or list(dict.fromkeys(row["draw"] for row in rows))
    _table("draw", rows, lambda row: row["draw"])
    _second([row for row in rows if row["second"]])
    _left_out(rows)
    _left_out(rows, ALSO_ON)
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


def _left_out(rows: list[dict[str, str]], also: tuple[str, ...] = ()) -> None:
    """What outside readers said of each draw, where the patterns that are on are chosen by the other draws alone.

    Patterns that depend on the kind of file count apart for each (`place`). A pattern that the other draws have fewer
    than two findings of is off. `also`: patterns that are on in any case where their file makes them count."""
    more = f", and {', '.join(also)}" if also else ""
    print(f"\n## One draw left out: on is what {100 * ENOUGH:.0f} % called useful in the others{more}\n")
    print("| draw | findings | of them on | useful | wrong |\n|---|---|---|---|---|")
    total = [0, 0, 0.0, 0.0]
    for draw in OUTSIDE:
        chosen = _chosen([row for row in rows if row["draw"] in OUTSIDE and row["draw"] != draw])
        mine = [row for row in rows if row["draw"] == draw]
        on = [row for row in mine if _kind(row) in chosen or (row["pattern"] in also and row["place"] == "often")]
        counted = [
            len(mine),
            len(on),
            sum(_share(row, "useful") for row in on),
            sum(_share(row, "wrong") for row in on),
        ]
        total = [a + b for a, b in zip(total, counted, strict=True)]
        _left_out_line(draw, counted)
    _left_out_line("all", total)


def _chosen(rows: list[dict[str, str]]) -> set[tuple[str, str]]:
    kinds: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        kinds.setdefault(_kind(row), []).append(_share(row, "useful"))
    return {kind for kind, shares in kinds.items() if len(shares) >= 2 and sum(shares) / len(shares) >= ENOUGH}


def _kind(row: dict[str, str]) -> tuple[str, str]:
    return row["pattern"], row["place"]


def _share(row: dict[str, str], verdict: str) -> float:
    """Of the outside readers who said so."""
    columns = OUTSIDE[row["draw"]]
    return sum(row[column] == verdict for column in columns) / len(columns)


def _left_out_line(draw: str, counted: list[float]) -> None:
    found, on, *judged = counted
    shares = " | ".join(f"{count:.1f} ({100 * count / on:.1f} %)" for count in judged)
    print(f"| {draw} | {found} | {on} | {shares} |")


def _recall(rows: list[dict[str, str]]) -> None:
    print("\n## Faults found by hand\n\n| set | cause | faults | at first | now | all |\n|---|---|---|---|---|---|")
    for faults in dict.fromkeys(row["set"] for row in rows):
        mine = [row for row in rows if row["set"] == faults]
        for cause in [*sorted({row["cause"] for row in mine}), "all"]:
            some = [row for row in mine if cause in (row["cause"], "all")]
            first, now, low = (sum(row[when] == "yes" for row in some) for when in ("first", "now", "all"))
            print(f"| {faults} | {cause} | {len(some)} | {first} | {now} | {low if mine[0]['all'] else ''} |")


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
