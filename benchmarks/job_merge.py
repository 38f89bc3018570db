"""How the merge of a job grows with its ranks: time and memory, with synthetic ranks that write what real ones write.

    python benchmarks/job_merge.py [--ranks 50,200,1000] [--json FILE]

Each rank has a summary of the largest size there is (all traced steps, six inputs, twelve parts of its run), and the
leader a case of ordinary size. Each number of ranks is merged in a process of its own, so that the peak of memory is
the merge's.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from flatout import store
from flatout.job import merge, summary
from flatout.job.directory import Member
from flatout.job.place import Place
from flatout.model.case import Case, Distribution, Program, RunPart, RunTree, Split, Steps
from flatout.model.evidence.job import Collectives, RankInput
from flatout.model.location import Where


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--ranks", default="50,200,1000")
    arguments.add_argument("--json")
    arguments.add_argument("--merge", help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.merge:
        _measure(Path(given.merge))
        return
    rows = []
    print(f"{'ranks':>6} {'kB a rank':>10} {'merge s':>8} {'peak MB':>8} {'kB of case':>11}  first finding")
    for count in map(int, given.ranks.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            _write(Path(folder), count)
            size = sum(path.stat().st_size for path in Path(folder).glob("ranks/*/rank.json")) / count / 1000
            command = [sys.executable, __file__, "--merge", folder]
            row = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        rows.append({"ranks": count, "rank_kb": size, **row})
        numbers = f"{count:>6} {size:>10.1f} {row['seconds']:>8.2f} {row['peak_mb']:>8.0f} {row['case_kb']:>11.0f}"
        print(f"{numbers}  {row['first']}")
    if given.json:
        Path(given.json).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def _measure(folder: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    began = time.perf_counter()
    case = merge.merge(folder)
    store.write_case(case, folder)
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    first = f"{case.findings[0].cause}: {case.findings[0].summary}" if case.findings else "none"
    written = (folder / store.FILE).stat().st_size / 1000
    print(json.dumps({"seconds": seconds, "peak_mb": peak, "before_mb": before, "case_kb": written, "first": first}))


def _write(folder: Path, count: int) -> None:
    """Ranks of one synchronous job; one of them works 20 ms longer in each step."""
    late = count * 2 // 3
    for index in range(count):
        names = tuple(f"worker {number}" for number in range(count))
        place = Place("worker", index, count, "synthetic", expected=names)
        member = Member(place, folder)
        member.join()
        case = _case(index, late)
        store.write_case(case, member.folder)
        member.leave(summary.of(case, place, member.folder))


def _case(index: int, late: int) -> Case:
    own = 55.0 if index == late else 35.0
    waits = tuple(60.0 - own + 0.1 * ((index * 7 + step) % 5) for step in range(64))
    where = Where("train.py", 40, "train_step", "loss = train_step(batch)")
    steps = Steps(
        10_000,
        "calls of a tf.function that trains",
        Distribution(60.0, 58.0, 63.0, 60.0),
        split_ms=Split(python=own - 30.0, compute=90.0 - own),
        times_ms=tuple(60.0 + step % 5 for step in range(4000)),
    )
    parts = tuple(RunPart("callback", f"Callback{number}.on_epoch_end", 1.0, 10, where) for number in range(12))
    return Case(
        "run",
        program=Program(command=("python", "train.py"), directory="/work", seconds=700.0, exit_code=0),
        run=RunTree(700.0, (RunPart("steps", "train-function", 600.0, 10_000, where), *parts)),
        steps=steps,
        evidence=(
            Collectives(sum(waits) / 64, 3.0, 4e8, 12, waits, where=where),
            *(RankInput("auto", True, pipelines=200, replicas=200, strategy="S", batch=64, where=where),) * 6,
        ),
    )


if __name__ == "__main__":
    main()
