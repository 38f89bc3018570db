"""What lies beside a case: the events of its trace, its samples, its source, the steps that were traced again."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from trace_bytes import plane, space

from flatout.model.case import Case, Distribution, Op, Program, Steps, Where
from flatout.report.html.attachments import timeline
from flatout.report.html.attachments.source_frame import frame_around
from flatout.report.html.attachments.stacks import ops_by_scope, python_stacks
from flatout.report.html.attachments.step_marks import Marks, read_marks
from flatout.report.html.attachments.timeline import Timeline, _depths, _rows, read_timeline
from flatout.report.html.attachments.traces import read_traces
from flatout.report.html.context import ReportContext
from flatout.report.html.views import kernels
from flatout.trace.xplane import load

TRACES = Path(__file__).parent.parent / "fixtures" / "traces"


def traced(*names: str) -> Timeline:
    case = Case("trace", program=Program(("trace", *(str(TRACES / name) for name in names))))
    found = read_timeline(read_traces(case, None))
    assert found is not None
    return found


def columns(found: Timeline) -> dict[str, np.ndarray]:
    raw = gzip.decompress(base64.b64decode(found.columns))
    count = found.count
    assert len(raw) == 17 * count
    words = np.frombuffer(raw, "<u4", 4 * count).reshape(4, count)
    return dict(zip(("start", "duration", "name", "detail"), words, strict=True)) | {
        "depth": np.frombuffer(raw, np.uint8, count, 16 * count)
    }


# ── the timeline ──


@pytest.mark.parametrize("name", ["cpu-fit.xplane.pb.gz", "keras-starved.xplane.pb.gz"])
def test_every_event_of_a_trace_is_there(name: str) -> None:
    found, trace = traced(name), load(TRACES / name)
    assert found.count == found.total == trace.event_count
    column = columns(found)
    longest = max(int(line.duration_ps.max()) for plane in trace.planes for line in plane.lines if len(line))
    assert int(column["duration"].max()) == longest // 1000
    assert int(column["name"].max()) < len(found.head["names"])
    assert int(column["detail"].max()) < len(found.head["details"])
    assert sum(lane["count"] for lane in found.head["lanes"]) == found.count
    assert int((column["start"].astype(np.int64) + column["duration"]).max()) < found.head["span"]
    assert found.head["steps"]


def test_devices_stand_above_the_threads_of_the_host() -> None:
    groups = [lane["group"] for lane in traced("keras-fed.xplane.pb.gz").head["lanes"]]
    kinds = ["/device:" in group for group in groups]
    assert kinds == sorted(kinds, reverse=True)
    assert {True, False} == set(kinds)


def test_no_two_events_of_a_row_overlap() -> None:
    found = traced("cpu-fit.xplane.pb.gz")
    column, first = columns(found), 0
    assert max(lane["rows"] for lane in found.head["lanes"]) > 1
    for lane in found.head["lanes"]:
        part = slice(first, first + lane["count"])
        start, end = column["start"][part].astype(np.int64), column["start"][part].astype(np.int64)
        end = end + column["duration"][part]
        for depth in range(lane["rows"]):
            row = column["depth"][part] == depth
            # Times are cut to nanoseconds, so that neighbours may touch.
            assert (start[row][1:] >= end[row][:-1] - 1).all()
        first += lane["count"]


def test_depths_follow_what_is_still_going_on() -> None:
    start, end = np.array([0, 1, 2, 6, 20, 25]), np.array([10, 5, 3, 8, 30, 35])
    assert _depths(start, end).tolist() == [0, 1, 2, 1, 0, 1]
    # Kernels of a stream, each reaching a little into the next one.
    start, end = np.array([0, 9, 18, 27]), np.array([10, 19, 28, 37])
    assert _rows(start, end).tolist() == [0, 1, 0, 1]


def test_the_shortest_events_are_left_out_first(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = columns(traced("cpu-fit.xplane.pb.gz"))
    monkeypatch.setattr(timeline, "MOST_EVENTS", 500)
    found = traced("cpu-fit.xplane.pb.gz")
    assert found.count == 500
    assert found.total == whole["start"].size
    assert columns(found)["duration"].min() >= np.sort(whole["duration"])[-500]


def test_traces_of_several_hosts_lie_together() -> None:
    both = traced("tf-bf16.xplane.pb.gz", "tf-fp32.xplane.pb.gz")
    assert both.count == traced("tf-bf16.xplane.pb.gz").count + traced("tf-fp32.xplane.pb.gz").count


def test_a_log_directory_outside_the_case_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "case").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "x.xplane.pb.gz").write_bytes((TRACES / "cpu-fit.xplane.pb.gz").read_bytes())
    assert not read_traces(Case("run", logdir="../other"), tmp_path / "case")
    assert len(read_traces(Case("run", logdir="other"), tmp_path)) == 1


def test_a_damaged_trace_is_no_reason_to_fail(tmp_path: Path) -> None:
    (tmp_path / "trace").mkdir()
    (tmp_path / "trace" / "x.xplane.pb").write_bytes(b"\x00\x01 no trace")
    assert not read_traces(Case("run", logdir="trace"), tmp_path)
    assert not read_traces(Case("run", logdir="gone"), tmp_path)
    assert not read_traces(Case("trace", program=Program(("trace", "/gone.xplane.pb"))), tmp_path)
    assert read_timeline(()) is None


# ── the roofline ──


def test_a_device_that_tells_its_work_has_a_roofline(tmp_path: Path) -> None:
    events = [("fusion.1", 0.0, 1000.0, {}), ("fusion.1", 2000.0, 1000.0, {}), ("copy.2", 4000.0, 500.0, {})]
    limits = {"peak_teraflops_per_second": 200.0, "peak_hbm_bw_gigabytes_per_second": 1000.0}
    shared = {"fusion.1": {"flops": 100_000_000, "bytes_accessed": 1_000_000}, "copy.2": {"bytes_accessed": 10}}
    (tmp_path / "trace").mkdir()
    content = space(plane("/device:TPU:0", {"XLA Ops": events}, limits, shared))
    (tmp_path / "trace" / "x.xplane.pb").write_bytes(content)
    context = ReportContext(Case("run", logdir="trace"), tmp_path)
    (roofline,) = context.rooflines
    assert (roofline.peak, roofline.bandwidth) == (200.0, 1000.0)
    (point,) = roofline.points
    assert (point.name, point.intensity) == ("fusion.1", 100.0)
    assert point.rate == pytest.approx(100.0)  # 2 × 10⁸ operations in 2 µs
    assert "Roofline of TPU:0" in kernels.write(context)


def test_a_device_that_does_not_tell_has_none() -> None:
    case = Case("trace", program=Program(("trace", str(TRACES / "tf-bf16.xplane.pb.gz"))))
    assert ReportContext(case).rooflines == ()


# ── stacks ──


def test_samples_become_a_tree(tmp_path: Path) -> None:
    users = [["/a/train.py", 9, "step", 5], ["/a/train.py", 20, "<module>", 1]]
    rows = [[7, users, ["x/gen_math_ops.py", "mul"], False], [3, users[1:], ["/a/train.py", "<module>"], False], ["?"]]
    fact = {"kind": "samples", "total": 10, "interval": 0.04, "rows": rows}
    (tmp_path / "counters.jsonl").write_text('{"kind":"x"}\n' + json.dumps(fact) + "\n{damaged")
    tree = python_stacks(tmp_path)
    assert tree is not None
    assert tree.root["value"] == 10
    (module,) = tree.root["children"]
    assert (module["name"], module["value"]) == ("<module> (train.py:20)", 10)
    (step,) = module["children"]
    assert (step["name"], step["value"]) == ("step (train.py:9)", 7)
    assert step["children"][0]["name"] == "mul (gen_math_ops.py)"
    assert "40 ms" in tree.note


def test_the_picture_of_py_spy_becomes_a_tree(tmp_path: Path) -> None:
    def frame(name: str, y: int, x: int, width: int) -> str:
        return (
            f'<g><title>{name} ({width} samples, 1.00%)</title><rect x="0.0000%" y="{y}" width="9%" height="15" '
            f'fill="rgb(227,0,7)" fg:x="{x}" fg:w="{width}"/><text x="0.25%" y="94.50">w..</text></g>'
        )

    frames = [frame("a (t.py:5)", 84, 0, 7), frame("all", 52, 0, 139), frame("&lt;module&gt; (t.py:7)", 68, 0, 139)]
    (tmp_path / "flame.svg").write_text(f"<svg>{''.join(frames)}{frame('a (t.py:6)', 84, 7, 132)}</svg>")
    tree = python_stacks(tmp_path)
    assert tree is not None
    (module,) = tree.root["children"]
    assert module["name"] == "<module> (t.py:7)"
    assert [(child["name"], child["value"]) for child in module["children"]] == [("a (t.py:6)", 132), ("a (t.py:5)", 7)]


def test_ops_stand_under_their_scopes() -> None:
    ops = (Op("model/dense/MatMul", "MatMul", self_ms=3.0), Op("model/dense/Add", "AddV2", self_ms=1.0), Op("x", "X"))
    tree = ops_by_scope(Case("run", ops=ops))
    assert tree is not None
    dense = tree.root["children"][0]["children"][0]
    assert (dense["name"], dense["value"]) == ("dense", 4.0)
    assert [leaf["name"] for leaf in dense["children"]] == ["MatMul (MatMul)", "Add (AddV2)"]


# ── source ──


def test_the_lines_around_a_place(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text("".join(f"    line_{n}()\n" for n in range(1, 21)))
    frame = frame_around(Where(str(file), 10, "main", "line_10()"))
    assert frame is not None
    assert (frame.first, frame.marked, frame.whole) == (7, 10, True)
    assert frame.lines[3] == "line_10()"


def test_source_that_has_changed_or_is_none_is_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text("secret = 1\nother = 2\n")
    changed = frame_around(Where(str(file), 1, None, "x = tf.constant(1)"))
    assert changed is not None
    assert (changed.lines, changed.whole) == (("x = tf.constant(1)",), False)
    text = tmp_path / "passwords.txt"
    text.write_text("known\nsecret\n")
    guessed = frame_around(Where(str(text), 1, None, "known"))
    assert guessed is not None
    assert guessed.lines == ("known",)
    assert frame_around(Where(str(file), 1, None, None)) is None
    assert frame_around(None) is None


# ── marks ──


def test_steps_in_which_a_function_was_traced_are_marked(tmp_path: Path) -> None:
    rows = []
    at, tracing = 0.0, 0.0
    for step in range(20):
        tracing += 0.5 if step in (0, 7) else 0.0
        rows.append([0.0, 1.0, at, at + (0.6 if step in (0, 7) else 0.1), 0.0, tracing, 0.0, 0.0])
        at = rows[-1][3]
    (tmp_path / "ticks.bin").write_bytes(np.array(rows, np.float64).tobytes())
    (tmp_path / "facts.jsonl").write_text('{"kind":"stream","id":0,"of":"apply","name":"Adam"}\n')
    steps = Steps(20, "eager optimizer updates", Distribution(100, 90, 110), times_ms=(100.0,) * 20)
    marks = read_marks(Case("run", steps=steps), tmp_path)
    assert marks.traced == (7,)
    assert marks.trace_ms == (500.0,)
    assert read_marks(Case("run"), tmp_path) == Marks()
    (tmp_path / "facts.jsonl").write_text('{"kind":"stream"}\n')
    assert read_marks(Case("run", steps=steps), tmp_path) == Marks()


def test_the_recording_of_a_tune_lies_one_storey_down(tmp_path: Path) -> None:
    (tmp_path / "scout").mkdir()
    assert ReportContext(Case("tune", logdir="scout/trace"), tmp_path).recording == (tmp_path / "scout").resolve()
    assert ReportContext(Case("run", logdir="trace"), tmp_path).recording == tmp_path.resolve()
    assert ReportContext(Case("run", logdir="../../trace"), tmp_path).recording == tmp_path
    assert ReportContext(Case("run")).recording is None
