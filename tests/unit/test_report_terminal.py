"""The terminal views: they fit their width, lose no number, and let nothing harmful through."""

from __future__ import annotations

import dataclasses
import fcntl
import os
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from sample_case import sample_case

from flatout.model.case import Case, Distribution, Finding, Interval, Split, Steps, Trial, Where
from flatout.model.errors import UnknownView
from flatout.report.formatting import (
    clean,
    duration,
    elide,
    location,
    number,
    quantity,
    share,
    size,
)
from flatout.report.labels import op_name
from flatout.report.terminal import VIEWS, render
from flatout.report.terminal.charts import area, bar, buckets, spark, stacked
from flatout.report.terminal.output import can_show, to_ascii

NAMES = list(VIEWS)
EVIL = (
    "\x1b[31m\x1b]8;;http://evil\x07[bold red]x[/bold red]\x9b2J\u202e\u2066\u200b\x00\x07\r\n\ud800"
    + "\U000e0041"
    + "e\u0301\u0301\u0301\u0301"
    + "é" * 50
)


def plain(case: Case, view: str, width: int = 80, **options: Any) -> str:
    return render(case, view, width, color=False, unicode=True, **options)


# ── what a reader finds ──


def test_the_details_say_it_all() -> None:
    text = plain(sample_case(), "details", 120, directory=Path(".flatout/cases/x"))
    assert text.index("The step waits for its input 61 %") < text.index("Step  400")
    for expected in (
        "median 118.2 ms",
        "p10–p90 110.4 ms – 131.9 ms",
        "found by the batches of Keras fit",
        "warm-up apart: 3 steps, 8.21 s",
        "input 72.1 ms 61 %",
        "compute 33.0 ms 28 %",
        "1  input-bound   72.1 ms per step · 61 % · 3.60 s of the run   high confidence",
        "train.py:32   dataset = dataset.map(load)",
        "evidence  wait per step 72.1 ms · share of stage 96 %",
        "(lever cache; bit for bit the same)",
        "flatout explain retracing",
        "cost not known",
        "warning: The trace window",
        "2.31×",
        ".flatout/cases/x",
        "timeline, ops, memory, input, functions, placement, devices",
    ):
        assert expected in text, expected


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        (
            "timeline",
            ["Course", "Outliers", "covers the steps 40 to 59", "train_step", "tensorboard --logdir"],
        ),
        ("ops", ["9.00 ms", "Conv2D", "GPU:0", "train.py:12", "and 11 more"]),
        ("memory", ["peak 6.0 GiB", "of 80.0 GiB (7.5 %)", "784 MiB", "At the peak"]),
        ("input", ["▓  map", "stateful", "autotune", "TensorSlice → Shuffle → Map → Batch", "random op"]),
        (
            "functions",
            ["rate: Literal[0.1] → Literal[0.099] (11 times)", "called from train.py:58", "5.24 s"],
        ),
        ("placement", ["412", "fallback 12 operations – StringSplitV2", "host-to-device", "float64 input 2"]),
        (
            "devices",
            ["NVIDIA H200", "busy 741.0 ms of 2.40 s (31 %)", "tensor", "straggler", "packages.keras"],
        ),
    ],
)
def test_each_view_shows_its_numbers(view: str, expected: list[str]) -> None:
    text = plain(sample_case(), view, 120)
    for part in expected:
        assert part in text, part


@pytest.mark.parametrize("view", NAMES)
def test_a_view_without_data_says_so_and_what_would_give_it(view: str) -> None:
    text = plain(Case(kind="run"), view)
    assert text.strip()
    if view not in ("overview", "details"):
        assert "flatout" in text
        assert re.search(r"\b(No|not recorded|was not)\b", text)


def test_a_well_tuned_program_is_told_so() -> None:
    steps = sample_case().steps
    assert "Nothing worth changing" in plain(Case(kind="run", verdict="fine", steps=steps), "details")


def test_a_program_without_steps_is_not_called_well_tuned() -> None:
    assert "Nothing worth changing" not in plain(Case(kind="run", verdict="No step was seen."), "overview")


def test_an_unknown_view_lists_the_known_ones() -> None:
    with pytest.raises(UnknownView, match="overview, details, timeline, ops"):
        render(sample_case(), "flames")


def test_the_thirtieth_finding_has_one_line() -> None:
    findings = tuple(Finding("float64", f"number {i}", cost_ms=1.0) for i in range(30))
    text = plain(Case(kind="run", findings=findings), "details")
    assert "number 9" in text
    assert "number 10" not in text
    assert "30  float64" in text


def test_paths_are_seen_from_the_programs_directory() -> None:
    assert "/home/ada" not in plain(sample_case(), "overview")


# ── form ──


@pytest.mark.parametrize("view", NAMES)
@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 160])
def test_no_line_is_too_wide(view: str, width: int) -> None:
    for line in plain(sample_case(), view, width).splitlines():
        assert cell_len(line) <= width, line


@pytest.mark.parametrize("width", [80, 120])
def test_numbers_are_never_cut(width: int) -> None:
    for view in NAMES:
        assert not re.search(r"\d…(?! *\S)", "\n".join(plain(sample_case(), view, width).split("  "))), view


def test_color_only_when_asked() -> None:
    assert "\x1b" not in render(sample_case(), "overview", 80)
    assert "\x1b[" in render(sample_case(), "overview", 80, color=True)


@pytest.mark.parametrize("view", NAMES)
def test_ascii_where_unicode_is_not_to_be_had(view: str) -> None:
    text = render(sample_case(), view, 80, color=False, unicode=False)
    assert text.isascii()
    assert [len(line) for line in text.splitlines()] == [
        cell_len(line) for line in plain(sample_case(), view).splitlines()
    ]


def test_encodings_are_judged() -> None:
    assert can_show("utf-8")
    for encoding in ("ascii", "latin-1", "cp1252", None, "no-such-encoding"):
        assert not can_show(encoding)
    assert to_ascii("日本 µ") == "???? u"
    assert to_ascii("n²/2 pièces, 10¹²") == "n2/2 pieces, 10??"


def calls_for(steps: int) -> int:
    """Calls of Python functions that all views of a case make: what their time grows with, on any machine."""
    case, count = sample_case(steps), 0

    def counted(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        for view in NAMES:
            plain(case, view)
    finally:
        sys.setprofile(before)
    return count


def test_ten_times_the_steps_are_not_a_hundred_times_the_work() -> None:
    calls_for(500)  # what is done once: imports, caches
    assert calls_for(5000) < 12 * calls_for(500)


# ── text that is not to be trusted ──


def poisoned(value: Any) -> Any:
    """The same case with every text replaced by an evil one."""
    if isinstance(value, str):
        return EVIL + value
    if isinstance(value, tuple):
        return tuple(poisoned(item) for item in value)
    if isinstance(value, dict):
        return {poisoned(key): poisoned(item) for key, item in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changes = {field.name: poisoned(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return dataclasses.replace(value, **changes)
    return value


@pytest.mark.parametrize("view", NAMES)
def test_nothing_evil_reaches_the_terminal(view: str) -> None:
    text = plain(poisoned(sample_case()), view, 100)
    bad = [c for c in text if c != "\n" and (not c.isprintable() or c in "\u202e\u2066\u200b")]
    assert bad == []
    assert "evil" not in text
    assert "\u0301" * 3 not in text
    text.encode("utf-8")
    assert max(cell_len(line) for line in text.splitlines()) <= 100


def test_markup_is_only_text() -> None:
    case = dataclasses.replace(sample_case(), verdict="[bold]loud[/bold] [/nothing] :smile:")
    assert "[bold]loud[/bold] [/nothing] :smile:" in plain(case, "overview")


def test_clean() -> None:
    assert clean("a\x1b[31mb\x1b[0m\tc\n d") == "ab c d"
    assert clean("\x1b]0;title\x07after") == "after"
    assert clean("left\u202eright\u200b") == "leftright"
    assert clean("\x00\x07") == "��"
    assert clean("\ud800x") == "�x"
    assert clean("עברית 日本") == "עברית 日本"
    assert len(clean("x" * 10_000_000)) <= 2000
    assert clean("y" * 50, 10) == "y" * 9 + "…"
    assert clean(None) == "None"


def test_a_case_with_strange_numbers_renders() -> None:
    nothing = Distribution(0.0, 0.0, 0.0)
    for times in ((), (0.0,), (0.0, 0.0), (1e12, 1e-9)):
        steps = Steps(len(times), "x", nothing, Split(), times_ms=times, window=(0, 0))
        for view in NAMES:
            assert plain(Case(kind="run", steps=steps), view)


# ── the small parts ──


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "0 ms"),
        (0.0042, "4.2 µs"),
        (0.5, "0.50 ms"),
        (9.363, "9.36 ms"),
        (118.24, "118.2 ms"),
        (8211, "8.21 s"),
        (63_200, "63.2 s"),
        (123_456, "123 s"),
        (3_600_000, "60.0 min"),
        (None, "–"),
    ],
)
def test_durations(milliseconds: float | None, text: str) -> None:
    assert duration(milliseconds) == text


def test_other_numbers() -> None:
    assert [share(value) for value in (0.0, 0.0042, 0.099, 0.61, 1.0)] == [
        "0 %",
        "0.4 %",
        "9.9 %",
        "61 %",
        "100 %",
    ]
    assert [share(value) for value in (0.0003, -0.0003, 1e-9)] == ["0.0 %"] * 3
    assert [show(float("nan")) for show in (duration, share, size, number)] == ["–"] * 4
    assert [size(value) for value in (12, 2048, 6_412_001_280)] == ["12 B", "2.0 KiB", "6.0 GiB"]
    assert [number(value) for value in (25600, 0.25, 12.34)] == ["25,600", "0.25", "12.3"]
    assert quantity(float("nan"), "ms") == "nan ms"
    assert quantity(True, "") == "yes"
    assert quantity(3, "files") == "3 files"
    assert quantity(2.5, "s") == "2.50 s"


def test_an_op_is_named_without_the_calls_around_it() -> None:
    assert op_name("StatefulPartitionedCall/gradient_tape/dense/MatMul") == "gradient_tape/dense/MatMul"
    assert op_name("PartitionedCall_3/StatefulPartitionedCall/Relu") == "Relu"
    for kept in ("StatefulPartitionedCall", "model/StatefulPartitionedCall/Relu", ""):
        assert op_name(kept) == kept


def test_the_width_is_that_of_the_terminal_also_through_a_pipe() -> None:
    """A pseudo-terminal of 72 columns is standard error; standard output is a pipe."""
    leader, follower = os.openpty()
    try:
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 72, 0, 0))
        environment = {key: value for key, value in os.environ.items() if key != "COLUMNS"}
        ask = [sys.executable, "-c", "from flatout.report.terminal.output import columns; print(columns())"]
        streams: Any = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": follower}
        assert subprocess.run(ask, env=environment, check=True, **streams).stdout.strip() == b"72"
        given = subprocess.run(ask, env={**environment, "COLUMNS": "90"}, check=True, **streams)
        assert given.stdout.strip() == b"90"
        streams["stderr"] = subprocess.DEVNULL
        assert subprocess.run(ask, env=environment, check=True, **streams).stdout.strip() == b"100"
    finally:
        os.close(leader)
        os.close(follower)


def test_shortening() -> None:
    assert elide("/a/very/long/path/train.py", 14, middle=True) == "/a/v…/train.py"
    assert cell_len(elide("日本日本日本", 7)) <= 7
    where = sample_case().findings[0].where
    assert location(where, 14).endswith(":32")
    beside = Where("/home/me/project/src/agents/dqn.py", 108)
    assert location(beside, base="/home/me/project/src/main") == "../agents/dqn.py:108"
    assert location(beside, base="/home/me/project/src/") == "agents/dqn.py:108"
    assert location(beside, base="/home/you") == "/home/me/project/src/agents/dqn.py:108"
    assert location(Where("/usr/lib/x.py", 1), base="/home/me") == "/usr/lib/x.py:1"
    assert location(None) == ""


def test_charts() -> None:
    assert len(stacked({"input": 1.0, "compute": 1e6}, 50).plain) == 50
    assert stacked({}, 50).plain == ""
    assert bar(1e-9, 1.0, 10) == "█"
    assert spark([1.0, 1.0], 1.0, 1.0) == "▁▁"
    assert sum(len(group) for group in buckets(list(range(5000)), 77)) == 5000
    assert area([0.0, 8.0], 2, 8.0) == [" █", " █"]


def test_trials_on_top_of_the_winner_stand_apart_and_the_undecided_are_called_so():
    function = "function=/home/ada/train.py:9"
    won = Trial((function,), "won", Interval(4.0, 3.0, 5.0), parity="reassociated", stage="single", rounds=9)
    upon = Trial((function, "xla"), "lost", Interval(0.7, 0.6, 0.8), stage="single", rounds=9)
    waiting = Trial((function, "bf16"), "noise", stage="single", rounds=1)
    text = render(Case(kind="tune", trials=(won, upon, waiting)), "trials", 100)
    assert "On top  one at a time, against the program with function=train.py:9" in text
    lines = [line.split() for line in text.splitlines()]
    assert ["xla", "0.70×", "[0.60,", "0.80]", "slower", "9"] in lines
    assert ["bf16", "not", "decided", "1"] in lines


def test_a_patch_is_shown_with_its_blanks() -> None:
    case = dataclasses.replace(sample_case(), kind="tune", patch="--- a/x\n+++ b/x\n+    y = 1  # \x1b[31mred\n")
    assert "+    y = 1  # red" in plain(case, "trials")
