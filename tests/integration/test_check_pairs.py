"""The programs before and after each repair, and after some other edits, are run and print the same where they should.

The first line of a pair tells: `# equal: exact`, `close` (numbers to rounding), `no` (it may differ, but must run), or
`not run` (the program before the repair does not run with this TensorFlow: that is its fault).
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import forked
import pytest

pytestmark = pytest.mark.slow

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
PAIRS = sorted(
    str(path.relative_to(FIXTURES)).removesuffix(".in.py")
    for folder in ("check", "edits")
    for path in FIXTURES.glob(f"{folder}/*/*.in.py")
    if folder == "check" or path.read_text().startswith("# equal: ")
)
NUMBER = re.compile(r"-?\d+\.?\d*(?:e-?\d+)?")


def equal(pair: str) -> str:
    head = (FIXTURES / f"{pair}.in.py").read_text().partition("\n")[0]
    return head.removeprefix("# equal: ")


@pytest.fixture(scope="module")
def said() -> dict[str, str]:
    files = [
        str(FIXTURES / f"{pair}.{side}.py") for pair in PAIRS if equal(pair) != "not run" for side in ("in", "out")
    ]
    runner = Path(__file__).with_name("check_pairs.py")
    code, found, errors = forked.run(runner, *files, directory=FIXTURES)
    assert code == 0, errors[-3000:]
    answers: dict[str, str] = json.loads(found)
    return answers


@pytest.mark.parametrize("pair", [pair for pair in PAIRS if equal(pair) != "not run"])
def test_both_programs_say_the_same(pair: str, said: dict[str, str]) -> None:
    before, after = (said[str(FIXTURES / f"{pair}.{side}.py")] for side in ("in", "out"))
    assert before
    assert not before.startswith("error"), before
    assert not after.startswith("error"), after
    if equal(pair) == "exact":
        assert after == before
    elif equal(pair) == "close":
        assert NUMBER.sub("", after) == NUMBER.sub("", before)
        assert [float(n) for n in NUMBER.findall(after)] == pytest.approx(
            [float(n) for n in NUMBER.findall(before)], rel=1e-5, abs=1e-6
        )
