"""Environments against each other: what a user may name, the row between two, the search, and what is told."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from runs import case

from flatout.compare.bisection import Bisection, Tried
from flatout.compare.differences import Difference
from flatout.compare.environments import EnvironmentComparison, raced_change
from flatout.model.case import Function, Interval, Op
from flatout.model.errors import EnvironmentNotMade, InvalidOption
from flatout.report.terminal import bisection as bisection_screen
from flatout.report.terminal import environments as screen
from flatout.versions import environments, releases
from flatout.versions.bisection import Found, first_slow
from flatout.versions.differences import (
    Side,
    finding_differences,
    layer,
    observed_comparison,
    op_changes,
    op_type,
    package_differences,
    phase_changes,
    trace_differences,
)
from flatout.versions.environments import Environment, environment
from flatout.versions.observation import Observed
from flatout.versions.specification import Specification, specification
from waiting import until

# ── what a user types ────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_dot_is_this_python() -> None:
    assert specification(".") == Specification(".", sys.executable)


def test_a_virtual_environment_and_its_python_are_the_same(tmp_path: Path) -> None:
    python = tmp_path / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    assert specification(str(tmp_path / "venv")).python == str(python)
    assert specification(str(python)).python == str(python), "the link is what makes it an environment"


def test_packages_a_python_and_a_list_of_packages(tmp_path: Path) -> None:
    assert specification("tensorflow==2.15").requirements == ("tensorflow==2.15",)
    both = specification("python3.10 tensorflow[and-cuda]==2.12 pandas")
    assert (both.python, both.requirements) == ("python3.10", ("tensorflow[and-cuda]==2.12", "pandas"))
    file = tmp_path / "lock.txt"
    file.write_text("# made\n--index-url x\nkeras==3.1 \\\n    --hash=sha256:ab\nnumpy==2.0  # pinned\n")
    assert specification(str(file)).requirements == ("keras==3.1", "numpy==2.0")
    assert not specification("3.12").is_path
    assert specification(". keras==3.4").is_path


@pytest.mark.parametrize("text", ["", "missing/venv", "tensorflow=2.15", "./train.py", ". python3.10", "a/b.txt"])
def test_what_is_none_of_these_is_refused(text: str) -> None:
    with pytest.raises(InvalidOption, match="--env"):
        specification(text)


def test_a_path_with_blanks_is_one_environment(tmp_path: Path) -> None:
    python = tmp_path / "my venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    assert specification(f"{tmp_path}/my venv/") == Specification(f"{tmp_path}/my venv/", str(python))
    quoted = specification(f"'{tmp_path}/my venv' keras==3.4")
    assert (quoted.python, quoted.requirements) == (str(python), ("keras==3.4",))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_list_of_packages_in_the_encodings_that_pip_reads(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "all.txt").write_bytes("keras==3.1 \\\r\n    --hash=sha256:ab\r\nnumpy==2.0\r\n".encode(encoding))
    assert specification(str(tmp_path / "all.txt")).requirements == ("keras==3.1", "numpy==2.0")


def test_a_list_that_is_no_text_and_a_quotation_that_does_not_end_are_refused(tmp_path: Path) -> None:
    (tmp_path / "all.txt").write_bytes(b"keras\xff==3.1")
    with pytest.raises(InvalidOption, match="not a text in UTF-8"):
        specification(str(tmp_path / "all.txt"))
    with pytest.raises(InvalidOption, match="quotation mark that is not closed"):
        specification("it's")


def test_what_is_there_is_asked_for_its_packages() -> None:
    found = environment(specification("."))
    assert found.version == ".".join(map(str, sys.version_info[:3]))
    assert "numpy" in found.packages
    assert found.text in found.title


def test_a_python_that_is_not_there_is_one_message(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(environments.VARIABLE, str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentNotMade, match=r"no python3\.99 on PATH"):
        environment(specification("python3.99 nothing==1.0"))
    assert not list(tmp_path.glob("nothing-1.0-*/*")), "what is not complete is taken away"


def test_other_packages_are_another_environment_and_local_ones_count_their_files(tmp_path: Path) -> None:
    first, second = (specification(text) for text in ("tensorflow==2.15", "tensorflow==2.16.1"))
    assert environments._key(first) != environments._key(second)
    assert environments._key(first) == environments._key(specification("tensorflow==2.15"))
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "code.py").write_text("a = 1\n")
    before = environments._key(specification(str(tmp_path)))
    (tmp_path / "gone.py").symlink_to("nowhere")
    assert environments._key(specification(str(tmp_path))) == before
    (tmp_path / "more.py").write_text("a = 2\n")
    assert environments._key(specification(str(tmp_path))) != before


def test_an_environment_whose_python_is_gone_is_made_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(environments.VARIABLE, str(tmp_path))
    made: list[Path] = []

    def make(spec: Specification, directory: Path, say: Callable[[str], None]) -> None:
        (directory / "bin").mkdir(parents=True, exist_ok=True)
        if not made:
            (directory / "bin" / "python").symlink_to(tmp_path / "base")
        (directory / environments.MADE).write_text("{}")
        made.append(directory)

    def again() -> int:
        environments.make(specification("keras==3.4"), lambda text: None)
        return len(made)

    monkeypatch.setattr(environments, "_make", make)
    (tmp_path / "base").touch()
    assert [again(), again()] == [1, 1]
    (tmp_path / "base").unlink()
    assert again() == 2


def test_a_python_that_hangs_is_one_message(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexec sleep 30\n")
    python.chmod(0o755)
    monkeypatch.setattr(environments, "QUESTION_SECONDS", 0.05)
    with pytest.raises(EnvironmentNotMade, match="does not run as a Python"):
        environment(specification(str(python)))
    with pytest.raises(EnvironmentNotMade, match="does not run as a Python"):
        environments._put_on_top(tmp_path, str(python))


def test_a_tool_that_takes_long_says_so_and_is_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ended = tmp_path / "pid"
    command = ["sh", "-c", f"sleep 60 & echo $! > {ended}; wait"]
    monkeypatch.setattr(environments, "SAY_EVERY", 0.2)
    monkeypatch.setattr(environments, "MOST_SECONDS", 0.7)
    said: list[str] = []
    with pytest.raises(EnvironmentNotMade, match="sh was still at it"):
        environments._run(command, specification("keras==3.4"), said.append)
    assert said
    assert said[0].startswith("sh has worked for")
    state = Path(f"/proc/{ended.read_text().strip()}/stat")
    until(lambda: not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z")


# ── the row and the search ───────────────────────────────────────────────────────────────────────────────────────────

KNOWN = ["2.21.0", "2.17.1", "2.17.0", "2.16.2", "2.16.0rc0", "2.15.0", "2.15.1", "2.9.0"]


def test_releases_between_two_are_in_their_order() -> None:
    assert releases.between(KNOWN, "2.15", "2.17.1") == ["2.15", "2.15.1", "2.16.2", "2.17.0", "2.17.1"]


def test_the_row_of_one_package_keeps_the_others() -> None:
    good, bad = specification("python3.11 keras==3.0 numpy<2"), specification("python3.11 keras==3.4 numpy<2")
    stops = releases.row(good, bad, ("3.1", "3.4", "3.2"))
    assert [stop.name for stop in stops] == ["keras 3.0", "keras 3.1", "keras 3.2", "keras 3.4"]
    assert stops[1].specification.requirements == ("keras==3.1", "numpy<2")
    assert stops[1].specification.python == "python3.11"


def test_packages_of_two_lists_change_one_by_one() -> None:
    good, bad = specification("a==1 b==1 c==1"), specification("a==2 b==1 d==1")
    stops = releases.row(good, bad)
    assert [stop.specification.requirements for stop in stops] == [
        ("a==1", "b==1", "c==1"),
        ("a==2", "b==1", "c==1"),
        ("a==2", "b==1"),
        ("a==2", "b==1", "d==1"),
    ]
    assert [stop.name for stop in stops[1:]] == ["a==1 → a==2", "c==1 → no c", "no d → d==1"]


@pytest.mark.parametrize(
    ("good", "bad"), [("a==1", "a==1"), ("python3.10 a==1", "a==2"), ("a==2", "a==1"), (".", "a==1"), ("a", "a==2")]
)
def test_a_row_that_leads_nowhere_is_refused(good: str, bad: str) -> None:
    with pytest.raises((InvalidOption, EnvironmentNotMade)):
        releases.row(specification(good), specification(bad), ("1.5",))


@pytest.mark.parametrize("first", range(1, 10))
def test_the_first_slow_one_is_found_with_few_questions(first: int) -> None:
    asked: list[int] = []
    found = first_slow(10, _asking(asked, lambda number: number >= first))
    assert found == Found(first - 1, first)
    assert len(asked) <= 4
    assert len(set(asked)) == len(asked)


def test_what_cannot_be_asked_is_passed_over_and_told() -> None:
    broken = {4, 5}
    asked: list[int] = []
    found = first_slow(10, _asking(asked, lambda number: None if number in broken else number >= 5))
    assert found == Found(3, 6, (4, 5))
    assert first_slow(5, lambda number: None) == Found(0, 4, (1, 2, 3))
    assert first_slow(2, lambda number: None) == Found(0, 1)


def _asking(asked: list[int], answer: Callable[[int], bool | None]) -> Callable[[int], bool | None]:
    def ask(number: int) -> bool | None:
        asked.append(number)
        return answer(number)

    return ask


# ── what differs ─────────────────────────────────────────────────────────────────────────────────────────────────────


def side(tmp_path: Path, median: float, ops: tuple[Op, ...] = (), seed: int = 0, **changes: object) -> Side:
    made = [replace(case(median, seed + n), ops=ops, **changes) for n in range(2)]
    observed = tuple(Observed(one, tmp_path, True) for one in made)
    return Side(Environment("env", sys.executable, "3.11.7", {"numpy": "2.0", "keras": "3.0"}), observed)


def ops(conv: float, dense: float) -> tuple[Op, ...]:
    return (
        Op(
            "gradient_tape/sequential_1/conv2d_1_2/convolution/Conv2DBackpropInput", "Conv2DBackpropInput", self_ms=conv
        ),
        Op("sequential_1/dense/MatMul", "MatMul", self_ms=dense),
    )


def test_the_same_environment_twice_differs_in_nothing(tmp_path: Path) -> None:
    before, after = side(tmp_path, 20.0, ops(8.0, 4.0)), side(tmp_path, 20.2, ops(8.1, 3.9), seed=7)
    seen = observed_comparison(before, after)
    assert op_changes(seen, before, after, op_type) == ()
    assert op_changes(seen, before, after, layer) == ()
    assert trace_differences(before, after) == ()
    assert package_differences(before.environment, after.environment) == ()
    assert finding_differences(before, after) == ()
    assert all(one.outcome == "same" for one in phase_changes(before, after))


def test_an_op_and_its_layer_that_take_longer_are_named(tmp_path: Path) -> None:
    before, after = side(tmp_path, 20.0, ops(8.0, 4.0)), side(tmp_path, 32.0, ops(20.0, 4.0), seed=7)
    seen = observed_comparison(before, after)
    assert [(one.name, one.outcome) for one in op_changes(seen, before, after, op_type)] == [
        ("Conv2DBackpropInput", "slower")
    ]
    assert [one.name for one in op_changes(seen, before, after, layer)] == ["conv2d"]


def test_traces_imports_and_packages_that_differ_are_named(tmp_path: Path) -> None:
    functions = (Function("step", None, traces=3, trace_ms=900.0, nodes=40),)
    fewer = (Function("step", None, traces=1, trace_ms=300.0, nodes=40),)
    slow, quick = {"tensorflow_import_seconds": 9.0}, {"tensorflow_import_seconds": 3.0}
    before = side(tmp_path, 20.0, functions=fewer, environment=quick)
    after = side(tmp_path, 20.0, functions=functions, environment=slow)
    assert [(one.what, one.before, one.after) for one in trace_differences(before, after)] == [
        ("traces of the same functions again", "0", "2")
    ]
    assert [(one.name, one.outcome) for one in phase_changes(before, after) if one.outcome != "same"] == [
        ("importing TensorFlow", "slower"),
        ("tracing functions", "slower"),
    ]
    other = Environment("other", sys.executable, "3.12.1", {"numpy": "2.0", "keras": "3.4", "slow": "2"})
    assert [one.what for one in package_differences(before.environment, other)] == ["Python", "keras", "slow"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gradient_tape/sequential/conv2d_1/Conv2D/Conv2DBackpropInput", "conv2d"),
        ("sequential_1/block3_conv2_1/Relu", "block3_conv2"),
        ("Adam/add_9", "adam"),
        ("adam/Sqrt", "adam"),
        ("MatMul", ""),
    ],
)
def test_layers_are_told_by_their_names_in_keras_2_and_3(name: str, expected: str) -> None:
    assert layer(Op(name, "x")) == expected


# ── what is told ─────────────────────────────────────────────────────────────────────────────────────────────────────


def comparison(speedup: Interval | None, **changes: object) -> EnvironmentComparison:
    made = EnvironmentComparison("train.py", "A (Keras 2)", "B (Keras 3)", raced_change("step", 10.0, 20.0, speedup))
    return replace(made, rounds=15, groups=3, **changes)


def test_the_verdict_says_how_many_times_as_long_or_what_would_have_been_seen() -> None:
    slower = comparison(Interval(0.5, 0.45, 0.55))
    assert slower.outcome == "slower"
    assert "2.00 times as long (1.82 to 2.22) with B (Keras 3) as with A (Keras 2)" in slower.verdict
    assert comparison(Interval(2.0, 1.8, 2.2)).outcome == "faster"
    same = comparison(Interval(1.0, 0.96, 1.04))
    assert same.outcome == "same"
    assert "No measurable difference" in same.verdict
    assert "more than 4 %" in same.verdict
    assert comparison(Interval(1.03, 1.005, 1.06)).outcome == "same", "a percent is what two processes differ by"
    assert "not known" in comparison(None).verdict


def test_the_screen_shows_what_differs_and_nothing_hostile() -> None:
    hostile = "slow\x1b[31m[red]pkg"
    packages = tuple(Difference(f"{hostile}{n}", "1", "2", "software") for n in range(20))
    text = screen.render(comparison(Interval(0.5, 0.45, 0.55), packages=packages, notes=("A: lost",)), 100, False)
    assert "15 paired rounds" in text
    assert "+100.0 % [+81.8 %, +122.2 %]" in text
    assert "\x1b" not in text
    assert "[red]pkg0" in text
    assert "and 8 more" in text
    assert "A: lost" in text


def test_a_bisection_names_the_release_and_its_doubts() -> None:
    tried = (Tried("keras 3.1", Interval(1.0, 0.97, 1.03), False), Tried("keras 3.2", note="cannot be installed"))
    whole = Tried("keras 3.4", Interval(2.0, 1.9, 2.1), True)
    found = Bisection(
        "train.py", "keras==3.0", "keras==3.4", "found", whole, "keras 3.1", "keras 3.3", ("keras 3.2",), tried, 5
    )
    assert found.verdict.startswith("keras 3.3 made it slower. A step takes 2.00 times as long (1.90 to 2.10)")
    assert "keras 3.2" in found.verdict
    assert "beyond doubt" not in found.verdict
    text = bisection_screen.render(found, 100, False)
    assert "passed over: cannot be installed" in text
    unsure = replace(found, tried=(Tried("keras 3.1", Interval(1.3, 0.9, 1.9), False, sure=False),))
    assert "beyond doubt" in unsure.verdict
    assert "not slower" in replace(found, outcome="not-slower").verdict
