"""The audit as a whole: every check is found, judged, shown and kept, and nothing imports TensorFlow."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from flatout.environment import readings, summary
from flatout.environment.auditor import judge
from flatout.environment.checks import catalogue
from flatout.environment.reading import Check, Facts, Reading
from flatout.environment.table import show
from flatout.model.case import Case
from flatout.plugins import Loaded

ODD_FACTS: dict[str, Any] = {
    "cores": {"machine": 64, "affinity": 64, "quota": 4.0},
    "cpu": {"model": "Xeon [bold]x[/bold] \x1b[31m", "flags": ["sse2"]},
    "system": {"machine": "x86_64", "python": "3.11.7"},
    "variables": {"XLA_FLAGS": "--tf_xla_auto_jit=2 [red]" + "y" * 200},
    "tensorflow": {"asked": True, "error": "ImportError: [link=http://x]libfoo[/link]"},
}


def printed(case: Case, width: int, **options: Any) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False, no_color=True)
    show(case, console, **options)
    output = console.file
    assert isinstance(output, io.StringIO)
    return output.getvalue()


def test_every_check_has_a_page_and_a_test() -> None:
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("test_environment_*.py"))
    assert len(catalogue()) >= 20
    for check in catalogue().values():
        assert check.title, check.name
        assert check.page, check.name
        assert check.name.replace("-", "_") in tests, f"no test names the check {check.name}"


def test_checks_bear_missing_facts() -> None:
    for facts in ({}, dict.fromkeys(ODD_FACTS)):
        found = readings(facts)
        assert found
        assert [reading for _, reading in found if reading.value == "not checked"] == []


def test_a_check_that_fails_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(facts: Facts) -> Iterator[Reading]:
        raise KeyError("x")

    one = Loaded("broken", "A broken check", "", sys.modules[__name__], Check(group="machine", check=broken))
    monkeypatch.setattr(sys.modules["flatout.environment.auditor"], "catalogue", lambda: {"broken": one, **catalogue()})
    found = readings({})
    assert found[0][1].value == "not checked"
    assert len(found) > 1


def test_the_case_round_trips() -> None:
    case = judge(ODD_FACTS)
    again = Case.from_json(json.loads(json.dumps(case.to_json())))
    assert again == case
    assert case.kind == "env"
    assert {"name", "status", "meaning", "todo"} <= set(case.evidence[0].write_json()["data"])
    assert "fault" in case.verdict


@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_the_table_fits_and_reads_no_markup(width: int) -> None:
    text = printed(judge(ODD_FACTS), width)
    lines = text.splitlines()
    assert max(map(len, lines)) <= min(width, 120)
    assert not any(line.endswith(" ") for line in lines)
    assert "\x1b" not in text
    assert "[link=http://x]" in text.replace("\n", "").replace(" ", "")


def test_quiet_shows_only_what_is_wrong() -> None:
    text = printed(judge(ODD_FACTS), 80, quiet=True)
    assert "✗" in text
    assert "✓" not in text
    with_tensorflow = {"packages": {"versions": {"tensorflow": "2.21.0"}}}
    assert printed(judge(with_tensorflow), 80, quiet=True) == ""


def test_a_summary_starts_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    monkeypatch.setenv("TF_NUM_INTRAOP_THREADS", "lots")
    summary(None)
    facts = summary({"version": "2.21.0", "devices": []})
    assert facts["tensorflow"]["version"] == "2.21.0"
    assert {"name": "TF_NUM_INTRAOP_THREADS", "status": "fault"}.items() <= facts["readings"][-1].items()
    json.dumps(facts)


def test_the_audit_never_imports_tensorflow_here() -> None:
    said = "from flatout.environment import audit; assert audit(quick=True).notes"
    subprocess.run([sys.executable, "-c", f"{said}; import sys; assert 'tensorflow' not in sys.modules"], check=True)


def flatout(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "flatout", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "80", **variables},
        timeout=400,
    )


def test_the_command(tmp_path: Path) -> None:
    target = tmp_path / "env.json"
    ran = flatout("env", "--quick", "--json", str(target))
    assert ran.returncode == 0
    assert "Machine" in ran.stdout
    assert "\x1b" not in ran.stdout
    assert json.loads(target.read_text())["kind"] == "env"
    assert json.loads(flatout("env", "--quick", "--json", "-").stdout)["verdict"]


def test_strict_leaves_with_one_on_a_fault_only() -> None:
    assert flatout("env", "--quick", "--strict", TF_XLA_FLAGS="--xla_dump_to=/x").returncode == 1
    assert flatout("env", "--quick", TF_XLA_FLAGS="--xla_dump_to=/x").returncode == 0


def test_a_terminal_without_utf_8() -> None:
    ran = flatout("env", "--quick", PYTHONIOENCODING="ascii")
    assert ran.returncode == 0
    assert re.search(r"^ *[+.] cores", ran.stdout, re.MULTILINE), "in order, or fewer than the machine has"
    assert " - Python 3." in ran.stdout, "the glyphs between facts have a character of their own"


def test_a_file_that_cannot_be_written() -> None:
    ran = flatout("env", "--quick", "--json", "/no/such/directory/x.json")
    assert ran.returncode == 2
    assert "there is no directory /no/such/directory" in ran.stderr
    assert "Traceback" not in ran.stderr
