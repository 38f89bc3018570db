"""Levers for sessions of TensorFlow 1: when they are named, and when they are left out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from flatout.causes import diagnose
from flatout.cures import name_offered
from flatout.cures._offers import reason_against
from flatout.cures.prepared_runs._prepared import Fed, _identity, _key
from flatout.model.case import Case, Frame, Program, Split, Steps
from flatout.model.evidence.steps import Feed, StepStack
from flatout.model.location import Where
from flatout.model.observed import Distribution

PROGRAM = """import numpy as np
import tensorflow.compat.v1 as tf

x = tf.placeholder(tf.float32)
with tf.Session() as sess:
    for row in rows:
        sess.run(train, feed_dict={x: row})
"""


def session_case(file: Path, compute: float, kind: str = "session", feed: Feed | None = None) -> Case:
    """Steps of one millisecond, of which so much is computing."""
    file.write_text(PROGRAM)
    ms = Distribution(median=1.0, p10=1.0, p90=1.0, mean=1.0, low=1.0, high=1.0)
    where = Where(str(file), 7)
    stack = StepStack(kind, (Frame(str(file), 7, "<module>", 1),))  # type: ignore[arg-type]
    rest = 1.0 - compute
    return Case(
        kind="run",
        program=Program(command=("python", str(file)), directory=str(file.parent)),
        steps=Steps(500, "Session.run", ms, Split(compute=compute, python=rest * 0.6, idle=rest * 0.4), where=where),
        evidence=(stack,) if feed is None else (stack, feed),
    )


def named(case: Case) -> dict[str, list[str | None]]:
    return {finding.cause: [fix.lever for fix in finding.fixes] for finding in name_offered(diagnose(case)).findings}


def test_short_runs_name_both(tmp_path: Path) -> None:
    found = named(session_case(tmp_path / "train.py", 0.1))
    assert found["step-overhead"] == ["prepared-runs", "caller-thread"]


@pytest.mark.parametrize(
    ("converted", "first"), [(0.0, "prepared-runs"), (2.0**12, "prepared-runs"), (2.0**22, "feed-once")]
)
def test_what_costs_most_of_feeding_comes_first(tmp_path: Path, converted: float, first: str) -> None:
    feed = Feed(2.0**22, 500, 0.7, 0.4, converted, (0,), where=Where(str(tmp_path / "train.py"), 7))
    found = diagnose(session_case(tmp_path / "train.py", 0.3, feed=feed)).findings
    assert found[0].cause == "feed-dict"
    assert found[0].fixes[0].lever == first


@pytest.mark.parametrize("lever", ["prepared-runs", "caller-thread"])
def test_they_are_for_sessions_that_do_not_compute_all_the_time(tmp_path: Path, lever: str) -> None:
    assert reason_against(lever, session_case(tmp_path / "train.py", 0.5)) is None
    assert "less than 5%" in (reason_against(lever, session_case(tmp_path / "train.py", 0.97)) or "")
    assert "not runs of a session" in (
        reason_against(lever, session_case(tmp_path / "train.py", 0.1, "function")) or ""
    )


def test_a_key_stands_for_the_same_objects_in_the_same_form() -> None:
    a, b, x = object(), object(), object()
    assert _identity([a, b]) == _identity([a, b])
    assert _key([a, b], {x: 1}) == _key([a, b], {x: 2})
    different = [_key(a, None), _key([a], None), _key((a,), None), _key({"k": a}, None), _key({"l": a}, None)]
    different += [_key([a, b], None), _key([b, a], None), _key([a, [b]], None), _key([a], {x: 1}), _key("a", None)]
    assert len(set(different)) == len(different)


def test_an_array_of_the_right_type_is_fed_as_it_is() -> None:
    fed = Fed(None, np.dtype(np.float32), True, (None, 3))
    rows = np.ones((2, 3), np.float32)
    assert fed.array(rows) is rows
    assert fed.array(np.ones(3, np.float32)) is None, "run has to say that the shape is wrong"
    assert fed.array(np.ones((2, 4), np.float32)) is None
