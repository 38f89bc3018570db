"""Every command of flatout that the README and the docs show is taken by the command line as it is."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.core

from flatout.cli import COMMANDS, make_app
from flatout.cli._form import formed
from flatout.cli.check import FORMATS
from flatout.model.case import Case
from flatout.report.terminal import VIEWS, render

ROOT = Path(__file__).resolve().parent.parent.parent
FILES = sorted(
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "scripts" / "demo", *(ROOT / "docs").rglob("*.md")]
)
FENCE = re.compile(r"^```(?:sh|console|bash|yaml)\n(.*?)^```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(flatout [^`\n]*)`")
COMMAND = re.compile(r"(?:^|[\s;(])(?:\.venv/bin/|\S*python\S* -m )?(flatout (?!\[)[a-z].*)")
OPEN = re.compile(r"…|\.\.\.|\[(?!\w+\]=)")
"""What stands for something else."""


def shown() -> Iterator[tuple[str, str]]:
    """File and command."""
    for path in FILES:
        text = path.read_text(encoding="utf-8").replace("\\\n", " ")
        blocks = [text] if path.name == "demo" else FENCE.findall(text)
        for line in "\n".join(blocks).splitlines():
            if not line.startswith(("#", "say ")) and (found := COMMAND.search(line.removeprefix("$ "))):
                yield path.relative_to(ROOT).as_posix(), found[1]
        for command in INLINE.findall(text):
            yield path.relative_to(ROOT).as_posix(), command


def words_of(text: str) -> list[str]:
    """Without comments, redirections and what comes after a pipe."""
    return shlex.split(re.split(r"\s#\s|\s+\||\s>|\s2>|\s&&|\)\"|;", text)[0])[1:]


SHOWN = sorted({(file, text) for file, text in shown() if not OPEN.search(text) and len(text.split()) > 1})


def test_some_are_found() -> None:
    assert len(SHOWN) > 60
    assert {file for file, _ in SHOWN} >= {"README.md", "docs/commands.md", "docs/optimize.md", "scripts/demo"}
    assert {text.split()[1] for _, text in SHOWN} >= {"run", "tune", "check", "optimize", "show", "report", "data"}


@pytest.mark.parametrize(("file", "text"), SHOWN, ids=lambda value: value[:80])
def test_the_command_line_takes_it(file: str, text: str) -> None:
    words = words_of(text)
    if not words or words[0] in ("COMMAND", "-h", "--help", "--version"):
        return
    assert words[0] in COMMANDS, f"{file}: {text}"
    command = formed(make_app([words[0]])).commands[words[0]]
    words = words[1:]
    while isinstance(command, typer.core.TyperGroup) and words and not words[0].startswith("-"):
        command, words = command.commands[words[0]], words[1:]
    named = {one for param in command.params for one in param.opts}
    for word in words:  # what is named in passing (`flatout tune --patch`) lacks its values and its program
        if word.startswith("--") and word[2:] and not takes_others(command):
            assert word.partition("=")[0] in {*named, *negated(command), "--help"}, f"{file}: {text}"
    with command.make_context(f"flatout {command.name}", complete(command, words), resilient_parsing=True):
        pass
    for option, known in (("--view", [*VIEWS, "NAME"]), ("--format", [*re.findall(r"\w+", FORMATS), "tfrecord"])):
        if option in words[:-1] and "=" not in option:
            assert words[words.index(option) + 1] in [*known, "arrayrecord"], f"{file}: {text}"


def takes_others(command: typer.core.TyperCommand) -> bool:
    """The options of a program stand behind it."""
    return bool(command.context_settings.get("ignore_unknown_options"))


def negated(command: typer.core.TyperCommand) -> set[str]:
    return {one for param in command.params for one in param.secondary_opts}


def complete(command: typer.core.TyperCommand, words: list[str]) -> list[str]:
    """The value that a last option lacks where it is only named."""
    last = next((one for one in command.params if words and words[-1] in one.opts), None)
    return [*words, "1"] if last is not None and not getattr(last, "is_flag", False) else words


@pytest.mark.parametrize("path", ["run", "tune", "data inspect", "data tune"])
def test_options_before_the_program_are_known(path: str) -> None:
    """Behind `ignore_unknown_options`, an option that does not exist would be taken for the program."""
    for file, text in SHOWN:
        words = words_of(text)
        if " ".join(words[: len(path.split())]) != path:
            continue
        command: typer.core.TyperCommand = formed(make_app([words[0]])).commands[words[0]]
        for name in path.split()[1:]:
            assert isinstance(command, typer.core.TyperGroup)
            command = command.commands[name]
        options = {one: param for param in command.params for one in param.opts}
        rest = words[len(path.split()) :]
        while rest and rest[0].startswith("-"):
            name = rest.pop(0).partition("=")
            assert name[0] in {*options, *negated(command), "-h", "--help"}, f"{file}: {text}"
            param = options.get(name[0])
            if param is not None and not name[1] and not getattr(param, "is_flag", False) and rest:
                rest.pop(0)


# ── the README ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_readme_is_two_screens() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 100


def test_the_screens_in_the_readme_are_those_of_kept_cases() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```console\n\$ flatout (run|tune) .*\n((?:.*\n)*?)```", text, re.MULTILINE)
    assert [name for name, _ in blocks] == ["run"]
    assert "](docs/pictures/tune.svg)" in text  # which tests/unit/test_docs_site.py holds against its case
    for name, block in blocks:
        kept = ROOT / "tests" / "fixtures" / "screens" / f"{name}-slow.json"
        case = Case.from_json(json.loads(kept.read_text(encoding="utf-8")))
        shown_now = render(case, "overview", 100, color=False, unicode=True).splitlines()
        lines = [line for line in block.splitlines() if line.strip() not in ("", "⋮")]
        assert len(lines) > 8
        assert [line for line in lines if line not in shown_now] == []


def test_the_page_of_screens_is_up_to_date() -> None:
    done = subprocess.run([sys.executable, ROOT / "scripts" / "generate_screens.py", "--check"])
    assert done.returncode == 0, "python scripts/generate_screens.py writes it again"
