"""The HTML report: every view is there, nothing in a case becomes markup, and the page asks for nothing."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from sample_case import sample_case
from typer.testing import CliRunner

from flatout import store
from flatout.cli import make_app
from flatout.model.case import Case, Finding, Fix, Interval, Note, Program, Steps, Trial, Where
from flatout.report.html import charts, render
from flatout.report.html.cause_page import page as prose
from flatout.report.html.markup import data, join, tag, verbatim
from flatout.report.html.views import VIEWS
from flatout.report.html.views.findings import tried
from flatout.report.html.views.trials import _Scale
from flatout.store import saving

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "fixtures" / "report"))

from attack import EVIL, hostile

pytest.importorskip("plotly", reason="the charts of a report come from plotly, which is not installed")


class Reader(HTMLParser):
    """What a browser would make of the page: elements with their attributes, and the text outside scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self._inside = ""
        self.feed(page)

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((name, dict(attributes)))
        self._inside = name
        if name == "script":
            self.scripts.append((dict(attributes), ""))

    def handle_endtag(self, name: str) -> None:
        self._inside = ""

    def handle_data(self, text: str) -> None:
        if self._inside == "script":
            attributes, before = self.scripts[-1]
            self.scripts[-1] = (attributes, before + text)
        elif self._inside != "style":
            self.words.append(text)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def names(self) -> set[str]:
        return {name for name, _ in self.elements}


# ── what a reader finds ──


def test_every_view_of_a_full_case_is_there() -> None:
    reader = Reader(render(sample_case()))
    sections = {attributes.get("id") for name, attributes in reader.elements if name == "section"}
    # What comes from files beside a case is tested with such files.
    assert {view.name for view in VIEWS} - {"timeline"} | {"summary"} == sections
    for expected in (
        "The step waits for its input 61 % of the time",
        "118.2 ms",
        "110.4 ms – 131.9 ms",
        "high confidence",
        "dataset = dataset.map(load)",
        "Move the random flip behind the batch",
        "together with prefetch:",
        "Literal[0.099]",
        "NVIDIA H200",
        "2.31×",
        "[2.10, 2.60]",
        "ds = ds.map(f).cache()",
        "straggler",
        "StringSplitV2",
        "host-to-device",
        "The trace window was cut short",
        "tensorflow",
        "stateful: random op",
    ):
        assert expected in reader.text, expected


def test_links_of_the_navigation_lead_somewhere() -> None:
    reader = Reader(render(sample_case()))
    identities = {attributes["id"] for _, attributes in reader.elements if "id" in attributes}
    links = [attributes["href"] or "" for name, attributes in reader.elements if name == "a"]
    assert links
    assert {link[1:] for link in links} <= identities


@pytest.mark.parametrize("kind", ["run", "trace", "tune", "env", "check", "data", "optimize"])
def test_a_case_of_any_kind_that_holds_nothing_still_is_a_page(kind: Any) -> None:
    reader = Reader(render(Case(kind)))
    assert "No verdict" in reader.text
    assert "cannot be shown" not in reader.text


def test_words_that_choose_a_style_may_be_any_words() -> None:
    case = Case(
        "run",
        findings=(Finding("x", "y", confidence=EVIL, fixes=(Fix("z", equivalence=EVIL),)),),  # type: ignore[arg-type]
        trials=(Trial(("x",), EVIL, stage=EVIL), Trial(("y",), EVIL, Interval(2.0, 1.0, 3.0))),  # type: ignore[arg-type]
        notes=(Note(EVIL, "n"),),  # type: ignore[arg-type]
    )
    reader = Reader(render(case))
    assert "img" not in reader.names()
    assert "cannot be shown" not in reader.text


def test_a_view_that_cannot_be_shown_leaves_the_others() -> None:
    broken = dataclasses.replace(sample_case(), ops=("no op at all",))  # type: ignore[arg-type]
    text = Reader(render(broken)).text
    assert "This view cannot be shown" in text
    assert "Literal[0.099]" in text


def test_the_whole_case_is_inside() -> None:
    case = sample_case()
    found = [text for attributes, text in Reader(render(case)).scripts if attributes.get("id") == "case"]
    assert Case.from_json(json.loads(found[0])) == case


def test_the_gain_that_was_confirmed_counts_before_the_first_race() -> None:
    trials = (
        Trial(("cache",), "won", Interval(3.0, 2.0, 4.0), stage="single"),
        Trial(("cache=/x.py:3",), "won", Interval(2.5, 2.2, 2.7), stage="combination"),
        Trial(("cache", "xla"), "won", Interval(9.0, 8.0, 9.5), stage="combination"),
    )
    case = Case("tune", trials=trials)
    assert tried("cache", case) is trials[1]
    assert tried("xla", case) is trials[2]
    assert tried("bf16", case) is None
    assert tried(None, case) is None


def test_a_speedup_and_its_inverse_are_equally_far_from_one() -> None:
    scale = _Scale.over([Interval(1.0, 0.25, 4.0), Interval(2.0, 1.5, float("inf"))])
    assert scale.at(1) - scale.at(0.5) == pytest.approx(scale.at(2) - scale.at(1))
    assert scale.at(float("inf")) == 100
    assert scale.at(0) == 0
    assert len(scale.ticks()) >= 3
    assert all(low < high for low, high in zip(scale.ticks(), scale.ticks()[1:], strict=False))


# ── nothing in a case becomes markup ──


def test_hostile_text_stays_text() -> None:
    plain, attacked = Reader(render(sample_case())), Reader(render(hostile(sample_case())))
    assert attacked.names() <= plain.names() | {"strong", "code"}
    assert len(attacked.scripts) == len(plain.scripts)
    assert not [key for _, attributes in attacked.elements for key in attributes if key.startswith("on")]
    assert "<script>window.hit=1</script>" in attacked.text
    assert "\u202e" not in attacked.text
    run = [text for attributes, text in attacked.scripts if not attributes.get("type")]
    assert len(run) == 1
    assert "window.hit" not in run[0]


def test_text_for_charts_is_escaped_for_plotly() -> None:
    case = dataclasses.replace(sample_case(), ops=hostile(sample_case().ops))
    charts = [text for attributes, text in Reader(render(case)).scripts if attributes.get("type") == "application/json"]
    traces = [
        trace
        for chart in map(json.loads, charts)
        if isinstance(chart, dict)
        for trace in chart.get("data", [])
        if "window.hit" in json.dumps(trace)
    ]
    assert traces, "no chart shows the hostile text"
    for trace in traces:
        for key in ("labels", "customdata", "name"):
            assert "<" not in json.dumps(trace.get(key, "")), key


def test_the_policy_allows_the_scripts_of_the_page_and_nothing_else() -> None:
    reader = Reader(render(sample_case()))
    policy = next(
        attributes["content"] or ""
        for name, attributes in reader.elements
        if name == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    )
    rules = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert rules["default-src"] == "'none'"
    own = next(text for attributes, text in reader.scripts if not attributes.get("type"))
    digest = base64.b64encode(hashlib.sha256(own.encode()).digest()).decode()
    assert rules["script-src"].split() == [f"'sha256-{digest}'", f"'{charts.chart_library().hash}'"]
    assert "unsafe" not in rules["script-src"]


def test_nothing_is_asked_for_from_outside() -> None:
    reader = Reader(render(sample_case()))
    assert len(reader.elements) > 100
    for name, attributes in reader.elements:
        assert "src" not in attributes, name
        if "href" in attributes:
            assert re.match(r"#|data:,$", attributes["href"] or ""), attributes["href"]


def test_bytes_that_are_no_text_can_be_written() -> None:
    case = Case("run", program=Program(("train\udcff.py",)), verdict="\ud800 slow", notes=(Note("info", "\udfff"),))
    assert b"slow" in render(case).encode("utf-8")


def test_numbers_that_are_none_do_not_break_the_json() -> None:
    case = Case("tune", trials=(Trial(("x",), "won", Interval(2.0, 1.0, float("inf"))),))
    texts = [text for attributes, text in Reader(render(case)).scripts if attributes.get("type") == "application/json"]
    assert texts
    for text in texts:
        json.loads(text, parse_constant=lambda word: pytest.fail(word))


def test_markup_is_made_by_tags_alone() -> None:
    assert tag("p", "<b>", tag("b", "x"), None, ["&", [" y "]], class_='a"b', hidden=True, title=None) == (
        '<p class="a&quot;b" hidden>&lt;b&gt;<b>x</b>&amp; y </p>'
    )
    assert join("a", " ", tag("br")) == "a <br>"
    assert verbatim("\tif x:  \x00 # <") == "    if x:  \N{REPLACEMENT CHARACTER} # &lt;"
    assert "<" not in data({"a": "</script>"})[len("<script") : -len("</script>")]


def test_the_page_of_a_cause_keeps_its_form() -> None:
    text = "First `code` and **strong**\nline.\n\n## Heading\n- one\n  more\n- two\n```python\nx  = '<'\n```\nend"
    assert prose(text) == (
        '<div class="prose"><p>First <code>code</code> and <strong>strong</strong> line.</p><h5>Heading</h5>'
        '<ul><li>one more</li><li>two</li></ul><pre tabindex="0"><code>x  = &#x27;&lt;&#x27;</code></pre>'
        "<p>end</p></div>"
    )


# ── the command ──


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    saving.save(sample_case(), store.new_directory("train"))
    return tmp_path


def test_the_latest_case_is_written(kept: Path) -> None:
    result = CliRunner().invoke(make_app(), ["report"])
    assert result.exit_code == 0, result.output
    assert "The step waits for its input" in (kept / "report.html").read_text(encoding="utf-8")
    assert CliRunner().invoke(make_app(), ["report", "-q"]).exit_code == 0  # a report may be written again


def test_other_files_are_not_written_over(kept: Path) -> None:
    (kept / "notes.html").write_text("mine")
    result = CliRunner().invoke(make_app(), ["report", "-o", "notes.html"])
    assert result.exit_code != 0
    assert "--force" in str(result.exception)
    assert (kept / "notes.html").read_text() == "mine"
    assert CliRunner().invoke(make_app(), ["report", "-o", "notes.html", "--force"]).exit_code == 0
    assert (kept / "notes.html").read_text(encoding="utf-8") != "mine"


@pytest.mark.parametrize("output", [".", "nowhere/report.html"])
def test_a_place_that_cannot_be_written_is_told(kept: Path, output: str) -> None:
    result = CliRunner().invoke(make_app(), ["report", "-o", output])
    assert result.exit_code != 0
    assert output in str(result.exception)


def test_the_same_case_gives_the_same_page(kept: Path) -> None:
    first = CliRunner().invoke(make_app(), ["report", "-o", "-"]).stdout_bytes
    assert first == CliRunner().invoke(make_app(), ["report", "-o", "-"]).stdout_bytes
    assert first.startswith(b"<!doctype html>")


def test_a_missing_chart_library_is_named(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    charts.chart_library.cache_clear()
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.delitem(sys.modules, "plotly", raising=False)
    result = CliRunner().invoke(make_app(), ["report"])
    assert "flatout[report]" in str(result.exception)


def test_neither_tensorflow_nor_plotly_is_imported(kept: Path) -> None:
    check = "import sys; sys.exit(bool({'tensorflow', 'plotly', 'keras'} & set(sys.modules)))"
    code = f"from flatout.cli import make_app; make_app()(['report', '-q'], standalone_mode=False); {check}"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
    assert (kept / "report.html").exists()


def test_steps_without_a_split_say_why() -> None:
    steps = sample_case().steps
    assert steps is not None
    bare: Steps = dataclasses.replace(steps, split_ms=None, split_from="not told", where=Where())
    assert "not told" in Reader(render(Case("run", steps=bare))).text
