"""Every pattern sees what it should in tests/fixtures/check/<cause>/bad.py, and nothing in good.py.

A line of bad.py that should be reported ends with `# expect: pattern`. good.py holds look-alikes: no default pattern of
any cause may say anything about them, nor any pattern of its own cause.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from flatout.causes import catalogue, patterns
from flatout.check.checker import Checker
from flatout.check.selection import select
from flatout.source.analysis.patterns import Pattern

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "check"
CAUSES = sorted({item.cause for item in patterns()})
_EXPECT = re.compile(r"#\s*expect:\s*(?P<names>[\w, -]+)$")


def seen(file: Path, cause: str) -> set[tuple[int, str]]:
    outcome = Checker(select([cause])).check(file.read_text(), "program.py")
    assert not outcome.problem
    return {(item.line, item.pattern) for item in outcome.diagnostics if item.cause == cause}


@pytest.mark.parametrize("cause", CAUSES)
def test_faults_are_seen_where_they_are(cause: str) -> None:
    file = FIXTURES / cause / "bad.py"
    wanted = set()
    for number, line in enumerate(file.read_text().splitlines(), start=1):
        found = _EXPECT.search(line)
        if found is not None:
            wanted |= {(number, name.strip()) for name in found["names"].split(",")}
    assert seen(file, cause) == wanted
    missing = {item.name for item in catalogue()[cause].spec.patterns} - {name for _, name in wanted}
    assert not missing, f"bad.py of {cause} shows no {missing}"


@pytest.mark.parametrize("cause", CAUSES)
def test_good_code_is_left_in_peace(cause: str) -> None:
    file = FIXTURES / cause / "good.py"
    assert seen(file, cause) == set()
    outcome = Checker(select()).check(file.read_text(), "program.py")
    assert [(item.line, item.full_name) for item in outcome.diagnostics] == []


@pytest.mark.parametrize("pattern", patterns(), ids=lambda pattern: pattern.full_name)
def test_good_code_looks_like_the_fault(pattern: Pattern) -> None:
    """A file in which a pattern has nothing to look at would be quiet without it."""
    text = (FIXTURES / pattern.cause / "good.py").read_text()
    assert any(word in text for word in pattern.words), f"good.py of {pattern.cause} has none of {pattern.words}"


def test_there_are_patterns_enough_and_names_are_unique() -> None:
    names = [item.full_name for item in patterns()]
    assert len(names) == len(set(names)) >= 35
    assert all((item.detect.__doc__ or "").strip() for item in patterns())


def test_no_pattern_needs_a_word_that_its_calls_do_not_have() -> None:
    """The words are what a file is searched for first: calls of a pattern without words of its own are its words."""
    for item in patterns():
        assert item.words
        assert item.calls or item.nodes
