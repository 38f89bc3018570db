"""What was measured of the public programs, kept line by line, and the table with the bars."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from _public_list import Program

Kind = Literal["expert", "run", "tune"]
Numbers = tuple[float, ...]
WORTH = 1.3
"""From this gain of the expert on, a program counts among those that `tune` must win."""
NOTHING = 1.1
"""Below this gain there is nothing to win."""


@dataclass(frozen=True)
class Pairs:
    """Whole runs in turns: seconds of the slow one and of the fast one."""

    slow: Numbers
    fast: Numbers

    @property
    def ratios(self) -> list[float]:
        return [slow / fast for slow, fast in zip(self.slow, self.fast, strict=True)]

    @property
    def ratio(self) -> float:
        return statistics.median(self.slow) / statistics.median(self.fast)

    def __str__(self) -> str:
        ratios = self.ratios
        return f"{self.ratio:.2f} [{min(ratios):.2f}, {max(ratios):.2f}]"


@dataclass(frozen=True)
class Result:
    """Of one program. `data` by kind: see the functions of public.py that make it."""

    number: int
    kind: Kind
    failure: str = ""
    data: dict[str, Any] = field(default_factory=dict)

    @property
    def pairs(self) -> Pairs | None:
        """Without the imports."""
        return self._pairs("pairs")

    @property
    def whole(self) -> Pairs | None:
        """With the imports, as the claim of `tune` has them."""
        return self._pairs("whole")

    def _pairs(self, name: str) -> Pairs | None:
        found = self.data.get(name)
        return Pairs(tuple(found["slow"]), tuple(found["fast"])) if found else None


class Journal:
    """A file with a line for each result: a run that was stopped goes on where it was."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def add(self, result: Result) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(asdict(result)) + "\n")

    def results(self) -> dict[tuple[int, str], Result]:
        """The last one of each program and kind."""
        if not self.file.is_file():
            return {}
        found = (Result(**json.loads(line)) for line in self.file.read_text(encoding="utf-8").splitlines() if line)
        return {(result.number, result.kind): result for result in found}


def agreement(original: Sequence[Numbers], patched: Sequence[Numbers]) -> str:
    """Whether the last numbers of the patched runs are like those of the originals, whose own spread is the measure."""
    lengths = {len(numbers) for numbers in (*original, *patched)}
    if len(lengths) != 1 or lengths == {0}:
        return "not comparable"
    for place in range(lengths.pop()):
        theirs = [numbers[place] for numbers in original]
        slack = max(theirs) - min(theirs) + 0.02 * max(abs(number) for number in theirs) + 1e-6
        ours = statistics.median(numbers[place] for numbers in patched)
        if not min(theirs) - slack <= ours <= max(theirs) + slack:
            return f"differ: {patched[0]} beside {original[0]}"
    return "agree"


def gain_of(program: Program, results: Mapping[tuple[int, str], Result]) -> float:
    """As measured here, otherwise as listed."""
    measured = results.get((program.number, "expert"))
    return measured.pairs.ratio if measured and measured.pairs else program.expert.gain


def table(programs: Sequence[Program], results: Mapping[tuple[int, str], Result]) -> str:
    lines = [f"{'program':28s} {'expert':18s} {'first finding':26s} {'claimed':18s} {'measured':18s} verdict of tune"]
    for program in programs:
        expert, run, tune = (results.get((program.number, kind)) for kind in ("expert", "run", "tune"))
        gain = str(expert.pairs) if expert and expert.pairs else f"{program.expert.gain:.2f} (listed)"
        lines.append(f"{program.title[:28]:28s} {gain:18s} {finding(run):26s} {tuning(tune)}")
        lines += [f"    false above 10 %: {one}" for one in (run.data.get("unaccepted", []) if run else [])]
        lines += [f"    {one.kind} failed: {one.failure[-300:]}" for one in (expert, run, tune) if one and one.failure]
    return "\n".join([*lines, "", *bars(programs, results)])


def finding(run: Result | None) -> str:
    if run is None or run.failure:
        return "–"
    return f"{'right' if run.data['right'] else 'WRONG'}: {run.data['first'] or 'nothing'}"[:26]


def tuning(tune: Result | None) -> str:
    if tune is None or tune.failure:
        return f"{'–':18s} {'–':18s} –"
    claimed = "{:.2f} [{:.2f}, {:.2f}]".format(*tune.data["claimed"]) if tune.data["claimed"] else "–"
    measured = str(tune.pairs) if tune.pairs else "–"
    return f"{claimed:18s} {measured:18s} {tune.data['verdict'][:90]}"


def bars(programs: Sequence[Program], results: Mapping[tuple[int, str], Result]) -> list[str]:
    """Each bar: how many hold of how many that were measured."""
    by_kind = {
        kind: [(program, one) for program in programs if (one := results.get((program.number, kind)))]
        for kind in ("run", "tune")
    }
    runs, tunes = by_kind["run"], by_kind["tune"]
    worth = [pair for pair in tunes if gain_of(pair[0], results) >= WORTH]
    nothing = [pair for pair in tunes if gain_of(pair[0], results) < NOTHING]
    levered = [one for _, one in tunes if one.data.get("levers")]
    claims = [one for _, one in tunes if one.data.get("claimed") and one.whole]
    return [
        bar("first finding right", [not one.failure and one.data["right"] for _, one in runs], 0.9),
        bar("no false finding above 10 %", [not one.failure and not one.data["unaccepted"] for _, one in runs], 1.0),
        bar(
            "80 % of an expert's gain, with a patch",
            [won(one, gain_of(program, results)) for program, one in worth],
            0.7,
        ),
        bar("nothing claimed where nothing is", [quiet(one) for _, one in nothing], 1.0),
        bar("measured within the claim", [within(one) for one in claims], 0.93),
        bar("numbers do not differ", [same_numbers(one) for _, one in tunes if one.pairs], 1.0),
        bar("no crash with --with @tuned", [not one.data["with_tuned"] for one in levered], 1.0),
        bar("no failure", [not one.failure for _, one in (*runs, *tunes)], 1.0),
    ]


def same_numbers(tune: Result) -> bool:
    """By the comparison with pinned random numbers; where that told nothing, by the last numbers of the outputs."""
    verdict = str(tune.data.get("pinned", "")).partition(":")[0]
    if verdict in ("", "unknown"):
        return "differ" not in str(tune.data.get("numbers", ""))
    return verdict in ("exact", "reassociated", "statistical")


def quiet(tune: Result) -> bool:
    """Nothing was claimed, or what was claimed is there, though the expert did not see it."""
    if tune.failure or tune.data.get("outcome") != "won":
        return not tune.failure
    return tune.whole is not None and min(tune.whole.ratios) > 1


def won(tune: Result, gain: float) -> bool:
    return tune.pairs is not None and tune.pairs.ratio >= 0.8 * gain


def within(tune: Result) -> bool:
    """The measured runs lie within the stated interval of the whole program: their own spread touches it."""
    _, low, high = tune.data["claimed"]
    ratios = tune.whole.ratios if tune.whole else []
    return bool(ratios) and bool(min(ratios) <= high and max(ratios) >= low)


def bar(title: str, held: Sequence[bool], wanted: float) -> str:
    if not held:
        return f"{title:42s} not measured"
    share = sum(held) / len(held)
    return f"{title:42s} {sum(held):3d} of {len(held):3d}  bar {wanted:.0%}  {'held' if share >= wanted else 'MISSED'}"
