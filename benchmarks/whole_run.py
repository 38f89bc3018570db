"""Is the whole run judged rightly? Twelve programs with a fault of known seconds, and four without one.

    python benchmarks/whole_run.py [--keep DIR] [NAME …]

Each program of tests/programs/whole_run is run once by `flatout run`. The table says whether the first finding is the
planted one at its line, what it is said to cost and what the program itself measured, how long the process lived by the
kernel's account, what the parts of the tree add up to over that, and how much of it is attributed to nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _process_clock import ProcessClock

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "tests" / "programs" / "whole_run"
MARK = re.compile(r"#\s*fault:\s*([a-z-]+)\s*$")
PLANTED = re.compile(r"^planted ([\d.]+)", re.MULTILINE)


@dataclass(frozen=True)
class Outcome:
    name: str
    cause: str
    line: int
    planted: float
    found: str
    cost: float
    right: bool
    whole: float
    parts: float
    outside: float
    unattributed: float

    def row(self) -> str:
        ratio = f"{self.cost / self.planted:5.2f}" if self.planted else "    –"
        return (
            f"{self.name:22} {'ok ' if self.right else 'NO '} {self.found:32} {self.cost:6.2f} {self.planted:6.2f} "
            f"{ratio} {self.outside:7.2f} {self.parts / self.outside:7.3f} "
            f"{100 * self.unattributed / self.whole if self.whole else 100:5.1f} %"
        )

    @property
    def adds_up(self) -> bool:
        return abs(self.parts / self.outside - 1) <= 0.02 and self.unattributed <= 0.05 * self.whole


def expected(program: Path) -> tuple[str, int]:
    for number, line in enumerate(program.read_text().splitlines(), start=1):
        if found := MARK.search(line):
            return found.group(1), number
    return "", 0


def observe(program: Path, keep: Path | None) -> Outcome:
    cause, line = expected(program)
    with tempfile.TemporaryDirectory() as scratch:
        target = (keep or Path(scratch)) / f"{program.stem}.json"
        with subprocess.Popen(
            [sys.executable, "-m", "flatout", "run", "--json", str(target), str(program)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=scratch,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"},
        ) as process:  # fmt: skip
            clock = ProcessClock(process.pid, str(program))
            output, errors = process.communicate()
        outside = clock.join()
        if not target.exists() or outside is None:
            sys.stderr.write(errors[-2000:])
            raise SystemExit(f"{program.name} gave no case")
        case = json.loads(target.read_text())
    planted = PLANTED.search(output)
    return judged(program.stem, cause, line, float(planted.group(1)) if planted else 0.0, case, outside)


def judged(name: str, cause: str, line: int, planted: float, case: dict[str, Any], outside: float) -> Outcome:
    run = case.get("run") or {"seconds": 0.0, "parts": []}
    findings = case["findings"]
    first = findings[0] if findings else {}
    steps = sum(part["seconds"] for part in run["parts"] if part["kind"] == "steps")
    base = run["seconds"] if first.get("of") == "run" else steps
    cost = (first.get("cost_share") or 0.0) * base
    where = (first.get("where") or {}).get("line")
    right = (first.get("cause"), where) == (cause, line) if cause else cost <= 0.1 * run["seconds"]
    return Outcome(
        name, cause, line, planted,
        f"{first.get('cause', 'nothing')}:{where}", cost, right, run["seconds"],
        sum(part["seconds"] for part in run["parts"]), outside,
        sum(part["seconds"] for part in run["parts"] if part["kind"] == "unattributed"),
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--keep", type=Path, help="directory for the cases as JSON")
    arguments = parser.parse_args()
    programs = sorted(PROGRAMS.glob("*.py"), key=lambda path: (path.stem.startswith("good_"), path.stem))
    programs = [path for path in programs if not arguments.names or path.stem in arguments.names]
    print(
        f"{'program':22} 1st  {'first finding':32} {'cost':>6} {'plant':>6} ratio  seconds  parts  unattributed",
        flush=True,
    )
    outcomes = []
    for program in programs:
        outcomes.append(observe(program, arguments.keep))
        print(outcomes[-1].row(), flush=True)
    right, planted = sum(one.right for one in outcomes), [one for one in outcomes if one.planted]
    near = sum(abs(one.cost / one.planted - 1) <= 0.1 for one in planted)
    print(f"{right} of {len(outcomes)} judged rightly; seconds within 10 % in {near} of {len(planted)}")
    print(
        f"{sum(one.adds_up for one in outcomes)} of {len(outcomes)} add up: parts within 2 %, unattributed at most 5 %"
    )


if __name__ == "__main__":
    main()
