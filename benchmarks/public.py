"""flatout on programs that others wrote: what `run` names, what `tune` wins, beside what an expert's cure gains.

    python benchmarks/public.py --make 1 3 5-9         checkouts with edits (original) and cures (cured)
    python benchmarks/public.py --expert               original and cured in turns, whole runs
    python benchmarks/public.py --run --half measured  the first finding, and those that an expert does not accept
    python benchmarks/public.py --tune --jobs 4 --cores 4
    python benchmarks/public.py --table                what has been measured so far, with the bars

benchmarks/public/README.md says how the programs were chosen and how to read the table. What has been measured is not
measured again unless --again is given.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
import _public_checkout as checkout
import _public_list
import _public_runs as runs
from _public_list import ListWrong, Program
from _public_results import WORTH, Journal, Pairs, Result, agreement, table

ROOT = Path(__file__).resolve().parent.parent
CLOCKS: tuple[Callable[[runs.Ended], float], ...] = (lambda ended: ended.seconds, lambda ended: ended.whole)
CLAIM = 0.1
"""A finding that costs at least this share of a step must be one that an expert accepts."""


def main() -> None:
    options = parsed()
    try:
        programs = chosen(options)
    except ListWrong as error:
        sys.exit(f"public.py: {error}")
    work: dict[str, Callable[[Program, runs.Setting, argparse.Namespace], Result]] = {
        "expert": expert,
        "run": first_finding,
        "tune": tuned,
    }
    if options.make or any(getattr(options, kind) for kind in work):
        options.checkouts.mkdir(parents=True, exist_ok=True)
    for kind, function in work.items():
        if getattr(options, kind):
            side_by_side(programs, options, kind, function)
    if options.make:
        for program in programs:
            made(program, setting_of(options))
    else:
        print(table(programs, options.journal.results()))


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("make", "expert", "run", "tune", "table"):
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("numbers", nargs="*", help="programs: 3 or 5-9; all by default")
    parser.add_argument("--half", choices=["measured", "building"], help="even or odd numbers only")
    parser.add_argument("--jobs", type=int, default=1, help="programs side by side")
    parser.add_argument("--cores", type=int, default=0, help="cores for each of them")
    parser.add_argument("--pairs", type=int, default=3, help="whole runs of each side")
    parser.add_argument("--budget", default="10m", help="of tune")
    parser.add_argument("--checkouts", type=Path, default=ROOT.parent / "public-programs")
    parser.add_argument("--mirror", default=checkout.GITHUB, help="where to clone from, with {owner} and {name}")
    parser.add_argument("--packages", type=Path, action="append", default=[], help="a directory for PYTHONPATH")
    parser.add_argument("--results", type=Path, help="by default results.jsonl among the checkouts")
    parser.add_argument("--cases", type=Path, help="keep cases and outputs of flatout in this directory")
    parser.add_argument("--again", action="store_true", help="also what has been measured")
    options = parser.parse_args()
    options.checkouts = options.checkouts.resolve()
    options.packages = tuple(path.resolve() for path in options.packages)
    options.journal = Journal(options.results or options.checkouts / "results.jsonl")
    return options


def chosen(options: argparse.Namespace) -> list[Program]:
    wanted: set[int] = set()
    for text in options.numbers:
        first, _, last = text.partition("-")
        wanted.update(range(int(first), int(last or first) + 1))
    return [
        program
        for program in _public_list.load()
        if (not wanted or program.number in wanted) and options.half in (None, program.half)
    ]


def setting_of(options: argparse.Namespace, place: int = 0) -> runs.Setting:
    """The cores of a place: with --jobs 4 --cores 4 the third has 8 to 11 of those that this process may use."""
    mine = sorted(os.sched_getaffinity(0))
    cores = tuple(mine[place * options.cores : (place + 1) * options.cores])
    return runs.Setting(options.checkouts, options.mirror, options.packages, cores, options.cases)


def side_by_side(
    programs: Sequence[Program],
    options: argparse.Namespace,
    kind: str,
    function: Callable[[Program, runs.Setting, argparse.Namespace], Result],
) -> None:
    done = {} if options.again else options.journal.results()
    left = [program for program in programs if (program.number, kind) not in done]
    places = list(range(options.jobs))
    lock = threading.Lock()

    def one(program: Program) -> None:
        with lock:
            place = places.pop(0)
        try:
            result = function(program, setting_of(options, place), options)
        except (ListWrong, checkout.CheckoutFailed) as error:
            result = Result(program.number, kind, str(error))  # type: ignore[arg-type]
        with lock:
            places.append(place)
            options.journal.add(result)
            print(f"{program.title}: {kind} {result.failure or told(result)}", flush=True)

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(one, left))


def told(result: Result) -> str:
    values = {name: value for name, value in result.data.items() if name not in ("pairs", "whole")}
    return f"{result.pairs or ''} {json.dumps(values)[:400]}"


def made(program: Program, setting: runs.Setting) -> None:
    try:
        for make in (checkout.original, checkout.cured):
            print(make(program, setting.checkouts, setting.mirror))
    except (ListWrong, checkout.CheckoutFailed) as error:
        print(f"{program.title}: {error}")


def expert(program: Program, setting: runs.Setting, options: argparse.Namespace) -> Result:
    """`pairs`: the original and the cured one; `cpu`: the ratio of their processor time; `numbers`: whether their last
    numbers are alike.
    """
    slow = checkout.original(program, setting.checkouts, setting.mirror)
    if not program.cures:
        ended = runs.plain(program, slow, setting)
        return Result(
            program.number, "expert", ended.failure, {"numbers": "no cure", "seconds": round(ended.seconds, 1)}
        )
    fast = checkout.cured(program, setting.checkouts, setting.mirror)
    return in_turns(Result(program.number, "expert"), program, (slow, fast), setting, options.pairs)


def in_turns(
    result: Result, program: Program, directories: tuple[Path, Path], setting: runs.Setting, pairs: int
) -> Result:
    """The result with whole runs of both, in turns: the order changes with each pair."""
    sides: tuple[list[runs.Ended], list[runs.Ended]] = ([], [])
    for pair in range(pairs):
        for side in (0, 1) if pair % 2 == 0 else (1, 0):
            ended = runs.plain(program, directories[side], setting, seed=pair)
            if ended.failure:
                return dataclasses.replace(result, failure=f"{directories[side].name} {ended.failure}")
            sides[side].append(ended)
    timed, whole = (Pairs(*(tuple(round(value(ended), 3) for ended in side) for side in sides)) for value in CLOCKS)
    slow_cpu, fast_cpu = (statistics.median(ended.cpu for ended in side) for side in sides)
    measured = {
        "pairs": dataclasses.asdict(timed),
        "whole": dataclasses.asdict(whole),
        "cpu": round(slow_cpu / fast_cpu, 2) if fast_cpu else None,
        "numbers": agreement(*([ended.last_numbers for ended in side] for side in sides)),
    }
    data = {**result.data, **measured}
    return dataclasses.replace(result, data=data)


def first_finding(program: Program, setting: runs.Setting, options: argparse.Namespace) -> Result:
    """`first`, `right`: the first finding; `unaccepted`: others above a tenth of the step; `findings`: all."""
    directory = fresh(program, "observed", setting)
    case, ended = case_of(program, directory, setting, ["run"])
    if case is None:
        return Result(program.number, "run", f"no case; {ended.failure or ended.output[-600:]}")
    findings = [(found["cause"], found.get("cost_share") or 0.0) for found in case.get("findings", [])]
    first = findings[0][0] if findings else ""
    large = findings and findings[0][1] >= CLAIM
    right = first in program.finding or (not large and program.expert.gain < WORTH)
    unaccepted = [
        f"{cause} {share:.0%}" for cause, share in findings if share >= CLAIM and cause not in program.finding
    ]
    data = {"first": first, "right": right, "unaccepted": unaccepted, "findings": findings}
    return Result(program.number, "run", ended.failure, data)


def tuned(program: Program, setting: runs.Setting, options: argparse.Namespace) -> Result:
    """`outcome`, `verdict`, `levers`, `step` and `claimed` ([ratio, low, high] of a step and of the whole run),
    `patch`, `pairs` and `whole` (the original and the patched one, without and with the imports), `numbers` (whether
    their last numbers are alike), `pinned` (how they agree with pinned random numbers), `with_tuned` (exit status).
    """
    directory = fresh(program, "tuned", setting)
    with tempfile.TemporaryDirectory() as temporary:
        patch = Path(temporary) / "change.diff"
        case, ended = case_of(program, directory, setting, ["tune", "--budget", options.budget, "--patch", str(patch)])
        if case is None:
            return Result(program.number, "tune", f"no case; {ended.failure or ended.output[-600:]}")
        text = patch.read_text() if patch.is_file() else ""
        data: dict[str, Any] = {
            "verdict": case.get("verdict", ""),
            "levers": case.get("tuned", []),
            "seconds": round(ended.seconds),
            "outcome": (case.get("conclusion") or {}).get("outcome", ""),
            "step": step_claim(case),
            "claimed": bounds((case.get("whole_run") or {}).get("speedup")),
            "patch": text,
            "with_tuned": None,
        }
        if data["levers"]:
            data["with_tuned"] = runs.flatout(program, directory, setting, ["run", "-q", "--with", "@tuned"]).status
        result = Result(program.number, "tune", data=data)
        if not text:
            return result
        patched = fresh(program, "patched", setting)
        if refused := applied(patch, program, patched):
            return dataclasses.replace(result, failure=f"the patch does not apply: {refused}")
    slow = checkout.original(program, setting.checkouts, setting.mirror)
    data = {**data, "pinned": runs.pinned_numbers(program, slow, patched, setting)}
    result = dataclasses.replace(result, data=data)
    return in_turns(result, program, (slow, patched), setting, options.pairs)


def step_claim(case: dict[str, Any]) -> list[float] | None:
    """Of the patched program where it was tried, otherwise of the winning levers together."""
    won = [trial for trial in case.get("trials", []) if trial.get("status") == "won" and trial.get("speedup")]
    same = [trial for trial in won if list(trial["levers"]) == list(case.get("tuned", []))] or won
    patched = [trial for trial in same if trial.get("stage") == "patch"]
    return bounds((patched or same)[-1]["speedup"]) if same else None


def bounds(interval: dict[str, float] | None) -> list[float] | None:
    return [interval["ratio"], interval["low"], interval["high"]] if interval else None


def fresh(program: Program, kind: str, setting: runs.Setting) -> Path:
    """A new copy of the original, so that nothing is left of an earlier run."""
    source = checkout.original(program, setting.checkouts, setting.mirror)
    target = source.parent / kind
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, symlinks=True)
    return target


def applied(patch: Path, program: Program, directory: Path) -> str:
    """Apply the patch where its names fit; what was wrong, or nothing."""
    said = ""
    around = [(directory / program.path).parent, *(directory / program.path).parent.parents]
    places = (directory / program.directory, *(place for place in around if place.is_relative_to(directory)))
    for place in dict.fromkeys(places):
        command = ["patch", "-p1", "--forward", "--batch", "-d", str(place), "-i", str(patch)]
        if subprocess.run([*command, "--dry-run"], capture_output=True).returncode == 0:
            subprocess.run(command, check=True, capture_output=True)
            return ""
        said = subprocess.run([*command, "--dry-run"], capture_output=True, text=True).stdout
    return said[-300:] or "no file fits its names"


def case_of(
    program: Program, directory: Path, setting: runs.Setting, verb: Sequence[str]
) -> tuple[dict[str, Any] | None, runs.Ended]:
    with tempfile.TemporaryDirectory() as temporary:
        file = Path(temporary) / "case.json"
        quiet = [] if setting.cases else ["-q"]
        ended = runs.flatout(program, directory, setting, [*verb, *quiet, "--json", str(file)])
        if setting.cases:
            keep(setting.cases / f"{program.title}-{verb[0]}", file, ended)
        return (json.loads(file.read_text()) if file.is_file() else None), ended


def keep(target: Path, case: Path, ended: runs.Ended) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.with_suffix(".txt").write_text(ended.output)
    if case.is_file():
        shutil.copy(case, target.with_suffix(".json"))


if __name__ == "__main__":
    main()
