"""Ways in which people write training code: what is found in each, what is offered, what the patch computes.

Each program is observed once. Its patch is made from the case, without TensorFlow; then original and patched program
run to their end with the same random numbers, all of them forked from one process that has imported TensorFlow.

One program stands for them in the ordinary run: the only one whose cure no other test runs for real. What the others
hold is held there piece by piece: causes by fixtures, edits by pairs of files, cures in `test_cures_*_for_real.py`.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from observed import case_in, environment, observed, patiently

from flatout.cures import find
from flatout.measure import parity
from flatout.model.case import Case
from flatout.model.levers import parse
from flatout.process.watchdog import Watchdog
from flatout.trial import patch, patched_run
from flatout.trial.child_process import ChildProcess, Ended, Launch
from flatout.trial.fork_servers import ForkServers
from flatout.tune import parity as runs
from flatout.tune import plan
from flatout.tune.starter import Starter

sys.path.insert(0, str(Path(__file__).parent.parent / "programs"))
from pattern_manifest import NOTHING_WORTH, PATTERNS, Pattern

pytestmark = pytest.mark.slow

USUAL = ("vae",)
SECONDS = 300.0
Observe = Callable[[Pattern], Case]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All programs side by side, as one fork server runs them."""
    home = tmp_path_factory.mktemp("patterns")
    for one in PATTERNS:
        shutil.copy(one.path, home / f"{one.name}.py")
    return home


@pytest.fixture(scope="module")
def observe(home: Path) -> Observe:
    """The case of a program, kept for the tests that follow."""
    kept: dict[str, Case] = {}

    def look(one: Pattern) -> Case:
        done = observed(home, "-q", f"{one.name}.py")
        assert done.returncode == 0, done.stderr[-2000:]
        return case_in(home)

    def case_of(one: Pattern) -> Case:
        if one.name not in kept:
            kept[one.name] = patiently(lambda: look(one), lambda case: not complaint(case, one), home)
        return kept[one.name]

    return case_of


def complaint(case: Case, one: Pattern) -> str:
    """What is wrong with the findings of a program; nothing where they are right."""
    told = ", ".join(f"{item.cause} {item.cost_share or 0:.0%}" for item in case.findings) or "nothing"
    if one.finding and (not case.findings or case.findings[0].cause not in one.finding):
        return f"the first finding is none of {one.finding}: {told}"
    worth = [item for item in case.findings if (item.cost_share or 0.0) > NOTHING_WORTH]
    wrong = [item.cause for item in worth if item.cause not in (*one.finding, *one.also)]
    return f"not true of it: {wrong} in {told}" if wrong else ""


def patterns(*, patched: bool = False) -> list[Any]:
    """All but the usual ones run with `scripts/test --all` only."""
    return [
        pytest.param(one, id=one.name, marks=() if one.name in USUAL else pytest.mark.exhaustive)
        for one in PATTERNS
        if one.patch or not patched
    ]


@pytest.mark.parametrize("one", patterns())
def test_the_first_finding_is_right_and_its_cures_are_offered(one: Pattern, observe: Observe) -> None:
    case = observe(one)
    assert not complaint(case, one)
    offered = {parse(fix.lever)[0] for finding in case.findings for fix in finding.fixes if fix.lever}
    assert offered >= set(one.cures)


def levers_of(case: Case, names: tuple[str, ...]) -> tuple[str, ...]:
    """As `tune` would name them: each function of its own where there is one, and one setting of all others."""
    found: list[str] = []
    for name in names:
        texts = [text for text in plan.make(case).levers if parse(text)[0] == name]
        assert texts, f"tune would not try {name}"
        places = [text for text in texts if ":" in text]
        found += places if find(name).spec.several and places else texts[-1:]
    return tuple(found)


@pytest.fixture(scope="module")
def starter(home: Path) -> Iterator[Starter]:
    watchdog = Watchdog()
    servers = ForkServers((sys.executable, str(home / f"{PATTERNS[0].name}.py")), watchdog, home)
    with pytest.MonkeyPatch.context() as change:
        for name, value in environment().items():
            change.setenv(name, value)
        change.chdir(home)
        yield Starter(home / "trials", watchdog, servers)
    servers.close()
    watchdog.close()


def numbers_of(launch: Launch, directory: Path, starter: Starter) -> parity.Numbers:
    """What a program computes from its start to its end with pinned random numbers. It has to end with 0."""
    child = ChildProcess(replace(launch, pinned=True), directory, starter.watchdog, starter.fork_servers)
    try:
        with contextlib.suppress(Ended):
            child.warm(SECONDS)
            child.go(runs.ALL_STEPS)
            child.block(SECONDS)
            child.warm(SECONDS)  # nothing comes any more
        assert child.why_ended() == "the program ended"
    finally:
        child.end()
    return parity.Numbers.load(directory / runs.FILE)


@pytest.mark.parametrize("one", patterns(patched=True))
def test_the_patch_computes_the_same(one: Pattern, observe: Observe, home: Path, starter: Starter) -> None:
    case = observe(one)
    made = patch.make(case, levers_of(case, one.patch))
    assert not made.unwritten
    plain = Launch((sys.executable, str(home / f"{one.name}.py")))
    changed = replace(plain, sources=tuple(patched_run.lay_out(made, home / f"patched {one.name}").items()))
    before, after = (
        numbers_of(launch, home / f"{side} {one.name}", starter)
        for side, launch in (("before", plain), ("after", changed))
    )
    found = parity.compare(before, after)
    assert found.verdict in runs.AGREE, f"{found.sentence}\n{made.diff}"
    assert before.steps >= 10, "too little was compared"
