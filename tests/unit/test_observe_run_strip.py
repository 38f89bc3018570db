"""The run over time: bounded moments in the program, stretches in the case, a strip in the report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from sample_case import run as sample_run
from test_observe_run_tree import recording_of

from flatout.model.run_tree import RunTree, Stretch
from flatout.observe.reading import run_tree
from flatout.observe.reading.run_strip import MOST_EPOCHS, epoch_starts
from flatout.observe.strip import FIRST_SECONDS, MOST_IN_A_MOMENT, MOST_MOMENTS, Strip
from flatout.report.html.views import run as view


def test_a_long_run_has_as_many_moments_as_a_short_one() -> None:
    strip = Strip(100.0)
    for number in range(40_000):
        strip.add(100.0 + 0.5 * (number + 1), number // 20_000, 0.5)
    assert MOST_MOMENTS / 2 <= len(strip.moments) <= MOST_MOMENTS
    assert strip.width == pytest.approx(FIRST_SECONDS * 2**9)
    written = strip.written({0: 7, 1: 8})
    assert sum(seconds for moment in written["moments"] for _, seconds in moment) == pytest.approx(20_000, rel=1e-3)
    assert written["moments"][0][0][0] == 7
    assert written["moments"][-1][0][0] == 8


def test_of_a_moment_the_most_frequent_stacks_are_written() -> None:
    strip = Strip(0.0)
    for stack in range(10):
        strip.add(0.05, stack, 0.001 * (stack + 1))
    (moment,) = strip.written({stack: stack for stack in range(9)})["moments"]
    assert [place for place, _ in moment] == [8, 7, 6, 5]
    assert len(moment) == MOST_IN_A_MOMENT


SPANS = [
    [1, 0, "fit", "fit", "/x/train.py", 9, 1, 6.0],
    [2, 1, "steps", "fit", "/x/train.py", 9, 2, 2.0],
    [3, 1, "callback", "Gallery.on_epoch_end", "/x/train.py", 3, 2, 3.0],
    [4, 3, "prediction", "predict", "/x/train.py", 4, 2, 1.0],
    [5, 3, "checkpoint", "Model.save", "/x/train.py", 5, 2, 1.0],
]
LINE = ["/x/train.py", 4, "on_epoch_end", 3]
ROWS = [
    [0, 0, "tensorflow", "tensorflow", 3.0, 60, [["/x/train.py", 1, "<module>", 1]]],
    [2, 1, "", "tensorflow", 2.0, 60, []],
    [4, 1, "", "keras", 1.0, 60, [LINE]],
    [5, 1, "", "keras", 1.0, 60, [LINE]],
]


def read(directory: Path, strip: object) -> RunTree:
    recording = recording_of(directory, SPANS, ROWS, epoch=[{"at": 14.0}, {"at": 16.0}])
    recording.facts["run"][0]["strip"] = strip
    tree = run_tree.read(recording, None, [], None)
    assert tree is not None
    return tree


def test_stretches_are_what_most_of_a_moment_was(tmp_path: Path) -> None:
    moments = [[[0, 1.0]], [[0, 1.0]], [[0, 0.4], [1, 0.6]], [[1, 1.0]], [[2, 0.9]], [], [[3, 1.0]], [[77, 1.0]]]
    tree = read(tmp_path, {"began": 10.5, "width": 1.0, "moments": moments})
    assert [(one.at, one.seconds, one.kind, one.name) for one in tree.strip] == [
        (0.0, 0.5, "interpreter", ""),
        (0.5, 2.0, "import", "tensorflow"),
        (2.5, 2.0, "steps", "fit"),
        (4.5, 2.0, "callback", "Gallery.on_epoch_end"),
        (6.5, 1.0, "checkpoint", "Model.save"),
        (7.5, 1.0, "unattributed", ""),
        (8.5, 1.5, "exit", ""),
    ]
    assert tree.strip[3].where is not None
    assert tree.strip[3].where.line == 4
    assert tree.epoch_starts == (4.0, 6.0)
    assert sum(one.seconds for one in tree.strip) == pytest.approx(tree.seconds)


@pytest.mark.parametrize("strip", [None, {}, {"began": "x"}, {"began": 10.5, "width": 0, "moments": []}, 3])
def test_a_damaged_strip_is_none(tmp_path: Path, strip: object) -> None:
    assert read(tmp_path, strip).strip == ()


def test_of_ten_thousand_epochs_some_are_marked() -> None:
    found = epoch_starts([{"at": float(number)} for number in range(10_000)], 0.0)
    assert len(found) == MOST_EPOCHS
    assert found[1] == 50.0


def test_the_strip_of_a_report_has_a_text_for_each_stretch() -> None:
    made = view.strip(sample_run())
    assert made is not None
    assert made.count('class="stretch') == 4
    assert made.count('class="epoch"') == 3
    assert 'title="7.5 s, for 7.00 s: callbacks Gallery.on_epoch_end train.py:19"' in made
    assert "import tensorflow as tf" in made
    assert view.strip(replace(sample_run(), strip=())) is None


def test_names_of_the_program_are_escaped() -> None:
    evil = "<script>x</script>\"'"
    made = view.strip(RunTree(1.0, strip=(Stretch(0.0, 1.0, "callback", evil),)))
    assert made is not None
    assert "<script>" not in made
    assert "&lt;script&gt;" in made
