"""Ranks meet in a directory; what they leave there becomes one case, also where some die, hang or never come."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from flatout import store
from flatout.causes import diagnose
from flatout.job import closing, directory, summary
from flatout.job.directory import Member, entries
from flatout.job.merge import look, merge
from flatout.job.place import Place, find
from flatout.model import ranks
from flatout.model.case import Case, Distribution, Host, Program, RunPart, RunTree, Split, Steps
from flatout.model.errors import CaseNotFound, InvalidOption
from flatout.model.evidence.job import Collectives, RankOf
from flatout.model.evidence.program import LastSeen
from flatout.model.evidence.steps import LineTime, StepStack
from flatout.model.location import Where
from flatout.report.terminal import headline, render


def place(index: int, size: int = 2) -> Place:
    return Place("worker", index, size, "TF_CONFIG", expected=tuple(f"worker {number}" for number in range(size)))


def case_of(index: int, **program: object) -> Case:
    """A rank whose step takes 40 ms: worker 1 works for 36 of them, the others wait for it."""
    own = 36.0 if index == 1 else 6.0
    split = Split(python=own - 4.0, compute=44.0 - own)
    steps = Steps(60, "calls of a tf.function that trains", Distribution(40.0, 39.0, 42.0, 40.0), split_ms=split)
    waiting = tuple(40.0 - own for _ in range(12))
    collectives = Collectives(40.0 - own, per_step=2, bytes_per_step=66_564, first_step=5, step_ms=waiting)
    given = {"command": ("python", "train.py"), "seconds": 20.0, "exit_code": 0} | program
    return Case("run", program=Program(**given), steps=steps, evidence=(collectives,))  # type: ignore[arg-type]


def join(meeting: Path, index: int, size: int = 2) -> Member:
    member = Member(place(index, size), meeting)
    member.join()
    return member


def leave(member: Member, case: Case) -> None:
    store.write_case(case, member.folder)
    member.leave(summary.of(case, member.place, member.folder))


def test_two_ranks_are_one_case(tmp_path: Path) -> None:
    members = [join(tmp_path, index) for index in range(2)]
    for index, member in enumerate(members):
        leave(member, case_of(index))
    case = merge(tmp_path)
    assert [host.name for host in case.hosts] == ["worker 0", "worker 1"]
    assert [host.state for host in case.hosts] == ["ended", "ended"]
    assert case.steps is not None
    assert case.steps.count == 60, "steps are counted once for all ranks"
    assert [host.own_ms for host in case.hosts] == [6.0, 36.0]
    for host in case.hosts:  # each rank's own is still there
        assert store.load(store.locate(host.case)).steps is not None
    assert Case.from_json(json.loads(json.dumps(case.to_json()))) == case


def test_a_job_whose_directory_was_moved_is_put_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for index, member in enumerate([join(tmp_path / "job", index) for index in range(2)]):
        leave(member, case_of(index))
    (tmp_path / "job").rename(tmp_path / "copy")
    case = merge(tmp_path / "copy")
    assert case.steps is not None
    assert "cannot be read" not in str(case.notes)
    assert [host.case for host in case.hosts] == [f"{tmp_path}/copy/ranks/worker-{index}" for index in range(2)]


def test_a_role_of_any_name_may_never_come(tmp_path: Path) -> None:
    expected = ("my role 0", "my role 1", "chief")
    member = Member(Place("my role", 0, 3, "TF_CONFIG", expected=expected), tmp_path)
    member.join()
    missing = {host.name: (host.role, host.index) for host in look(tmp_path).hosts if host.state == "missing"}
    assert missing == {"my role 1": ("my role", 1), "chief": ("chief", 0)}


def test_a_rank_that_is_killed_is_a_line_of_the_verdict_and_the_others_are_kept(tmp_path: Path) -> None:
    members = [join(tmp_path, index) for index in range(2)]
    where = Where("train.py", 12)
    killed = case_of(1, exit_code=None, signal="SIGKILL", seconds=9.0)
    leave(members[1], replace(killed, evidence=(*killed.evidence, LastSeen(0.1, where=where))))
    leave(members[0], case_of(0, exit_code=1, error="UnavailableError: worker 1 is gone"))
    case = merge(tmp_path)
    assert "Worker 1 was killed first after 9 s (ended by SIGKILL, at train.py:12)." in case.verdict
    assert "Worker 0 failed after 20 s (exit code 1, UnavailableError: worker 1 is gone)." in case.verdict
    assert case.verdict.index("Worker 1") < case.verdict.index("Worker 0")
    assert case.steps is not None
    for text in (headline(case), render(case, width=100)):
        assert "Worker 1 was killed first" in " ".join(text.split())


def test_a_rank_that_never_came_and_one_that_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    members = [join(tmp_path, index, size=3) for index in range(2)]
    leave(members[0], case_of(0))
    monkeypatch.setattr(directory, "LOST_AFTER", -1.0)
    job = look(tmp_path)
    assert [host.state for host in job.hosts] == ["ended", "lost", "missing"]
    case = merge(tmp_path)
    assert "Worker 1 has not been heard of since" in case.verdict
    assert "Worker 2 never came." in case.verdict
    assert any("--job" in note.todo for note in case.notes)


def test_a_rank_that_hangs_is_told_from_those_that_wait_for_it(tmp_path: Path) -> None:
    members = [join(tmp_path, index) for index in range(2)]
    for index, member in enumerate(members):
        found = case_of(index, exit_code=None, signal="SIGTERM")
        last = LastSeen(120.0, in_call=index == 0, where=Where("train.py", 20 + index))
        leave(member, replace(found, evidence=(*found.evidence, last)))
    case = merge(tmp_path)
    assert [host.name for host in ranks.hung(case.hosts)] == ["worker 1"]
    assert "Worker 1 made no step in its last 120 s, at train.py:21." in case.verdict


def test_the_last_rank_merges_and_only_once(tmp_path: Path) -> None:
    members = [join(tmp_path, index) for index in range(2)]
    leave(members[1], case_of(1))
    assert closing.close(members[1], waits=0) is None, "the first rank that is there waits, nobody else"
    leave(members[0], case_of(0))
    assert closing.close(members[0], waits=0) is not None
    assert closing.close(members[1], waits=0) is None


def test_the_first_rank_does_not_wait_for_ever(tmp_path: Path) -> None:
    members = [join(tmp_path, index) for index in range(2)]
    leave(members[0], case_of(0))
    case = closing.close(members[0], waits=0)
    assert case is not None
    assert "Worker 1 still runs." in case.verdict
    leave(members[1], case_of(1))
    again = closing.close(members[1], waits=0)
    assert again is not None, "who ends last merges again"
    assert "still runs" not in again.verdict


def test_an_earlier_job_in_the_same_directory_is_left_out(tmp_path: Path) -> None:
    old = [join(tmp_path, index, size=3) for index in range(3)]
    for index, member in enumerate(old):
        leave(member, case_of(index))
    for path in (tmp_path / "ranks").glob("*/rank.json"):
        data = json.loads(path.read_text())
        data["ended"] -= 3600
        data["host"]["began"] -= 3700
        path.write_text(json.dumps(data))
    new = [join(tmp_path, index) for index in range(2)]
    for index, member in enumerate(new):
        leave(member, case_of(index))
    assert [host.name for host in look(tmp_path).hosts] == ["worker 0", "worker 1"]


def process_of(member: Member, **facts: object) -> None:
    path = member.folder / "rank.json"
    data = json.loads(path.read_text())
    data["process"] |= facts
    data["host"]["machine"] = facts.get("machine", data["host"]["machine"])
    path.write_text(json.dumps(data))


@pytest.mark.parametrize("machine", ["here", "elsewhere"])
def test_a_rank_that_runs_is_not_replaced_by_a_second_one(tmp_path: Path, machine: str) -> None:
    first = join(tmp_path, 0)
    if machine == "here":
        with subprocess.Popen(["sleep", "60"]) as other:
            born = Path(f"/proc/{other.pid}/stat").read_text().rpartition(")")[2].split()[19]
            process_of(first, pid=other.pid, born=born)
            with pytest.raises(InvalidOption, match="worker 0 runs in"):
                join(tmp_path, 0)
            assert (first.folder / "rank.json").exists()
            other.kill()
        os.utime(first.folder / "alive")
    else:
        process_of(first, machine="far.away")
        with pytest.raises(InvalidOption, match="worker 0 runs in"):
            join(tmp_path, 0)
        for name in ("rank.json", "alive"):
            os.utime(first.folder / name, (1.0, 1.0))
    assert join(tmp_path, 0).folder.is_dir(), "one that was killed does not stand in the way"


def test_of_two_that_come_at_once_as_one_rank_one_is_refused(tmp_path: Path) -> None:
    member = Member(place(0), tmp_path)
    member.folder.mkdir(parents=True)
    (member.folder / "alive").touch()
    with pytest.raises(InvalidOption, match="worker 0 runs in"):
        member.join()


def test_damaged_entries_are_passed_over(tmp_path: Path) -> None:
    leave(join(tmp_path, 0), case_of(0))
    for name, text in {"worker-8": "{", "worker-9": '{"host": 3, "size": 2, "expected": [], "ended": null}'}.items():
        (tmp_path / "ranks" / name).mkdir()
        (tmp_path / "ranks" / name / "rank.json").write_text(text)
    assert [entry.host.name for entry in entries(tmp_path)] == ["worker 0"]


def test_an_empty_directory_is_no_job(tmp_path: Path) -> None:
    with pytest.raises(CaseNotFound, match="flatout run --job"):
        merge(tmp_path)


def test_a_directory_that_cannot_be_written_is_an_error_that_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidOption, match="cannot be written"):
        join(tmp_path / "file", 0)


def test_the_case_of_a_leader_on_another_machine_is_not_needed(tmp_path: Path) -> None:
    members = [join(tmp_path, index) for index in range(2)]
    for index, member in enumerate(members):
        leave(member, case_of(index))
        (member.folder / store.FILE).unlink()
    case = merge(tmp_path)
    assert [host.own_ms for host in case.hosts] == [6.0, 36.0]
    assert any("cannot be read here" in note.text for note in case.notes)
    assert "No step was seen" not in case.verdict


def test_without_the_case_of_the_leader_and_without_findings_the_ranks_show_steps(tmp_path: Path) -> None:
    members = [join(tmp_path, index) for index in range(2)]
    for member in members:
        leave(member, replace(case_of(0), evidence=()))
        (member.folder / store.FILE).unlink()
    case = merge(tmp_path)
    assert not case.findings
    assert "The case of the rank that leads is missing" in case.verdict
    assert "40.0 ms a step" in render(case)


def test_what_is_told_of_a_rank_begins_as_a_sentence(tmp_path: Path) -> None:
    join(tmp_path, 0, size=3)
    notes = [note.text for note in merge(tmp_path).notes]
    assert "Worker 0 has left no case." in notes
    assert "Worker 1 and worker 2 never came to the directory of the job." in notes
    assert not [text for text in notes if text[:1].islower()]


def test_late_in_turns_is_not_a_long_exchange() -> None:
    """Each rank is late in every second step: the exchange itself takes 2 ms, though each waits 12 ms on average."""
    late = (2.0, 22.0) * 8
    hosts = [
        Host(f"worker {index}", role="worker", index=index, step_ms=40.0,
             collectives=Collectives(12.0, step_ms=late[index:16] + late[:index], first_step=5))
        for index in range(2)
    ]  # fmt: skip
    found = ranks.exchange(hosts)
    assert found is not None
    assert found.ms == 2.0
    assert found.last == {"worker 0": 0.5, "worker 1": 0.5}


def test_a_launched_process_finds_its_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FLATOUT_JOB", str(tmp_path))
    found = find({"SLURM_PROCID": "0", "SLURM_NTASKS": "2", "SLURM_JOB_ID": "7"})
    assert found is not None
    assert directory.default_directory(found) == tmp_path
    monkeypatch.delenv("FLATOUT_JOB")
    monkeypatch.chdir(tmp_path)
    assert directory.default_directory(found) == tmp_path / ".flatout" / "jobs" / "slurm-7"
    assert directory.default_directory(place(0)) is None, "TF_CONFIG has no name for a job"


def test_waiting_for_other_ranks_to_come_is_no_slow_start() -> None:
    line = RunPart(
        "line", "tensorflow", 9.0, where=Where("train.py", 4, code="strategy = MultiWorkerMirroredStrategy()")
    )
    tree = RunTree(30.0, (RunPart("before", seconds=9.5, parts=(line,)), RunPart("steps", "apply", 10.0, 60)))
    alone = replace(case_of(0), run=tree)
    rank = replace(alone, evidence=(*alone.evidence, RankOf("worker 0", 2)))
    assert [item.cause for item in diagnose(alone).findings] == ["slow-start"]
    assert diagnose(rank).findings == ()


def test_what_a_coordinator_does_between_its_calls_is_not_what_steps_wait_for() -> None:
    case = case_of(1)
    where = Where("train.py", 34, code="coordinator.join()")
    seen = (StepStack("train-function"), LineTime(0.8, where=where))
    worker = replace(case, evidence=(*case.evidence, *seen, RankOf("worker 1", 2)))
    chief = replace(case, evidence=(*case.evidence, *seen, RankOf("chief", 3, coordinates=True)))
    assert "step-overhead" in [item.cause for item in diagnose(worker).findings]
    assert "step-overhead" not in [item.cause for item in diagnose(chief).findings]


def test_a_rank_is_not_called_late_where_all_ranks_lack_processors() -> None:
    def hosts(taken: float) -> tuple[Host, ...]:
        return tuple(
            Host(f"worker {index}", 60, 40.0, role="worker", index=index, taken=taken,
                 split_ms=Split(compute=40.0), collectives=Collectives(wait, step_ms=(wait,) * 12, first_step=5))
            for index, wait in enumerate((20.0, 2.0))
        )  # fmt: skip

    quiet, busy = (replace(case_of(0), evidence=(), hosts=hosts(taken)) for taken in (0.0, 0.8))
    assert [item.cause for item in diagnose(quiet).findings] == ["straggler"]
    assert "straggler" not in [item.cause for item in diagnose(busy).findings]


def test_without_a_trace_a_late_rank_is_found_by_what_it_does_outside_of_its_calls() -> None:
    def job(waits: float, works: Split) -> Case:
        hosts = tuple(
            Host(f"worker {index}", 60, 40.0, role="worker", index=index, split_ms=split)
            for index, split in enumerate((Split(python=2.0, compute=38.0 - waits, input=waits), works))
        )
        return replace(case_of(0), evidence=(), hosts=hosts)

    for part, cause in (("python", "straggler"), ("input", "input-skew")):
        found = diagnose(job(0.0, Split(compute=8.0, **{part: 32.0}))).findings
        assert [item.cause for item in found] == [cause]
        assert "orker 1" in found[0].summary
        assert found[0].confidence == "medium"
    assert diagnose(job(0.0, Split(python=2.0, compute=38.0))).findings == ()
