"""A notebook with a kept cell, scouted and raced in real processes that only sleep, so no TensorFlow is needed."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from flatout.process.watchdog import Watchdog
from flatout.trial import whole_run
from flatout.trial.child_process import Launch
from flatout.trial.launcher import command_for
from flatout.tune import kept_cells
from flatout.tune import starter as starter_module
from flatout.tune.contestant import Contestant
from flatout.tune.race import Race
from flatout.tune.request import TuneRequest
from flatout.tune.scout import scout
from flatout.tune.starter import Starter

LOADS = "the cell runs"
CELLS = (
    "import sys, time",
    f"# flatout: keep\nimport math\nprint({LOADS!r}, flush=True)\ndata = list(range(1000))",
    "# flatout: keep\nran = [sys]",
    "observer = next(finder.observer for finder in sys.meta_path if hasattr(finder, 'observer'))\n"
    "stream = observer.streams.make('fit', 'steps', 'sleeps')\nprint('sum', sum(data), ran, flush=True)",
    "for step in range(400):\n    began = time.perf_counter()\n    time.sleep(0.005)\n"
    "    observer.ticks.tick(stream, began, time.perf_counter())",
)


class Tune:
    """As much of a tune as kept cells need."""

    def __init__(self, place: Path) -> None:
        cells = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": cell} for cell in CELLS]
        content = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
        (place / "book.ipynb").write_text(json.dumps(content))
        self.directory = place / "tune"
        self.watchdog = Watchdog()
        self.request = TuneRequest("book.ipynb")
        self.launch = Launch(tuple(command_for("book.ipynb", (), False)))
        self.said: list[str] = []
        self.notes: list[Any] = []
        self.progress = SimpleNamespace(say=self.said.append)

    def race(self, *contestants: Contestant) -> Race:
        starter = Starter(self.directory / f"race-{time.monotonic_ns()}", self.watchdog, tell=self.said.append)
        race = Race(contestants, starter)
        race.start(contestants)
        return race

    def contestant(self, **changes: Any) -> Contestant:
        return Contestant(replace(self.launch, **changes), "one")

    def printed(self, one: Contestant) -> list[str]:
        return [(path / "output.txt").read_text() for path in one.directories]


@pytest.fixture
def tune(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(starter_module, "BLOCK_SECONDS", 0.1)
    made = Tune(tmp_path)
    assert kept_cells.asked_for(made.request)
    scouted = made.directory / "scout-1"
    scout(made.launch, scouted, made.watchdog, time.monotonic() + 100, keeps=True)
    assert (scouted / "output.txt").read_text().count(LOADS) == 1
    kept_cells.take_over(made, scouted)  # type: ignore[arg-type]
    yield made
    made.watchdog.close()


@pytest.mark.slow
def test_the_cell_runs_in_the_scouting_run_and_in_whole_runs_alone(tune: Tune) -> None:
    assert [text.partition(" (")[0] for text in tune.said] == [
        "cell 2 of book.ipynb ran once: trials begin with what it has made",
        "cell 3 of book.ipynb is not kept: `ran` is no plain data: it has a module",
    ]
    assert [note.text[:6] for note in tune.notes] == ["Cell 2", "Cell 3"]
    race = tune.race(tune.contestant(), tune.contestant())
    for one in race.baselines:
        assert one.active, one.note
        (text,) = tune.printed(one)
        assert LOADS not in text
        assert "sum 499500 [<module 'sys' (built-in)>]" in text
    race.close()
    found = whole_run.run(tune.launch, tune.directory / "whole", tune.watchdog, 60)
    assert found.exit_code == 0
    assert (tune.directory / "whole" / "output.txt").read_text().count(LOADS) == 1
    assert (tune.directory / "scout-1" / "kept").is_dir()
    kept_cells.remove(tune.directory)
    assert not list(tune.directory.rglob("kept"))


@pytest.mark.slow
def test_where_one_trial_runs_the_cell_all_of_its_race_do(tune: Tune) -> None:
    program = Path(tune.launch.command[-1])
    edited = tune.directory / "edited.py"
    edited.write_text(program.read_text().replace("import sys, time", "import sys, time\nsys.setrecursionlimit(2000)"))
    race = tune.race(tune.contestant(), tune.contestant())
    changed = tune.contestant(sources=((str(program), str(edited)),))
    race.start([changed])
    assert tune.said[-1] == (
        "all cells run in these trials, those that are kept too (cell 2: the program is another one up to its end)"
    )
    race.starter.start(race.baselines)
    assert [LOADS in text for text in tune.printed(changed)] == [True, True]
    for one in race.baselines:
        assert [LOADS in text for text in tune.printed(one)] == [False, True]
        assert one.active, one.note
    race.close()


def test_only_notebooks_with_such_cells_are_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("# flatout: keep\nx = 1\n")
    assert not kept_cells.asked_for(TuneRequest("train.py"))
    content = {"cells": [{"cell_type": "code", "source": "x = 1"}], "metadata": {}, "nbformat": 4}
    (tmp_path / "book.ipynb").write_text(json.dumps(content))
    assert not kept_cells.asked_for(TuneRequest("book.ipynb"))
