"""Kept cells in a program: what is kept and what is not, and that a trial begins with what was kept."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import traceback
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from flatout.observe.spans import Spans
from flatout.observe.trial_state import TrialState
from flatout.process.messages import decode
from flatout.source.notebooks.text import MARK
from flatout.trial.child.kept import cells
from flatout.trial.messages import CellSeen, CellsSeen

START = "ran = []\nimport random\nimport numpy as np\n"
KEEP = "# flatout: keep\n"


class Place:
    """A program that runs once to be watched, and then as trials."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.directory = directory
        self.trial = TrialState()
        self.begin = START
        monkeypatch.setattr(cells, "_keeper", None)

    def run(self, program: tuple[str, ...], kept: str) -> dict[str, Any]:
        self.trial = TrialState()
        recorder = SimpleNamespace(directory=str(self.directory))
        observer: Any = SimpleNamespace(recorder=recorder, spans=Spans(), trial=self.trial)
        cells.install(observer, kept)
        namespace: dict[str, Any] = {"__name__": "__main__"}
        for code in cells.codes(self.text(program).encode(), str(self.directory / "book.ipynb.py"), namespace):
            exec(code, namespace)
        return namespace

    def text(self, program: tuple[str, ...]) -> str:
        return self.begin + "".join(f"{MARK}{number}\n{cell}\n" for number, cell in enumerate(program, start=1))

    def watched(self, *program: str) -> dict[str, Any]:
        return self.run(program, "")

    def tried(self, *program: str) -> dict[str, Any]:
        return self.run(program, str(self.directory / cells.DIRECTORY))

    def seen(self) -> tuple[CellSeen, ...]:
        return decode((self.directory / cells.DIRECTORY / cells.FILE).read_bytes(), CellsSeen).cells


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(tmp_path, monkeypatch)


DATA = f"""{KEEP}
import math
def scaled(array, by=2):
    return array * by
class Kind:
    name = "digits"
print("loads")
x = scaled(np.arange(6.0).reshape(2, 3))
order = np.random.permutation(6)
views = [x, x[0]]
handle = open(__file__)
handle.close()
del math
"""
USES = "first = x.sum() + len(views)\nviews[1][:] = -1\nnoise = np.random.rand(), random.random()\nkind = Kind().name"


def test_a_trial_begins_with_what_the_cell_has_made(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    program = ("a = 1\n'a text'", f"__file__ = {__file__!r}", DATA, "assert order is not None\n" + USES)
    random.seed(5)
    np.random.seed(5)
    before = place.watched(*program)
    assert capsys.readouterr().out == "loads\n"
    (seen,) = place.seen()
    assert (seen.why_not, seen.left_out, seen.deleted) == ("", ("handle",), ("math",))
    assert (place.directory / cells.DIRECTORY).stat().st_mode & 0o777 == 0o700
    random.seed(6)
    np.random.seed(6)
    after = place.tried(*program)
    assert capsys.readouterr().out == ""
    assert place.trial.ran_kept == ""
    assert after["views"][0] is after["x"]
    assert (after["x"][0] == -1).all(), "the view shows the array"
    np.testing.assert_array_equal(after["x"], before["x"])
    np.testing.assert_array_equal(after["order"], before["order"])
    assert after["noise"] == before["noise"]
    assert (after["first"], after["kind"]) == (before["first"], "digits")
    assert "math" not in after
    assert "handle" not in after
    assert after["scaled"](1) == 2, "what it defines is defined"
    assert "__doc__" not in after


def test_lines_and_futures_are_those_of_the_program(place: Place) -> None:
    place.begin = f"from __future__ import annotations\n{START}"
    program = ("a = 1", f"{KEEP}x = 1", "def f(a: gone): ...", "'text'\n1 / 0")
    with pytest.raises(ZeroDivisionError) as raised:
        place.watched(*program)
    frame = traceback.extract_tb(raised.value.__traceback__)[-1]
    assert frame.filename == str(place.directory / "book.ipynb.py")
    assert frame.lineno is not None
    assert place.text(program).split("\n")[frame.lineno - 1] == "1 / 0"


def test_the_cell_runs_where_the_program_differs(place: Place) -> None:
    program = ("a = [1]", f"{KEEP}x = a[0] + 1\nraw = 7", "y = x")
    place.watched(*program)
    assert not place.seen()[0].why_not
    assert place.tried(*program)["y"] == 2
    assert place.trial.ran_kept == ""
    another = "cell 2: the program is another one up to its end"
    for changed, y, why in (
        (("a = [2]", *program[1:]), 3, another),
        ((program[0], program[1].replace("+ 1", "+ 2"), program[2]), 3, another),
        ((*program[:2], "y = x + raw"), 9, "cell 2: the program reads more of what it makes"),
    ):
        assert place.tried(*changed)["y"] == y
        assert place.trial.ran_kept == why
    place.tried("import time\na = [1]", *program[1:])
    assert place.trial.ran_kept == "", "an import that a patch adds changes nothing"


def test_the_cell_runs_where_it_begins_with_other_values(place: Place) -> None:
    program = ("import os\nname = os.environ['KEPT_NAME']\nother = len(name)", f"{KEEP}x = name + '!'", "y = x")
    os.environ["KEPT_NAME"] = "one"
    place.watched(*program)
    place.tried(*program)
    assert place.trial.ran_kept == ""
    os.environ["KEPT_NAME"] = "two"
    assert place.tried(*program)["y"] == "two!"
    assert place.trial.ran_kept == "cell 2: it begins with other values"
    del os.environ["KEPT_NAME"]


def test_several_cells_share_the_room(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "MOST_BYTES", 1 << 20)
    program = [f"{KEEP}x{n} = np.zeros(60_000)" for n in range(3)]
    after = "total = x0.sum() + x1.sum() + x2.sum()"
    place.watched(*program, after)
    assert [bool(one.why_not) for one in place.seen()] == [False, False, True]
    assert place.tried(*program, after)["total"] == 0


# ── what is not kept ─────────────────────────────────────────────────────────────────────────────────────────────────

BEFORE = """
import time
box = {}
array = np.zeros(2)
rng = iter([1, 2])
made = (number for number in rng)
draws = np.random.default_rng(1)
def add(one): ran.append(one)
def wait(): time.sleep(5)
def decorate(f): return f
def counter():
    n = [0]
    def count(): n[0] += 1
    return count
count = counter()
class Bag:
    held = 1
bag = Bag()
"""
REFUSED = {
    "ran.append(1)": "it changes `ran`",
    "box['x'] = 1": "it changes `box`",
    "array += 1": "it changes `array`",
    "add(1)": "it changes `ran`",
    "count()": "it changes `count`",
    "Bag.held = 3": "it changes `Bag`",
    "bag.own = 3": "it changes `bag`",
    "add.note = 1": "it changes `add`",
    "import helper\ny = helper.load()": "it changes `helper.cache`",
    "import helper\nhelper.count()": "it changes helper",
    "import helper\nhelper.new = 1": "it changes helper",
    "y = next(rng)": "it changes `rng`",
    "y = next(made)": "it uses `made`, and whether it changes that cannot be seen",
    "y = draws.random()": "it changes `draws`",
    "y = ran": "something else holds `y` as well, or a part of it",
    "y = Bag()": "`y` is no plain data: it has a Bag",
    "y = print": "`y` is no plain data: it has a builtin_function_or_method",
    "if True:\n    import math as y": "`y` is no plain data: it has a module",
    "import os\nos.environ['A_NEW_ONE'] = '1'": "it changes environment variables",
    "import os\nos.chdir('/')": "it changes the working directory",
    "import sys\nsys.path.append('/x')": "it changes sys.path",
    "import warnings\nwarnings.simplefilter('error')": "it changes which warnings are errors",
    "import textwrap\ntextwrap.dedent = print": "it changes textwrap",
    "np.seterr(all='raise')": "it changes settings of numpy",
    "import threading\nthreading.Thread(target=wait, daemon=True).start()": "it starts threads",
    "import subprocess\ny = str(subprocess.Popen(['sleep', '5'], stdout=-3, stderr=-3))": "it starts processes",
    "open('made.txt', 'w').close()": "it writes files",
    "import tempfile\ny = tempfile.mkdtemp()": "it writes files",
    "exec('x = 1')": "it may use names that its source does not show",
    "x = 1\ndef f(a=x): ...": "a definition in it needs `x` while it is made",
    "x = 1\n@decorate\ndef f(): ...": "a definition in it calls `decorate`",
    "x = 1\ndef f(a=random.random()): ...": "a definition in it draws random numbers",
    "y = np.zeros(1 << 20)": "what it makes takes more than 0.0 GB",
    "y = time.time()": "`y` is the time at which it ran",
    "y = time.perf_counter_ns()": "`y` is the time at which it ran",
    "import datetime\ny = datetime.datetime.now()": "`y` is the time at which it ran",
    "import multiprocessing\nmultiprocessing.set_start_method('spawn')": "it changes how processes are started",
    "y = 5.0, time.perf_counter() > 0": "",
    "y = np.arange(3)": "",
    "y = len(box) + Bag.held + len(array)": "",
    "for n in [1, 2]:\n    y = random.random() * n": "",
    "import tempfile\nwith tempfile.TemporaryFile() as f:\n    y = f.read()": "",
}
HELPER = "cache = {}\nn = 0\ndef load(): return cache.setdefault('x', 1)\ndef count():\n    global n\n    n += 1\n"
ONE_BY_ONE = """
import json, os, sys
from types import SimpleNamespace
from flatout.observe.spans import Spans
from flatout.observe.trial_state import TrialState
from flatout.trial.child import shield
from flatout.trial.child.kept import cells
import numpy

programs, place = json.loads(sys.argv[1]), sys.argv[2]
sys.path.insert(0, os.getcwd())
cells.MOST_BYTES = 1 << 20
for number, program in enumerate(programs):
    if os.fork():
        assert os.wait()[1] == 0
        continue
    directory = os.path.join(place, str(number))
    os.makedirs(directory + "/tmp")
    os.environ["TMPDIR"] = directory + "/tmp"
    shield.install(directory)
    recorder = SimpleNamespace(directory=directory)
    cells.install(SimpleNamespace(recorder=recorder, spans=Spans(), trial=TrialState()), "")
    namespace = {"__name__": "__main__"}
    for code in cells.codes(program.encode(), os.getcwd() + "/book.ipynb.py", namespace):
        exec(code, namespace)
    os._exit(0)
"""


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Why each cell is not kept. Each runs in a process of its own: what they do is not to be undone."""
    work, place = tmp_path_factory.mktemp("work"), tmp_path_factory.mktemp("place")
    (work / "helper.py").write_text(HELPER)
    programs = [f"{START}{MARK}1\n{BEFORE}\n{MARK}2\n{KEEP}{cell}\n{MARK}3\nlambda: y\n" for cell in REFUSED]
    command = [sys.executable, "-c", ONE_BY_ONE, json.dumps(programs), str(place)]
    done = subprocess.run(command, cwd=work, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert [one.name for one in work.iterdir()] == ["helper.py"]
    found = {}
    for number, cell in enumerate(REFUSED):
        path = place / str(number) / cells.DIRECTORY / cells.FILE
        (seen,) = decode(path.read_bytes(), CellsSeen).cells
        found[cell] = seen.why_not
    return found


@pytest.mark.parametrize("cell", REFUSED)
def test_a_cell_that_does_more_than_make_data_is_not_kept(refused: dict[str, str], cell: str) -> None:
    assert refused[cell] == REFUSED[cell]
