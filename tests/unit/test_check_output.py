"""The formats of `flatout check`, with names and texts that try to break out of them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from flatout.check.driver import Job, Report, check
from flatout.check.files import Problem
from flatout.check.output import FORMATS, View, render
from flatout.check.selection import select
from flatout.check.settings import Settings
from flatout.model.case import Case
from flatout.source.analysis.patterns import Diagnostic

BAD = "import tensorflow as tf\n\n\ndef build(model):\n    model.compile(run_eagerly=True)  # <é>\n"
EVIL = 'a,b:c%\n<x>\x1b[31m&".py'


@pytest.fixture
def view(tmp_path: Path) -> View:
    (tmp_path / "train.py").write_text(BAD)
    report = check([str(tmp_path)], Job(select(), Settings(root=tmp_path), 1, cached=False))
    return View(report, tmp_path, {str(tmp_path / "train.py"): BAD.split("\n")})


@pytest.fixture
def evil(tmp_path: Path) -> View:
    item = Diagnostic("host-sync", "pull", 3, 1, 3, 9, EVIL, EVIL, code=EVIL, function=EVIL, cell=2)
    return View(Report(files={EVIL: [item, item]}, problems=[Problem(EVIL, EVIL)], checked=1), tmp_path, {})


def test_concise_is_one_line_per_finding(view: View) -> None:
    text = render("concise", view)
    assert "train.py:5:31: run-eagerly run_eagerly=True makes Python dispatch" in text
    assert text.endswith("Found 1 fault in 1 file; 1 with --fix --unsafe-fixes.\n")


def test_full_shows_the_code_and_points_at_it(view: View) -> None:
    lines = render("full", view).splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("5 | "))
    assert lines[at].endswith("# <é>")
    assert lines[at + 1].index("^") == lines[at].index("True")
    assert "  more: flatout explain run-eagerly" in lines


def test_json_is_a_case(view: View) -> None:
    case = Case.from_json(json.loads(render("json", view)))
    assert case.kind == "check"
    assert case.findings[0].cause == "run-eagerly"
    assert case.findings[0].where is not None
    assert case.findings[0].where.line == 5
    assert case.findings[0].evidence[0].write_json()["data"]["column"] == 31


def test_sarif_has_what_its_readers_need(view: View) -> None:
    log = json.loads(render("sarif", view))
    assert log["version"] == "2.1.0"
    run = log["runs"][0]
    result = run["results"][0]
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "run-eagerly"
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "train.py"
    assert place["region"]["startLine"] == 5
    assert result["partialFingerprints"]


def test_sarif_is_valid(view: View, evil: View) -> None:
    """What the schema of OASIS (SARIF 2.1.0) demands of the objects that are written; the whole of it is large."""
    for each in (view, evil):
        log = json.loads(render("sarif", each))
        assert log["$schema"] == "https://json.schemastore.org/sarif-2.1.0.json"
        assert log["version"] == "2.1.0"
        (run,) = log["runs"]
        rules = run["tool"]["driver"]["rules"]
        assert run["tool"]["driver"]["name"]
        assert len({rule["id"] for rule in rules}) == len(rules)
        assert all(rule["shortDescription"]["text"] for rule in rules)
        assert run["results"]
        for result in run["results"]:
            assert result["level"] in ("none", "note", "warning", "error")
            assert result["message"]["text"]
            assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
            assert result["locations"]
            for location in result["locations"]:
                place = location["physicalLocation"]
                uri = place["artifactLocation"]["uri"]
                assert not re.search(r"[\s<>\"\x00-\x20\\^`{|}]", uri), "a URI reference has no such characters"
                region = place["region"]
                assert min(n for n in region.values() if isinstance(n, int)) >= 1, "counted from 1"
                assert region.get("endLine", region["startLine"]) >= region["startLine"]


def test_github_gitlab_and_junit(view: View) -> None:
    assert render("github", view).startswith("::warning file=train.py,title=flatout run-eagerly/compile,line=5,col=31,")
    row = json.loads(render("gitlab", view))[0]
    assert row["location"] == {"path": "train.py", "lines": {"begin": 5, "end": 5}}
    case = ElementTree.fromstring(render("junit", view)).find(".//testcase")
    assert case is not None
    assert case.find("failure") is not None


@pytest.mark.parametrize("name", FORMATS)
def test_nothing_breaks_out(evil: View, name: str) -> None:
    text = render(name, evil)
    assert "\x1b" not in text
    if name == "github":
        assert all(line.startswith("::warning file=a%2Cb%3Ac%25%0A<x>") for line in text.splitlines())
    if name in ("json", "sarif", "gitlab"):
        json.loads(text)
    if name == "gitlab":
        assert len({row["fingerprint"] for row in json.loads(text)}) == 2
    if name == "junit":
        ElementTree.fromstring(text)


@pytest.mark.parametrize("name", FORMATS)
def test_nothing_found_is_said_well(tmp_path: Path, name: str) -> None:
    text = render(name, View(Report(checked=3), tmp_path, {}))
    if name == "junit":
        assert ElementTree.fromstring(text).attrib["failures"] == "0"
    assert "None" not in text


# ── the command itself ───────────────────────────────────────────────────────────────────────────────────────────


def flatout(*arguments: str, cwd: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "flatout", "check", *arguments]
    return subprocess.run(command, cwd=cwd, input=stdin, capture_output=True, text=True, timeout=400, check=False)


def test_exit_codes_and_fixing(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(BAD)
    (tmp_path / "broken.py").write_text("import tensorflow\nmodel.predict(\n")
    found = flatout("--diff", "--unsafe-fixes", cwd=tmp_path)
    assert found.returncode == 1
    assert "-    model.compile(run_eagerly=True)  # <é>\n+    model.compile()  # <é>\n" in found.stdout
    assert found.stderr == "broken.py: line 2: not valid Python: '(' was never closed\n"
    assert (tmp_path / "train.py").read_text() == BAD
    fixed = flatout("--fix", "--unsafe-fixes", "-q", cwd=tmp_path)
    assert (fixed.returncode, fixed.stdout, fixed.stderr) == (0, "Nothing found; 1 file could not be read.\n", "")
    assert (tmp_path / "train.py").read_text() == BAD.replace("run_eagerly=True", "")


def test_what_is_ignored_in_a_file_is_not_repaired_there(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.flatout.check.per-file-ignores]\n"a.py" = ["run-eagerly"]\n')
    text = BAD + "\n\noptions.autotune.enabled = False\n"
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text(text)
    assert flatout("--fix", "--unsafe-fixes", cwd=tmp_path).returncode == 0
    assert (tmp_path / "a.py").read_text() == BAD
    assert (tmp_path / "b.py").read_text() == BAD.replace("run_eagerly=True", "")


def test_standard_input_and_tensorflow_is_not_imported(tmp_path: Path) -> None:
    (tmp_path / "tensorflow.py").write_text("raise SystemExit('imported')\n")
    (tmp_path / "keras.py").write_text("raise SystemExit('imported')\n")
    found = flatout("-", "--stdin-filename", "a.py", cwd=tmp_path, stdin=BAD)
    assert found.returncode == 1
    assert found.stdout.startswith("a.py:5:31: run-eagerly")


def test_what_is_asked_wrongly(tmp_path: Path) -> None:
    for arguments in (["nowhere"], ["--select", "x"], ["-f", "x"], ["--tf", "x"]):
        answer = flatout(*arguments, cwd=tmp_path)
        assert answer.returncode == 2
        assert answer.stderr.startswith("flatout: ")
        assert answer.stderr.count("\n") == 1
