from __future__ import annotations

import gzip
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from trace_bytes import Reference, field, plane, space

from flatout.model.errors import TraceNotFound, TraceUnreadable
from flatout.trace import files, find_files, load, wire

FIXTURES = Path(__file__).parent.parent / "fixtures" / "traces"

STATS = {
    "small": 7, "negative": -3, "large": (1 << 63) + 5, "ratio": 0.25, "text": "an ünusual text",
    "shared": Reference("a shared text"), "raw": b"\x00\xff",
}  # fmt: skip


def sample() -> bytes:
    thread = [("work", 0.5, 1.25, STATS), ("rest", 10, 0, {}), ("work", 20, 5, {"small": 8})]
    return space(
        plane("/host:CPU", {"main": thread, "other": [("rest", 3, 4, {})]}, {"cores": 4}),
        plane("/device:GPU:0", {"Stream #1(Compute)": [("kernel", 1, 2, {})]}, timestamp_ns=5000),
    )


def test_events_are_columns_with_picosecond_precision() -> None:
    trace = load(sample())
    line = trace.planes[0].lines[0]
    assert trace.hostname == "host"
    assert trace.origin_ns == 1000
    assert line.start_ps.tolist() == [500, 10_000, 20_000]
    assert line.duration_ns.tolist() == [1.25, 0, 5]
    assert line.names().tolist() == ["work", "rest", "work"]
    assert line.where(lambda name: name == "work").tolist() == [0, 2]
    assert trace.planes[1].lines[0].start_ns.tolist() == [4001]


def test_a_line_whose_damaged_start_lies_ages_away_can_be_read() -> None:
    near, far = (plane("/host:CPU", {"main": [("work", 0, 1, {})]}, timestamp_ns=at) for at in (1000, 1 << 62))
    trace = load(space(near, far))
    starts = [int(item.lines[0].start_ps[0]) for item in trace.planes]
    assert starts[1] > starts[0] >= 0


def test_stats_of_every_kind_come_back() -> None:
    host = load(sample()).planes[0]
    line = host.lines[0]
    assert host.stats == {"cores": 4}
    assert line.event_stats(0) == {key: str(v) if isinstance(v, str) else v for key, v in STATS.items()}
    assert line.event_stats(1) == {}
    assert line.event_stats(-1) == {"small": 8}


def test_a_stat_is_a_column() -> None:
    line = load(sample()).planes[0].lines[0]
    small = line.stat("small")
    assert small[0] == 7
    assert np.isnan(small[1])
    assert line.stat("ratio")[0] == 0.25
    assert line.stat("shared").tolist() == ["a shared text", None, None]
    assert line.stat_integers("large").tolist() == [(1 << 63) + 5 - (1 << 64), -1, -1]
    assert line.stat_integers("negative", missing=0).tolist() == [-3, 0, 0]
    codes, values = line.stat_strings("text")
    assert values[codes[0]] == "an ünusual text"
    assert codes[1] == -1
    assert np.isnan(line.stat("unheard of")).all()
    assert set(line.stat_names) == set(STATS)


def test_compression_is_told_by_content(tmp_path: Path) -> None:
    path = tmp_path / "misnamed.xplane.pb"
    path.write_bytes(gzip.compress(sample()))
    assert load(path).event_count == 5


NO_TRACES = {
    "empty": b"",
    "text": b"just some text\n" * 40,
    "json": b'{"traceEvents": []}',
    "png": b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
    "zeros": bytes(200),
    "lines": b"\n\n\n\nlines\n",
    "gzip-of-nothing": gzip.compress(b""),
    "gzip-of-text": gzip.compress(b"text"),
    "gzip-cut-short": b"\x1f\x8b",
    "random-long": random.Random(1).randbytes(5000),
    "random-short": random.Random(2).randbytes(50),
}


@pytest.mark.parametrize("content", NO_TRACES.values(), ids=NO_TRACES.keys())
def test_what_is_no_trace_is_refused_with_advice(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "thing.xplane.pb"
    path.write_bytes(content)
    with pytest.raises(TraceUnreadable, match=r"thing\.xplane\.pb .*"):
        load(path)


def test_a_truncated_trace_keeps_whole_lines_and_says_so() -> None:
    whole = sample()
    # A cut exactly between two planes leaves a whole, smaller trace behind: nobody can tell.
    boundaries = {stop for _, _, _, stop in wire.fields(memoryview(whole), 0, len(whole))}
    kept = []
    for end in range(1, len(whole) - 6):
        try:
            trace = load(whole[:end])
        except TraceUnreadable:
            continue
        if end not in boundaries:
            assert any("cut off" in text or "damaged" in text for text in trace.warnings), end
        kept.append(trace.event_count)
    assert kept == sorted(kept)
    assert set(kept) >= {3, 4, 5}


def test_a_truncated_compressed_trace_is_read_up_to_the_cut() -> None:
    packed = (FIXTURES / "keras-fed.xplane.pb.gz").read_bytes()
    trace = load(packed[: len(packed) * 9 // 10])
    assert trace.event_count > 1000
    assert "compressed" in trace.warnings[0]


def test_a_gzip_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "bomb.xplane.pb.gz"
    path.write_bytes(gzip.compress(bytes(files.ALWAYS_UNPACKED), 9) + gzip.compress(bytes(1 << 20)))
    with pytest.raises(TraceUnreadable, match=r"unpacks to more than 67 MB.*gunzip"):
        load(path)


def test_an_unusual_ratio_is_no_fault_of_a_small_file() -> None:
    whole = space(plane("/host:CPU", {"main": [("op", i, 1, {}) for i in range(20_000)]}))
    assert load(gzip.compress(whole, 9)).event_count == 20_000


def test_an_endless_file_is_read_up_to_the_largest_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LARGEST", 4 << 20)
    with pytest.raises(TraceUnreadable, match="larger than"):
        load("/dev/zero")


AMPLIFIED = {  # made where they are needed: whoever collects tests would make all of them
    "planes": lambda: b"\x0a\x00" * 500_000,
    "lines": lambda: field(1, b"\x1a\x00" * 500_000),
    "stats": lambda: field(1, b"\x32\x00" * 500_000),
    "warnings": lambda: b"\x12\x00" * 500_000,
    "events": lambda: field(1, field(3, b"\x22\x00" * 500_000)),
    "fields": lambda: field(1, field(3, field(4, b"\x28\x00" * 500_000))),
    "names": lambda: field(1, b"".join(field(4, field(1, i)) for i in range(200_000))),
}


@pytest.mark.parametrize("content", AMPLIFIED.values(), ids=AMPLIFIED.keys())
def test_few_bytes_do_not_become_many_objects(content: Callable[[], bytes]) -> None:
    trace = load(field(1, field(2, "/host:CPU")) + content())
    assert "damaged" in trace.warnings[-1]
    assert len(trace.planes) < 5000


def test_damage_never_hangs_or_raises_a_foreign_error() -> None:
    whole = gzip.decompress((FIXTURES / "cpu-marked.xplane.pb.gz").read_bytes())
    generator = random.Random(0)
    for _ in range(60):
        damaged = bytearray(whole)
        for _ in range(generator.choice((1, 20, 300))):
            damaged[generator.randrange(len(damaged))] = generator.randrange(256)
        try:
            trace = load(bytes(damaged))
        except TraceUnreadable:
            continue
        lines = [line for item in trace.planes for line in item.lines]
        assert sum(map(len, lines)) == trace.event_count


def test_missing_files_are_named_with_their_neighbours(tmp_path: Path) -> None:
    (tmp_path / "real.xplane.pb").write_bytes(sample())
    with pytest.raises(TraceNotFound, match=r"real\.xplane\.pb"):
        find_files([tmp_path / "reel.xplane.pb"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(TraceNotFound, match="Record one"):
        find_files([tmp_path / "empty"])
    with pytest.raises(TraceNotFound, match="Nothing matches"):
        find_files([tmp_path / "*.nothing"])
    with pytest.raises(TraceNotFound):
        load(tmp_path / "gone")
    with pytest.raises(TraceUnreadable, match="cannot be read"):
        load(tmp_path)


def test_a_log_directory_gives_all_hosts_of_its_newest_run(tmp_path: Path) -> None:
    for run, age in (("2026_01_01", 100), ("2026_01_02", 0)):
        folder = tmp_path / "plugins" / "profile" / run
        folder.mkdir(parents=True)
        for host in ("a", "b"):
            (folder / f"{host}.xplane.pb").write_bytes(sample())
            os.utime(folder / f"{host}.xplane.pb", (time.time() - age,) * 2)
    found = find_files([tmp_path])
    assert [path.name for path in found] == ["a.xplane.pb", "b.xplane.pb"]
    assert {path.parent.name for path in found} == {"2026_01_02"}
    assert len(find_files([tmp_path], all_runs=True)) == 4
    assert len(find_files([tmp_path / "plugins/profile/*/a.xplane.pb"])) == 2
    assert len(find_files([str(tmp_path), found[0]])) == 2


def test_reading_needs_no_tensorflow() -> None:
    code = (
        "import sys, json; from flatout.trace import analyse; case = analyse(sys.argv[1]);"
        "print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"
    )
    out = subprocess.run(
        [sys.executable, "-c", code, str(FIXTURES / "cpu-fit.xplane.pb.gz")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert not {"tensorflow", "keras", "jax"} & set(json.loads(out.stdout))
