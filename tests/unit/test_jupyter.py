"""Inside a notebook: what is shown of a case, which cells a tune runs, and how lines are named."""

from __future__ import annotations

import json
from dataclasses import replace
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import Any

import pytest
from sample_case import sample_case

import flatout
from flatout.jupyter.bar import html as bar
from flatout.jupyter.history import Places, cells_of, notebook
from flatout.jupyter.magics import Magic, _options, register
from flatout.model.case import Finding, Fix, Note, Where
from flatout.model.errors import InvalidOption
from flatout.report.html.fragment import MOST_PATCH_LINES, render

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>\x1b[31m\u202e"


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(tag)
        self.attributes += attrs


def hostile_case() -> Any:
    where = Where(file=HOSTILE, line=3, code=HOSTILE)
    finding = Finding(HOSTILE, HOSTILE, where, cost_share=0.5, fixes=(Fix(HOSTILE),))
    return replace(
        sample_case(), verdict=HOSTILE, findings=(finding,) * 5, notes=(Note("warning", HOSTILE),), patch=HOSTILE * 3
    )


def test_a_case_shows_itself() -> None:
    case = sample_case()
    shown = case._repr_html_()
    assert shown == flatout._as_html(case)
    assert "flatout-case" in shown
    assert 'class="bar"' in shown


def test_nothing_of_a_case_becomes_markup() -> None:
    shown = render(hostile_case())
    tags = Tags(shown)
    assert set(tags.found) <= {"div", "style", "p", "span", "i", "ol", "li", "code", "pre"}
    assert not [name for name, _ in tags.attributes if name.startswith("on") or name in ("src", "href")]
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "&lt;script&gt;" in shown
    assert "and 2 more" in shown


def test_it_is_readable_in_light_and_dark_and_asks_for_nothing() -> None:
    shown = render(sample_case())
    assert "prefers-color-scheme:dark" in shown
    assert "--jp-content-font-color1" in shown, "JupyterLab's own colours"
    assert "--vscode-foreground" in shown, "those of VS Code"
    for word in ("http", "url(", "@import", "<script"):
        assert word not in shown


def test_a_long_patch_is_cut() -> None:
    lines = "\n".join(f"+line {number}" for number in range(MOST_PATCH_LINES + 7))
    shown = render(replace(sample_case(), patch=lines))
    assert "7 more lines" in shown


class Shell:
    """As much of IPython as is needed."""

    def __init__(self, *cells: str) -> None:
        self.history_manager = SimpleNamespace(input_hist_raw=["", *cells])
        self.execution_count = len(cells)
        self.compile = SimpleNamespace(get_code_name=lambda raw, code, number: f"/tmp/ipykernel/{hash(raw)}.py")
        self.magics: dict[str, Any] = {}
        self.events = SimpleNamespace(register=lambda name, function: None)

    def transform_cell(self, text: str) -> str:
        return text

    def register_magic_function(self, function: Any, kind: str, name: str) -> None:
        self.magics[f"{kind} {name}"] = function


def test_lines_are_named_by_the_cell_they_were_typed_in() -> None:
    shell = Shell("import x", "def step():\n    pass", "%%flatout\nstep()")
    place = Places(shell, "step()")
    assert (
        place(Where(file=f"/tmp/ipykernel/{hash(shell.history_manager.input_hist_raw[2])}.py", line=1))
        == "In [2] line 1"
    )
    assert place(Where(file=f"/tmp/ipykernel/{hash('step()')}.py", line=1)) == "this cell line 1"
    assert place(Where(file="/home/me/model.py", line=7)) == "model.py:7"


def test_a_tune_runs_the_cells_before_and_leaves_flatouts_own_out() -> None:
    cells = ["%load_ext flatout\nimport x", "%%flatout --no-trace\ny = 1", "", "%load_ext flatout"]
    book = json.loads(notebook(cells, "z = 2"))
    assert [cell["source"] for cell in book["cells"]] == ["import x", "y = 1", "z = 2"]
    assert book["nbformat"] == 4


def test_a_tune_leaves_out_cells_that_failed() -> None:
    shell = Shell("import x", "x.nothing", "y = 1", "%%flatout tune\nz = 2")
    magic = Magic(shell)
    for number, success in enumerate((True, False, True), 1):
        magic._note(SimpleNamespace(execution_count=number, success=success))
    magic._note(SimpleNamespace(execution_count=None, success=False))
    assert cells_of(shell, magic.failed)[:-1] == ["import x", "y = 1"]


def test_a_cell_that_was_tuned_before_is_not_there_twice() -> None:
    cells = ["import x", "%%flatout tune --budget 1m\nx.fit(1)", "\n%%flatout  tune\nx.fit(2)"]
    book = json.loads(notebook(cells, "x.fit(2)"))
    assert [cell["source"] for cell in book["cells"]] == ["import x", "x.fit(2)"]


def test_options_of_the_magic() -> None:
    assert _options(["--budget", "90s", "--lever=function", "--lever", "xla"]) == {
        "budget": "90s",
        "levers": ["function", "xla"],
    }
    for words in (["--nothing"], ["--budget"], ["--budget", "soon"]):
        with pytest.raises(InvalidOption):
            _options(words)


def test_what_is_wrong_is_one_line_under_the_cell(capsys: pytest.CaptureFixture[str]) -> None:
    shell = Shell("%%flatout")
    register(shell)
    magic = shell.magics["cell flatout"]
    assert isinstance(magic, Magic)
    magic("--nothing", "x = 1")
    magic("tune --budget soon", "x = 1")
    magic("'", "x = 1")
    told = capsys.readouterr().out.splitlines()
    assert len(told) == 3
    assert all(line.startswith("flatout: ") for line in told)


def test_the_bar_says_how_much_time_is_used() -> None:
    assert "1:05 of 5:00 at most" in bar("tuning <this>", 65.0, 300.0)
    assert 'value="65"' in bar("tuning", 65.0, 300.0)
    assert "&lt;this&gt;" in bar("tuning <this>", 65.0, 300.0)
    assert "progress" not in bar("tuning", 65.0, 300.0, ended=True)
