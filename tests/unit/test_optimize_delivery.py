"""An artefact is tried as its user would: what its loader answers, refuses, and what that makes of it.

The loaders are plain Python. They run in this process, where a run has processes of its own.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from flatout.optimize import artefact, delivery, odd_samples, other_batches
from flatout.optimize.candidates import Candidate
from flatout.optimize.checks import AccuracyBudget
from flatout.optimize.contestant import Block, Contestant
from flatout.optimize.layouts import Layout, trial
from flatout.optimize.work.tasks import Tasks
from flatout.process.worker import WorkFailed
from flatout.routes._route import End, run_loader
from flatout.routes.litert import Float32, Int8
from flatout.subject import Subject, Tensor, write_arrays

SAMPLES = np.random.default_rng(2).normal(size=(40, 4)).astype("float32")
LOADER = """
import numpy as np

def load(directory):
    def run(inputs):
        x = inputs[0]
        scores, classes = x * 2, x.argmax(1)
        {what}
        return [scores, classes]
    return run
"""


class Planted(Int8):
    """Its loader is a few lines of Python."""

    def __init__(self, what: str = "pass") -> None:
        self.what = what

    def loader(self, setting: Any, batch: int) -> str:
        return LOADER.format(what=self.what.replace("BATCH", str(batch)))


class PlantedFloat32(Planted):
    precision = Float32.precision


class InProcess:
    """Takes the place of a worker process."""

    alive = True

    def __init__(self, fails: str = "") -> None:
        self.tasks, self.fails = Tasks(), fails

    def ask(self, task: str, timeout: float, memory_limit: int | None = None, **arguments: Any) -> Any:
        if self.fails:
            raise WorkFailed("failed", self.fails)
        return getattr(self.tasks, task)(**arguments)

    def end(self) -> None:
        pass


@pytest.fixture
def builder(tmp_path: Path) -> Any:
    directory = tmp_path / "subject"
    directory.mkdir()
    tensor, outputs = Tensor("x", "float32", (None, 4), (4,)), (("scores", (None, 4)), ("classes", (None,)))
    subject = Subject(
        directory, "m", "keras", (tensor,), tuple(Tensor(name, "float32", shape) for name, shape in outputs)
    )
    write_arrays(directory / "held_out.npz", "in", [SAMPLES])
    write_arrays(directory / "held_out_out.npz", "out", [SAMPLES * 2, SAMPLES.argmax(1)])
    return SimpleNamespace(
        subject=subject,
        directory=tmp_path,
        memory_limit=None,
        processes=SimpleNamespace(worker=lambda log, preloaded=True: InProcess()),
        accuracy=SimpleNamespace(budget=AccuracyBudget(0.01)),
    )


@pytest.fixture(autouse=True)
def nothing_odd(monkeypatch: pytest.MonkeyPatch) -> None:
    """Odd samples need the original, which is TensorFlow's."""
    monkeypatch.setattr(odd_samples, "kinds", lambda subject: [])


def contestant(tmp_path: Path, what: str = "pass", batch: int = 1, route: type[Planted] = Planted) -> Contestant:
    made = tmp_path / "candidate"
    made.mkdir(exist_ok=True)
    (made / "model.bin").write_bytes(b"weights")
    return Contestant(Candidate(route(what), made), {}, batch)


def delivered(tmp_path: Path, builder: Any, one: Contestant, answers: Any = None) -> str:
    answers = answers or [SAMPLES * 2, SAMPLES.argmax(1)]
    return delivery.deliver(one, answers, builder, tmp_path / "made")


def test_what_answers_as_it_was_checked_is_written(tmp_path: Path, builder: Any) -> None:
    one = contestant(tmp_path)
    assert delivered(tmp_path, builder, one) == ""
    made = sorted(path.name for path in (tmp_path / "made").iterdir())
    assert made == ["check.npz", "load.py", "model.bin"]
    assert not one.candidate.fixed_batch
    assert artefact.size(tmp_path / "made") == len(b"weights")
    assert [path.name for path in tmp_path.glob("tmp*")] == [], "nothing is left beside it"


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("return [scores]", "it has 1 outputs; the original has 2"),
        ("scores = scores[:, :3]", "output 0 has the shape (32, 3)"),
        ("classes = classes.astype('float32')", "output 1 is float32; the original's is int64"),
        ("classes = classes * 0 + 9", "output 1 differs in"),
        ("scores = np.where(scores > 1, np.nan, scores)", "output 0 has NaN or infinity in other places"),
        ("scores = scores * 1.1", "its numbers are off by"),
        ("raise RuntimeError('no kernel')", "no kernel"),
        ("import no_such_runtime", "no_such_runtime"),
    ],
)
def test_a_loader_that_answers_otherwise_is_told(tmp_path: Path, builder: Any, what: str, said: str) -> None:
    problem = delivered(tmp_path, builder, contestant(tmp_path, what))
    assert problem.startswith("loader: ")
    assert said in problem


def test_a_process_that_dies_is_a_problem_of_the_artefact(tmp_path: Path, builder: Any) -> None:
    builder.processes.worker = lambda log, preloaded=True: InProcess("its process crashed with SIGSEGV")
    assert delivered(tmp_path, builder, contestant(tmp_path)) == "loader: its process crashed with SIGSEGV"


def test_an_artefact_that_leans_on_what_it_was_copied_from_is_told(tmp_path: Path, builder: Any) -> None:
    one = contestant(tmp_path)
    one.candidate.route.what = f"open({str(one.candidate.directory / 'model.bin')!r}).close()"  # type: ignore[attr-defined]
    assert "No such file" in delivered(tmp_path, builder, one)
    assert (one.candidate.directory / "model.bin").exists()


def test_a_route_that_has_no_loader_is_a_problem_of_its_own(tmp_path: Path, builder: Any) -> None:
    one = contestant(tmp_path)
    one.candidate.route.loader = lambda setting, batch: {}[setting]  # type: ignore[method-assign]
    assert delivered(tmp_path, builder, one).startswith("loader: ")


# ── numbers of samples at once ───────────────────────────────────────────────────────────────────────────────────────

REFUSES = "if len(x) != BATCH: raise ValueError('one batch alone')"
CONFUSES = "scores = scores if len(x) == BATCH else scores[::-1] * 3"


def test_numbers_of_samples_that_are_tried(builder: Any) -> None:
    subject = builder.subject
    assert delivery.other_sizes(subject, 1) == [3]
    assert delivery.other_sizes(subject, 8) == [1, 3, 11]
    object.__setattr__(subject, "batches", (1, 64))
    assert delivery.other_sizes(subject, 1) == [3, 64]
    object.__setattr__(subject, "batching", "fixed")
    assert delivery.other_sizes(subject, 1) == []


def test_other_numbers_may_be_refused(tmp_path: Path, builder: Any) -> None:
    one = contestant(tmp_path, REFUSES)
    assert delivered(tmp_path, builder, one) == ""
    assert one.candidate.fixed_batch == "It takes batches of 1 alone (one batch alone)."


def test_other_numbers_that_would_be_answered_wrongly_are_refused_by_the_loader(tmp_path: Path, builder: Any) -> None:
    one = contestant(tmp_path, CONFUSES, batch=8)
    object.__setattr__(builder.subject, "batches", (8,))
    assert delivered(tmp_path, builder, one) == ""
    assert one.candidate.fixed_batch.startswith("It takes batches of 8 alone (its answers to ")
    run = run_loader((tmp_path / "made" / "load.py").read_text(), tmp_path / "made")
    with pytest.raises(ValueError, match="takes batches of 8 alone"):
        run([SAMPLES[:3]])
    assert np.array_equal(run([SAMPLES[:8]])[0], SAMPLES[:8] * 2)


@pytest.mark.parametrize("what", [REFUSES, CONFUSES])
def test_a_number_that_was_named_has_to_be_answered(tmp_path: Path, builder: Any, what: str) -> None:
    object.__setattr__(builder.subject, "batches", (1, 16))
    assert delivered(tmp_path, builder, contestant(tmp_path, what)).startswith("loader: batches of 16: ")


def test_a_loader_may_refuse_some_numbers(tmp_path: Path, builder: Any) -> None:
    one = contestant(tmp_path, "if len(x) > BATCH: raise ValueError('too many')", batch=8)
    object.__setattr__(builder.subject, "batches", (8,))
    assert delivered(tmp_path, builder, one) == ""
    assert one.candidate.fixed_batch == "It refuses batches of 11 (too many)."


def test_an_imprecise_artefact_may_answer_few_samples_as_it_answered_them_before(tmp_path: Path, builder: Any) -> None:
    rough = [SAMPLES * 2 + np.float32(0.4), SAMPLES.argmax(1)]
    assert delivered(tmp_path, builder, contestant(tmp_path, "scores = scores + np.float32(.4)"), rough) == ""


# ── what is written for a server ─────────────────────────────────────────────────────────────────────────────────────


class Served(Planted):
    def ends(self, directory: Path) -> Any:
        return [End("x", "float32", (None, 4))], [End("a", "float32", (None, 4)), End("b", "int64", (None,))]


class Server(Layout):
    name, server = "triton", "a server"

    def unsuited(self, route: Any) -> str:
        return ""

    def write(self, one: Any, target: Path) -> Path:
        target.mkdir()
        return target

    def command(self, one: Any, target: Path) -> str:
        return f"serve {target.name}"


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("pass", ""),
        ("classes = 3 - classes", "output 1 differs in"),
        ("classes = classes.astype('float64')", "output 1 is float64; the original's is int64"),
        ("return [scores]", "it has 1 outputs; the original has 2"),
        ("scores = np.where(scores > 1, np.inf, scores)", "output 0 has NaN or infinity in other places"),
        ("if len(x) == 3: raise ValueError('one at a time')", "batches of 3: one at a time"),
        ("scores = scores if len(x) == 1 else scores * 0", "its answers to 3 samples at once agree to"),
    ],
)
def test_what_is_written_for_a_server_answers_as_the_artefact(
    tmp_path: Path, builder: Any, monkeypatch: pytest.MonkeyPatch, what: str, said: str
) -> None:
    one = contestant(tmp_path, route=Served)
    target = tmp_path / "artefact"
    made = artefact.unfinished(target)
    assert delivery.deliver(one, [SAMPLES * 2, SAMPLES.argmax(1)], builder, made) == ""
    source = LOADER.format(what=what)
    monkeypatch.setattr(trial, "open_written", lambda version, inputs, outputs: run_loader(source, version))
    monkeypatch.setattr("flatout.optimize.work.tasks.find", lambda name: one.candidate.route)
    started, why = delivery.deliver_layout(Server(), one, builder, target)
    assert (started, why) == ("serve triton", "") if not said else (started == "" and said in why)
    assert (made / "triton").exists() is not bool(said)
    assert [path.name for path in made.glob("tmp*")] == []


# ── loaders for other batches ────────────────────────────────────────────────────────────────────────────────────────


class Timed(Contestant):
    def run_block(self) -> Block:
        seconds = 1e-3 * self.setting.get("ms", 10.0)
        return Block([seconds] * 3, 3, seconds)


@pytest.fixture
def two_settings(tmp_path: Path, builder: Any, monkeypatch: pytest.MonkeyPatch) -> Contestant:
    """The winner at batch 1, with a setting that is faster at batch 4."""
    object.__setattr__(builder.subject, "batches", (1, 4))
    builder.open = lambda one: None
    monkeypatch.setattr(other_batches, "Contestant", Timed)
    one = contestant(tmp_path)
    one.candidate.settings = ({"ms": 4.0}, {"ms": 2.0})
    one.setting = {"ms": 4.0}
    one.candidate.route.loader = lambda setting, batch: LOADER.format(what=f"pass  # {setting} {batch}")  # type: ignore
    assert delivered(tmp_path, builder, one) == ""
    return one


def test_what_is_told_of_another_batch_is_what_a_loader_of_the_artefact_gives(
    tmp_path: Path, builder: Any, two_settings: Contestant
) -> None:
    base = Timed(two_settings.candidate, {}, 1)
    found, notes = other_batches.measure(two_settings, base, builder, tmp_path / "made", float("inf"))
    assert notes == []
    (at,) = found
    assert (at.one.setting, at.settings, at.loader) == ({"ms": 2.0}, 2, "load_batch_4.py")
    assert "{'ms': 2.0} 4" in (tmp_path / "made" / at.loader).read_text()
    assert "{'ms': 4.0} 1" in (tmp_path / "made" / "load.py").read_text()


def test_a_loader_for_another_batch_that_answers_wrongly_is_not_left_there(
    tmp_path: Path, builder: Any, two_settings: Contestant
) -> None:
    two_settings.candidate.route.loader = lambda setting, batch: LOADER.format(  # type: ignore[method-assign]
        what="scores = -scores" if batch == 4 else "pass"
    )
    base = Timed(two_settings.candidate, {}, 1)
    found, notes = other_batches.measure(two_settings, base, builder, tmp_path / "made", float("inf"))
    assert found == []
    assert notes[0].startswith("Batch 4 is answered by load.py alone, which was not timed for it: ")
    assert not (tmp_path / "made" / "load_batch_4.py").exists()


def measured_with(what: str, one: Contestant, builder: Any, made: Path) -> tuple[Any, list[str]]:
    one.candidate.route.loader = lambda setting, batch: LOADER.format(  # type: ignore[method-assign]
        what=what.replace("BATCH", str(batch))
    )
    base = Timed(one.candidate, {}, 1)
    return other_batches.measure(one, base, builder, made, float("inf"))


def test_a_loader_for_another_batch_refuses_the_numbers_that_it_would_answer_wrongly(
    tmp_path: Path, builder: Any, two_settings: Contestant
) -> None:
    wrong = "scores = scores if len(x) in (4, 7) or BATCH == 1 else -scores"
    (at,), notes = measured_with(wrong, two_settings, builder, tmp_path / "made")
    assert (at.loader, notes) == ("load_batch_4.py", [])
    run = run_loader((tmp_path / "made" / at.loader).read_text(), tmp_path / "made")
    assert len(run([SAMPLES[:7]])[0]) == 7
    for size in (1, 3, 5):
        with pytest.raises(ValueError, match="takes batches of 4 or 7 alone"):
            run([SAMPLES[:size]])


def test_a_loader_for_another_batch_may_refuse_other_numbers(
    tmp_path: Path, builder: Any, two_settings: Contestant
) -> None:
    refuses = "if len(x) != 4 and BATCH == 4: raise ValueError('compiled for 4')"
    (at,), notes = measured_with(refuses, two_settings, builder, tmp_path / "made")
    assert (at.loader, notes) == ("load_batch_4.py", [])


def test_a_loader_for_another_batch_is_given_odd_samples_too(
    tmp_path: Path, builder: Any, two_settings: Contestant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(odd_samples, "kinds", lambda subject: ["numbers"])
    monkeypatch.setattr(delivery, "_odd", lambda one, kind, builder, made, name: f"answered otherwise by {name}")
    found, notes = measured_with("pass  # BATCH", two_settings, builder, tmp_path / "made")
    assert found == []
    assert notes[0].endswith("not timed for it: odd numbers: answered otherwise by load_batch_4.py")
    assert not (tmp_path / "made" / "load_batch_4.py").exists()
