"""Levers raced on other machines: groups, messages, processors, and what becomes of a race that is lost. No Ray."""

from __future__ import annotations

import ast
import json
import os
import sys
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import flatout
from flatout.model.case import Case, Device, Interval, Trial, to_plain
from flatout.model.errors import InvalidOption, ToolMissing
from flatout.model.evidence.outcomes import RacedOn
from flatout.process.messages import decode, encode
from flatout.report.progress import Progress
from flatout.trial.child_process import Launch
from flatout.tune import identity
from flatout.tune.clock import Clock
from flatout.tune.elsewhere import Wanted
from flatout.tune.journal import Journal
from flatout.tune.request import TuneRequest
from flatout.tune.spread import Spreading, cores, joined, node, on_ray, spreading, where_raced
from flatout.tune.spread.messages import Assignment, Begun, Over, Said, Time, Told, Tried
from flatout.tune.spread.spreading import News, cut
from flatout.tune.trials import Trials

SAME = Interval(1.0, 0.97, 1.03)

# ── groups and messages ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("levers", "places", "groups"),
    [
        ("abc", 1, ["abc"]),
        ("abcdefgh", 1, ["aceg", "bdfh"]),
        ("abcdef", 2, ["ace", "bdf"]),
        ("ab", 4, ["a", "b"]),
        ("abcdefghijklmnop", 2, ["aeim", "bfjn", "cgko", "dhlp"]),
    ],
)
def test_levers_are_dealt_to_the_places(levers: str, places: int, groups: list[str]) -> None:
    assert ["".join(group) for group in cut(levers, places)] == groups


def test_an_assignment_survives_the_way_to_a_node() -> None:
    trial = Trial(("xla",), "won", Interval(1.5, 1.4, 1.6), "exact", stage="single", rounds=9)
    sent = Assignment(
        wanted=Wanted(("cache", "steps-per-execution=16"), ("xla",), 7, "closed", "fit", ("model",), True, 12.5),
        request=TuneRequest("train.py", ("--epochs", "3"), allow=("precision",), budget=480.0, on="ray"),
        launch=Launch(("python", "train.py"), seed=None, sources=(("a.py", "b.py"),)),
        case=Case("tune", devices=(Device("GPU:0", "gpu"),)).to_json(),
        whole=True,
        ended_after=None,
        found=(to_plain(trial),),
        packages=("tensorflow",),
        changed={"TF_ENABLE_ONEDNN_OPTS": "0", "X": None},
        time=Time(480.0, 31.5, 120.0, 0.0),
        cores=4,
        beside=2,
    )
    assert decode(encode(sent), Assignment) == sent


@pytest.mark.parametrize(
    "about", [Begun("a CPU", 2), Said("text"), Tried({"levers": ["xla"]}, None, 1.3), Over({"cache": "why"}, ((0.1,),))]
)
def test_a_line_of_a_node_is_read(about: Any) -> None:
    assert decode(encode(Told(about)), Told).about == about


# ── processors ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_races_of_one_machine_have_processors_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[set[int]] = []
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 3, 4})
    monkeypatch.setattr(os, "sched_setaffinity", lambda pid, numbers: chosen.append(set(numbers)))
    directory = tmp_path / "cores"
    first, second = cores.reserve(2, directory), cores.reserve(2, directory)
    assert chosen == [{0, 1}, {2, 3}]
    assert cores.reserve(2, directory, wait=0.0) == [], "one is left, and two are needed"
    for stream in first:
        stream.close()
    third = cores.reserve(2, directory)
    assert chosen[-1] == {0, 1}
    assert len(chosen) == 3
    for stream in (*second, *third):
        stream.close()


def test_a_race_that_needs_all_processors_has_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    assert cores.reserve(2, tmp_path / "cores") == []
    assert not (tmp_path / "cores").exists()


def test_a_directory_of_somebody_else_reserves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    (tmp_path / "others").mkdir()
    (tmp_path / "cores").symlink_to(tmp_path / "others")
    assert cores.reserve(1, tmp_path / "cores") == []


# ── a node ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_a_node_lacks_is_named(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text("pass\n")
    files = {str(program): node.digest_of(str(program)), str(tmp_path): ""}
    works = [sys.executable, "-c", "print('here')"]
    here = str(tmp_path)
    assert node.lacks(works, here, files, os.environ) == ("", "here\n")
    assert node.lacks(["/no/python"], here, files, {})[0] == "the interpreter /no/python is not there"
    assert node.lacks(works, "/no/place", files, {})[0] == "the working directory /no/place is not there"
    assert node.lacks(works, here, {"/no/data": ""}, {})[0] == "/no/data is not there"
    assert node.lacks(works, here, {str(program): "0"}, {})[0] == f"{program} is another file than here"
    broken = [sys.executable, "-c", "import no_such_package"]
    assert "No module named 'no_such_package'" in node.lacks(broken, here, files, os.environ)[0]


def test_a_node_keeps_the_variables_that_are_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    monkeypatch.setenv("DATA", "of the node")
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    found = node.environment_of({"CUDA_VISIBLE_DEVICES": "0", "DATA": "/data", "XDG_RUNTIME_DIR": "/run/user/7"})
    assert found["CUDA_VISIBLE_DEVICES"] == "3"
    assert found["DATA"] == "/data"
    assert "XDG_RUNTIME_DIR" not in found


def test_lines_of_a_race_are_handed_on_and_its_end_is_an_error(tmp_path: Path) -> None:
    code = "import sys\nprint('got', sys.stdin.readline().strip(), flush=True)\nsys.exit('it broke')"
    lines = node.raced([sys.executable, "-c", code], str(tmp_path), os.environ, "an assignment")
    assert next(lines) == "got an assignment\n"
    with pytest.raises(RuntimeError, match="it broke"):
        next(lines)


def test_a_race_ends_with_the_process_that_has_asked_for_it(tmp_path: Path) -> None:
    code = "import sys\nprint('begun', flush=True)\nsys.stdin.read()\nopen('ended', 'w').close()"
    lines = node.raced([sys.executable, "-c", code], str(tmp_path), os.environ, "")
    assert next(lines) == "begun\n"
    lines.close()
    assert (tmp_path / "ended").exists()


def test_the_command_of_a_node_finds_flatout_and_not_the_files_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('of the user')\n")
    missing, printed = node.lacks(on_ray._command("look", "Leave(True, True)"), str(tmp_path), {}, os.environ)
    assert missing == ""
    assert json.loads(printed)["versions"] == identity.versions()
    assert on_ray._differs(printed) == ""


def test_another_version_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "versions", lambda: {"flatout": "1.0", "tensorflow": "2.21.0"})
    there = {"versions": {"flatout": "1.0", "tensorflow": "2.20.0"}, "refused": ""}
    assert on_ray._differs(json.dumps(there)) == "tensorflow is 2.20.0 there, and 2.21.0 here"
    assert on_ray._differs("") == "flatout gave no answer there"


def test_what_has_to_be_on_all_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("pass\n")
    (tmp_path / "data").mkdir()
    found = on_ray._files(["python", "train.py", "--epochs", "3", "--data=data"])
    assert found == {str(tmp_path / "train.py"): node.digest_of("train.py"), str(tmp_path / "data"): ""}


# ── the coordinator ──────────────────────────────────────────────────────────────────────────────────────────────────

Story = list[Any]
"""What a race tells: messages, `lost` or `failed` with the reason as a tuple."""


class FakeCluster:
    """Each race is given the next story, made for its levers."""

    def __init__(self, stories: Sequence[Callable[[list[str]], Story]], places: int = 2) -> None:
        self.stories, self.free = deque(stories), places
        self.assignments: list[Assignment] = []
        self.stopped: list[Any] = []
        self.told: dict[int, deque[Any]] = {}

    def places(self, gpu: bool) -> int:
        return self.free

    def cores(self, gpu: bool) -> int:
        return 1

    def beside(self, gpu: bool) -> int:
        return 2

    def start(self, assignment: str, cores: int, gpu: bool) -> int:
        wanted = decode(assignment, Assignment)
        self.assignments.append(wanted)
        self.told[number := len(self.assignments)] = deque(self.stories.popleft()(list(wanted.wanted.levers)))
        return number

    def news(self, races: Sequence[Any], seconds: float) -> list[News]:
        found = []
        for race in races:
            name, told = f"node-{race}", self.told[race]
            one = told.popleft() if told else None
            if isinstance(one, tuple):
                found.append(News(race, name, **dict([one])))
            else:
                found.append(News(race, name, encode(Told(one)) if one is not None else ""))
        return found

    def stop(self, race: Any) -> None:
        self.stopped.append(race)


def tried(lever: str) -> Tried:
    return Tried(to_plain(Trial((lever,), "noise", SAME, "exact", stage="single", rounds=9)))


def in_order(levers: list[str]) -> Story:
    return [Begun("a CPU", 1), Said("begun"), *map(tried, levers), Over(taken=((0.1, 0.2),))]


def lost_after_one(levers: list[str]) -> Story:
    return [Begun("a CPU", 1), tried(levers[0]), ("lost", "the node has died")]


@pytest.fixture
def context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(spreading, "imports_of", lambda path: (["tensorflow"], {}))
    journal, progress, clock = Journal(tmp_path), Progress(60.0, quiet=True), Clock(480.0)
    return SimpleNamespace(
        request=TuneRequest("train.py"), launch=Launch(("python", "train.py")), case=Case("tune"), directory=tmp_path,
        clock=clock, journal=journal, progress=progress, trials=Trials(journal, progress, tmp_path, clock),
        seen_whole=False, ended_after=None, notes=[], raced_on=[], taken=[],
    )  # fmt: skip


def raced(context: Any, *stories: Callable[[list[str]], Story], levers: str = "", places: int = 2) -> Any:
    cluster = FakeCluster(stories, places)
    left = Spreading(context, cluster).race(Wanted(tuple((levers or "xla cache bf16 prefetch").split())))
    return cluster, left


def names(context: Any) -> list[str]:
    return sorted(one.levers[-1] for one in context.trials.found)


def test_trials_of_all_nodes_are_taken_over_and_written_down(context: Any) -> None:
    cluster, left = raced(context, in_order, in_order)
    assert left == []
    assert names(context) == ["bf16", "cache", "prefetch", "xla"]
    assert set(Journal(context.directory).trials) == {("single", (name,)) for name in names(context)}
    assert context.taken == [(0.1, 0.2), (0.1, 0.2)]
    assert {one.machine: one.levers for one in context.raced_on} == {
        "node-1": ("xla", "bf16"), "node-2": ("cache", "prefetch"),
    }  # fmt: skip
    assert not context.notes
    assert [one.cores for one in cluster.assignments] == [1, 1]


def test_a_node_that_is_lost_costs_what_it_had_not_told(context: Any) -> None:
    cluster, left = raced(context, in_order, lost_after_one, in_order)
    assert (left, names(context)) == ([], ["bf16", "cache", "prefetch", "xla"])
    assert cluster.assignments[-1].wanted.levers == ("prefetch",), "the other had its trial"
    assert [note.text for note in context.notes] == [
        "A race of prefetch was lost on node-2 (the node has died). It ran again on node-3."
    ]


def test_what_is_lost_again_and_again_is_left_to_this_machine(context: Any) -> None:
    def lost(levers: list[str]) -> Story:
        return [Begun("a CPU", 1), ("lost", "out of memory")]

    _, left = raced(context, lost, lost, lost, levers="xla", places=1)
    assert left == ["xla"]
    lost = "lost on node-1 (out of memory), node-2 (out of memory), node-3 (out of memory)"
    assert context.notes[-1].text == f"Raced on this machine: xla ({lost})."


def test_what_fails_on_a_node_is_left_to_this_machine_with_the_reason(context: Any) -> None:
    def failed(levers: list[str]) -> Story:
        return [("failed", "OSError: no space left")]

    def refused(levers: list[str]) -> Story:
        return [Begun("a CPU", 1), Over(problem="The program could not be held for trials")]

    _, left = raced(context, failed, refused)
    assert sorted(left) == ["bf16", "cache", "prefetch", "xla"]
    told = " ".join(note.text for note in context.notes)
    assert "node-1: OSError: no space left" in told
    assert "node-2: The program could not be held" in told


def test_what_a_node_left_out_is_left_out(context: Any) -> None:
    def skipped(levers: list[str]) -> Story:
        return [Begun("a CPU", 1), tried("xla"), Over({"cache": "nothing to cache"})]

    _, left = raced(context, skipped, levers="xla cache", places=1)
    assert left == []
    assert context.trials.skipped == {"cache": "nothing to cache"}


def test_without_a_place_this_machine_races(context: Any) -> None:
    cluster, left = raced(context, places=0)
    assert left == ["xla", "cache", "bf16", "prefetch"]
    assert not cluster.assignments


def test_nothing_begins_when_the_time_is_up(context: Any) -> None:
    context.clock.began -= 1000.0
    cluster, left = raced(context)
    assert (left, cluster.assignments) == ([], [])
    assert context.trials.skipped["xla"].startswith("no time left for it")


def test_ctrl_c_stops_all_races(context: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(levers: list[str]) -> Story:
        return [Begun("a CPU", 1), tried(levers[0])]

    def press() -> None:
        if context.trials.found:
            raise KeyboardInterrupt

    context.progress.tick = press
    cluster = FakeCluster([interrupted, interrupted])
    with pytest.raises(KeyboardInterrupt):
        Spreading(context, cluster).race(Wanted(("xla", "cache", "bf16", "prefetch")))
    assert sorted(cluster.stopped) == [1, 2]
    assert len(Journal(context.directory).trials) == 2


def test_the_case_says_where_levers_were_raced() -> None:
    assert where_raced([]) == []
    (note,) = where_raced([RacedOn("a", "Xeon", 4), RacedOn("b", "Xeon", 8, "H200")])
    assert note.text.startswith("Levers were raced on 2 nodes: a (Xeon, 4 cores), b (H200, 8 cores). What is claimed ")


# ── asking for it ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_only_ray_is_known() -> None:
    TuneRequest("train.py", on="ray:10.0.0.1:6379").check()
    with pytest.raises(InvalidOption, match="--on takes ray, ray:local or ray:HOST:PORT, not 'slurm'"):
        TuneRequest("train.py", on="slurm").check()


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    request = TuneRequest("train.py", on="ray")
    with pytest.raises(ToolMissing, match=r"pip install 'flatout\[ray\]'"), joined(request, ["python", "train.py"]):
        pass


def test_one_module_imports_ray() -> None:
    found = set()
    for path in Path(flatout.__file__).parent.rglob("*.py"):
        for one in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            module = one.module or "" if isinstance(one, ast.ImportFrom) else ""
            named = [alias.name for alias in one.names] if isinstance(one, ast.Import) else [module]
            if any(name.partition(".")[0] == "ray" for name in named):
                found.add(path.name)
    assert found == {"on_ray.py"}


def test_places_have_the_processors_of_the_smallest_node() -> None:
    def row(name: str, host: str, cpus: float, gpus: float = 0.0, alive: bool = True) -> dict[str, Any]:
        resources = {"CPU": cpus, **({"GPU": gpus} if gpus else {})}
        return {"NodeID": name, "NodeManagerHostname": host, "Alive": alive, "Resources": resources}

    rows = [row("n2", "big", 16.0, 2.0), row("n1", "small", 4.0), row("n3", "small", 4.0), row("n4", "head", 0.0)]
    cluster = on_ray.RayCluster(SimpleNamespace(nodes=lambda: rows), {})
    assert [one.name for one in cluster.checked] == ["small/1", "big", "small/2"]
    assert (cluster.cores(False), cluster.places(False), cluster.beside(False)) == (4, 6, 4)
    assert (cluster.cores(True), cluster.places(True), cluster.beside(True)) == (8, 2, 2)
    rows[0]["Alive"] = False
    assert cluster.places(False) == 2
