"""The launcher: what each rank is given, whose lines are whose, and how a job ends."""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path

import pytest

from flatout.job import closing, launching
from flatout.job.launching import Request, configurations, free_ports, launch, processor_sets, tasks
from waiting import until

RANK = "import json, os; config = json.loads(os.environ['TF_CONFIG']); rank = config['task']['index']; "


def command(text: str) -> tuple[str, ...]:
    return (sys.executable, "-S", "-c", RANK + text)


def test_each_rank_has_its_place_in_one_cluster() -> None:
    of = tasks(2, 1)
    assert of == [("chief", 0), ("worker", 0), ("worker", 1), ("ps", 0)]
    found = [json.loads(text) for text in configurations(of, [1, 2, 3, 4])]
    assert all(one["cluster"] == found[0]["cluster"] for one in found)
    assert found[0]["cluster"]["worker"] == ["localhost:2", "localhost:3"]
    assert [(one["task"]["type"], one["task"]["index"]) for one in found] == of


def test_ports_are_free_and_differ() -> None:
    ports = free_ports(5)
    assert len(set(ports)) == 5
    for port in ports:
        with socket.socket() as one:
            one.bind(("localhost", port))


def test_processors_are_divided_where_there_are_enough() -> None:
    assert processor_sets([0, 1, 2, 3, 4], 2) == [(0, 1, 2), (3, 4)]
    assert processor_sets([0, 1], 3) == [(), (), ()]


def test_lines_carry_the_name_of_their_rank(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    text = "import sys; print('out', rank); print('err', rank, file=sys.stderr); sys.stdout.write('10%\\r20%\\rlast')"
    assert launch(Request(command(text), 2)) == 0
    out, err = capfdbinary.readouterr()
    assert sorted(out.splitlines()) == sorted(
        [b"[worker 0] out 0", b"[worker 1] out 1", b"[worker 0] last", b"[worker 1] last"]
    )
    assert sorted(err.splitlines()) == [b"[worker 0] err 0", b"[worker 1] err 1"]


def test_a_rank_that_fails_ends_the_others_with_all_that_they_started(
    capfdbinary: pytest.CaptureFixture[bytes], tmp_path: Path
) -> None:
    started = tmp_path / "child"
    text = (
        "import os, subprocess, sys, time\n"
        f"path = {str(started)!r}\n"
        "if rank == 1:\n"
        "    while not os.path.exists(path): time.sleep(0.01)\n"
        "    sys.exit(7)\n"
        "child = subprocess.Popen(['sleep', '600'])\n"
        "open(path + '.new', 'w').write(str(child.pid)); os.rename(path + '.new', path)\n"
        "time.sleep(600)"
    )
    assert launch(Request(command("\n" + text), 2, directory=tmp_path)) == 7
    err = capfdbinary.readouterr().err
    assert b"worker 1 failed with exit code 7; the other ranks are ended" in err
    assert closing.was_stopped(tmp_path)
    until(lambda: not runs(int(started.read_text())))


def runs(process: int) -> bool:
    """Not so for one that has ended and that nobody has asked for."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_killed_rank_gives_the_code_of_a_shell() -> None:
    assert launch(Request(command("os.kill(os.getpid(), 9 if rank == 0 else 0)"), 2)) == 137


def test_with_keep_going_the_others_run_on(tmp_path: Path) -> None:
    text = f"import sys; sys.exit(3) if rank == 0 else open({str(tmp_path / 'done')!r}, 'w').write('x')"
    assert launch(Request(command(text), 2, keep_going=True)) == 3
    assert (tmp_path / "done").exists()


def test_the_end_of_a_coordinator_ends_its_servers(tmp_path: Path) -> None:
    text = "import time\nif config['task']['type'] != 'chief': time.sleep(600)"
    assert launch(Request(command("\n" + text), 1, 1, directory=tmp_path)) == 0
    assert closing.was_stopped(tmp_path)


def test_a_job_in_a_directory_that_was_used_before_was_not_stopped(tmp_path: Path) -> None:
    closing.say_stopped(tmp_path)
    assert launch(Request(command("pass"), 2, directory=tmp_path)) == 0
    assert not closing.was_stopped(tmp_path)


def test_a_rank_is_not_held_where_nobody_reads_its_lines() -> None:
    read, written = os.pipe()
    with socket.socket() as unread, open(read, "rb") as source, open(written, "wb", buffering=0) as rank:
        rank.write(b"one line\n")
        launching.pass_on(source, unread.makefile("wb"), b"")
        with pytest.raises(BrokenPipeError):
            rank.write(b"another\n")


def test_a_job_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launching, "GRACE", 5.0)
    assert launch(Request(command("import time; time.sleep(600)"), 2, timeout=1.0)) == 124
