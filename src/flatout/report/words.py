"""The words in which people are told of levers, speedups and agreement. JSON keeps the names of the vocabulary."""

from __future__ import annotations

import functools
import linecache
import re
from collections.abc import Iterable, Mapping, Sequence

from flatout.model.case import Case, Interval, Trial, Where
from flatout.model.errors import FlatoutError
from flatout.model.levers import parse, shown
from flatout.report.formatting import clean, sentence

AGREEMENTS = {
    "exact": "bit for bit the same",
    "reassociated": "same results up to rounding",
    "precision": "lower precision",
    "semantic": "changes the training",
    "statistical": "same results over several random seeds",
    "multiset": "same elements, in another order",
    "failed": "different results",
    "unknown": "results could not be compared",
    "bound": "shows a limit, not a change to make",
}
"""What an equivalence or a parity verdict is called."""
CONFIDENCE = {"high": "sure", "medium": "likely", "low": "a guess"}
"""How far a finding can be trusted."""
_DEFINITION = re.compile(r"\s*(?:async\s+)?def\s+(\w+)")
_TRACED = re.compile(r"(\w+) \(([^()]+:\d+)\) is traced")
_LOCATION = re.compile(r"(.*):(\d+)")
_MEASURED = re.compile(r" \([^()]*\b(?:losses|variables|weights|values) to [^()]*\)| \(to [^()]*\)")
_MOVEMENT = re.compile(r"(\d+(?:\.\d+)?(?:e[+-]?\d+)?) of (?:their|its) movement")
_SAME_DRAWS = "with the same random numbers in both, "

_HIDDEN = "losses tell nothing, as two runs without a change differ as much by rounding alone"
_SOME = re.compile(r"\b(\d+) of (?:all )?(\d+) variables")

Names = Mapping[str, str]
"""Names of functions by `file:line`."""


def agreement(verdict: str) -> str:
    """`reassociated` → `same results up to rounding`."""
    return AGREEMENTS.get(verdict, clean(verdict, 40))


def factor(ratio: float) -> str:
    """`4.04`, `17.2`, `120`."""
    return f"{ratio:.{2 if ratio < 9.995 else 1 if ratio < 99.95 else 0}f}"


def speedup(interval: Interval) -> str:
    """`4.04 times as fast (3.47 to 4.71)`; a slowdown is one, not a fraction of a speed."""
    if interval.high == float("inf"):
        return f"about {factor(interval.ratio)} times as fast"
    return f"{factor(interval.ratio)} times as fast ({factor(interval.low)} to {factor(interval.high)})"


def names_in(case: Case) -> dict[str, str]:
    """The functions whose lines a case shows."""
    places: list[Where | None] = [item.where for item in case.findings]
    places += [item.where for item in case.evidence]
    places += [item.where for item in case.functions]
    found = {}
    for where in places:
        if where is not None and where.code and (match := _DEFINITION.match(where.code)):
            found[f"{where.file}:{where.line}"] = match[1]
    for trial in case.trials:
        found.update({place: name for name, place in _TRACED.findall(trial.note)})
    return found


def names_here(levers: Iterable[str]) -> dict[str, str]:
    """The functions at the locations that these levers name, read from the source as it stands."""
    found = {}
    for text in levers:
        if match := _LOCATION.fullmatch(parse(text)[1]):
            line = linecache.getline(match[1], int(match[2]))
            if defined := _DEFINITION.match(line):
                found[match[0]] = defined[1]
    return found


def lever(text: str, names: Names | None = None) -> str:
    """``function=/home/ada/train.py:26`` → ``trace `train_step` with @tf.function (train.py:26)``."""
    name, value = parse(text)
    does = _does(name)
    template = does if isinstance(does, str) else does.get(value, does.get("", ""))
    if not template or ("{value}" in template and not value):
        return clean(shown([text]), 80)
    place = value.rpartition("/")[2] if _LOCATION.fullmatch(value) else ""
    function = clean((names or {}).get(value, ""), 60)
    return clean(
        template.replace("{value}", value)
        .replace("{function}", f"`{function}`" if function else "the step" if not place else "the function")
        .replace("{place}", f" ({place})" if place else ""),
        200,
    )


def untried(name: str) -> str:
    """A lever without its setting: several would have been tried."""
    does = _does(name)
    texts = [does] if isinstance(does, str) else [does.get("", ""), *does.values()]
    template = next((text for text in texts if text and "{value}" not in text), texts[0])
    said = template.replace("{value}", "several").replace("{function}", "the step").replace("{place}", "")
    return said or clean(name, 80)


def change(levers: Sequence[str], names: Names | None = None) -> str:
    """Several levers as one phrase."""
    return " + ".join(lever(text, names) for text in levers) or "the program as it is"


def change_here(levers: Sequence[str]) -> str:
    """The same while the program is at hand: functions are named from its source."""
    return change(levers, names_here(levers))


def trial(one: Trial, names: Names | None = None) -> str:
    """What was tried, without what the program had already."""
    return change(one.levers[len(one.upon) :], names)


def compared(text: str) -> str:
    """What was compared, as sentences, without the sizes of deviations: those are in the view of the trials."""
    text = clean(text, 600)
    same_draws = _SAME_DRAWS in text
    text = _MEASURED.sub("", text.replace(_SAME_DRAWS, ""))
    # Cases of earlier versions end with what follows here.
    text = text.replace(
        "on rounding alone makes losses differ",
        "on losses cannot be compared, as rounding alone changes them as much",
    )
    text = text.replace("losses cannot be compared, as rounding alone changes them as much", _HIDDEN)
    text = _SOME.sub(_of_all, text)
    text = text.replace("random numbers cannot be pinned", "random numbers cannot be made the same in both")
    text = text.replace(" 1 values agree", " 1 value agrees")
    text = _MOVEMENT.sub(lambda found: f"{_small(float(found[1]))} of how far training moved them", text)
    sentences = [part[:1].upper() + part[1:] for part in text.split("; ") if part]
    told = sentence(". ".join(sentences).rstrip("."))
    return f"{told}{' (both sides drew the same random numbers)' if same_draws else ''}." if told else ""


def _of_all(found: re.Match[str]) -> str:
    some, every = int(found[1]), int(found[2])
    others = "the other was" if every - some == 1 else "the others were"
    return f"{some} of {every} variables ({others} not compared)"


def _small(share: float) -> str:
    """`0.2 %`, `less than 0.01 %`."""
    return f"{100 * share:.2g} %" if share >= 1e-4 else "less than 0.01 %"


@functools.lru_cache(maxsize=128)
def _does(name: str) -> str | Mapping[str, str]:
    from flatout.cures import load  # only where a case names a lever

    try:
        return load(name).spec.does
    except (FlatoutError, ImportError, ValueError):
        return ""  # of a plugin that is not here
