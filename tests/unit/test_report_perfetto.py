from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from trace_bytes import Reference, plane, space

from flatout.model.errors import FlatoutError
from flatout.report.perfetto import to_chrome_json
from flatout.trace import load

FIXTURES = Path(__file__).parent.parent / "fixtures" / "traces"


def test_every_event_is_written(tmp_path: Path) -> None:
    source = FIXTURES / "keras-fed.xplane.pb.gz"
    count = to_chrome_json(source, tmp_path / "out.json.gz")
    with gzip.open(tmp_path / "out.json.gz", "rt") as stream:
        events = json.load(stream)["traceEvents"]
    complete = [event for event in events if event["ph"] == "X"]
    assert count == len(complete) == load(source).event_count
    named = {event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert "gpu-host /device:GPU:0" in named
    assert any(event["name"] == "thread_name" and "Stream" in event["args"]["name"] for event in events)
    assert any(event.get("args", {}).get("hlo_op") for event in complete)


def test_names_are_escaped_and_times_are_microseconds(tmp_path: Path) -> None:
    name = 'a "quoted"\\ name\n<ü>'
    content = plane("/host:CPU", {"t": [(name, 1500, 250.5, {"tf_op": Reference('x"y:Z')}), ("b", 2000, 0, {})]})
    (tmp_path / "a.xplane.pb").write_bytes(space(content))
    to_chrome_json(tmp_path, tmp_path / "out.json")
    first, second = (e for e in json.loads((tmp_path / "out.json").read_text())["traceEvents"] if e["ph"] == "X")
    assert first["name"] == name
    assert (first["ts"], first["dur"]) == (1.5, 0.2505)
    assert first["args"] == {"tf_op": 'x"y:Z'}
    assert "args" not in second


def test_hosts_share_one_clock(tmp_path: Path) -> None:
    for host, start in (("a", 10**18), ("b", 10**18 + 5000)):
        environment = plane("Task Environment", {}, {"profile_start_time": start})
        work = plane("/host:CPU", {"t": [("work", 0, 1, {})]}, timestamp_ns=0)
        (tmp_path / f"{host}.xplane.pb").write_bytes(space(work, environment, host=host))
    to_chrome_json([tmp_path], tmp_path / "out.json")
    events = json.loads((tmp_path / "out.json").read_text())["traceEvents"]
    assert [event["ts"] for event in events if event["ph"] == "X"] == [0, 5]


def test_an_impossible_destination_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(FlatoutError, match="cannot be written"):
        to_chrome_json(FIXTURES / "cpu-fit.xplane.pb.gz", tmp_path / "nowhere" / "out.json")
