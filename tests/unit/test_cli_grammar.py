"""One grammar for all commands: options, help, summaries, suggestions, exit codes, the schema, completion."""

from __future__ import annotations

import ast
import errno
import inspect
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.core

import flatout
from flatout.cli import COMMANDS, first_steps, main, make_app
from flatout.cli._form import formed
from flatout.cli.completion import SCRIPTS, candidates
from flatout.model.case import Case
from flatout.model.errors import InvalidOption
from flatout.model.schema import case_schema

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
ROOT = FIXTURES.parent.parent


def commands(group: typer.core.TyperGroup | None = None, path: str = "flatout") -> Iterator[tuple[str, Any]]:
    for name, command in (group or formed(make_app())).commands.items():
        if isinstance(command, typer.core.TyperGroup):
            yield from commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


ALL = dict(commands())


def options(command: Any) -> dict[str, Any]:
    return {name: one for one in command.params for name in one.opts if name.startswith("-")}


def help_of(path: str) -> str:
    command = ALL[path]
    with command.make_context(path, [], resilient_parsing=True) as context:
        return str(command.get_help(context))


def test_all_commands_are_there() -> None:
    assert {path.split()[1] for path in ALL} == set(COMMANDS)


@pytest.mark.parametrize("path", ALL)
def test_help_is_in_capitals_and_not_cut(path: str) -> None:
    text = help_of(path)
    usage = text.partition("\n\n")[0]
    assert not re.search(r"[{}<>]", usage), usage
    assert not re.search(r"<[a-z]+[ >]", re.sub(r"`[^`]*`", "", text)), "a value without a name"
    assert not re.search(r"\w\.\.\.(?!\S)", text.replace(usage, "").replace("ARGS]...", "").replace("PATHS...", ""))


def test_the_programs_arguments_are_in_the_usage() -> None:
    for path in ("flatout run", "flatout tune"):
        assert "[OPTIONS] PROGRAM [ARGS]..." in help_of(path)


@pytest.mark.parametrize("path", ALL)
def test_the_same_thing_has_the_same_name(path: str) -> None:
    known = options(ALL[path])
    assert ("-m" in known) == ("--module" in known)
    assert ("-q" in known) == ("--quiet" in known)
    assert ("-o" in known) == ("--output" in known)
    if "--json" in known:
        assert known["--json"].metavar == "FILE"
    if "--budget" in known:
        assert known["--budget"].metavar == "TIME"
    for name in ("--shard-size", "--memory"):
        if name in known:
            assert known[name].metavar == "SIZE"
    for today, earlier in (("--workers", {"--jobs", "--processes"}), ("--goal", {"--objective"})):
        assert today in known or not earlier & known.keys(), "an earlier name may stay beside the one of today"


def test_flatout_alone_says_what_to_try_first(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["flatout"])
    main()
    assert capsys.readouterr().out == first_steps()
    assert max(map(len, first_steps().splitlines())) <= 80
    assert "flatout run train.py" in first_steps()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["run", "--tracee", "x.py"], "`flatout run` has no option --tracee. Did you mean --trace?"),
        (["tune", "--budgett=3m", "x.py"], "Did you mean --budget?"),
        (["tune", "--lever", "xlaa", "x.py"], "There is no lever named 'xlaa'. Did you mean xla"),
        (["explain", "eagerstep"], "Did you mean eager-step"),
        (["show", "--view", "opss", str(FIXTURES / "screens" / "run-slow.json")], "Did you mean ops"),
        (["runn", "x.py"], "`flatout` has no command 'runn'. Did you mean run?"),
        (["data", "inspct", "x.py"], "`flatout data` has no command 'inspct'. Did you mean inspect?"),
        (["explain", "xlaa"], "Did you mean xla"),
        (["completion", "tcsh"], "The shells are bash, zsh, fish"),
    ],
)
def test_a_typo_gets_a_suggestion_and_exit_code_2(words: list[str], told: str) -> None:
    done = subprocess.run([sys.executable, "-m", "flatout", *words], capture_output=True, text=True)
    assert done.returncode == 2
    assert told in done.stderr
    assert not done.stdout


UNREADABLE = "not-a-case.json"


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["--nope"], 2, "`flatout` has no option --nope."),
        (["run"], 2, "`flatout run` needs PROGRAM."),
        (["compare"], 2, "`flatout compare` needs BEFORE AFTER, or PROGRAM."),
        (["bisect", "x.py"], 2, "`flatout bisect` needs --good ENV."),
        (["gate", "train.py"], 2, "`flatout gate` has no place for 'train.py'."),
        (["run", "--steps", "many", "x.py"], 2, "--steps takes a whole number from 1 on, not 'many'."),
        (["serve", "--port", "99999"], 2, "--port takes a whole number from 0 to 65535, not '99999'."),
        (["optimize", "--max-drop", "x", "m"], 2, "--max-drop takes a number from 0 on, not 'x'."),
        (["tune", "--branch"], 2, "--branch needs a value. See `flatout tune -h`."),
        (["run", "--flame=3", "x.py"], 2, "--flame takes no value."),
        (["tune", "--budget", "soon", "train.py"], 2, "--budget takes a time such as 90s, 10m or 1h, not 'soon'."),
        (["launch", "--timeout", "soon", "--", "true"], 2, "--timeout takes a time such as 90s, 10m or 1h"),
        (["data", "tune", "--memory", "lots", "train.py"], 2, "--memory takes a size such as 128MB"),
        (["optimize", "--goal", "speed", "m.keras"], 2, "--goal takes latency, throughput, size or memory"),
        (["tune", "-q", "--verbose", "train.py"], 2, "--quiet and --verbose exclude each other"),
        (["tune", "--apply", "--branch", "b", "train.py"], 2, "--apply and --branch exclude each other"),
        (["run", "--verbose", "--view", "ops", "train.py"], 2, "--verbose and --view exclude each other"),
        (["run", "--no-trace", "--steps", "3", "train.py"], 2, "--no-trace and --steps exclude each other"),
        (["run", "--flame", "--nsys", "train.py"], 2, "--flame and --nsys both sample the program."),
        (["compare", "--json", "-", "--markdown", "-", "a", "b"], 2, "standard output has room for one."),
        (["report", "--json", "-", "-o", "-"], 2, "standard output has room for one."),
        (["tune", "--json", "no/such/x.json", "train.py"], 2, "--json no/such/x.json: there is no directory"),
        (["run", "--json", "", "train.py"], 2, "--json needs the name of a file"),
        (["tune", "--patch", ".", "train.py"], 2, "--patch .: that is a directory."),
        (["optimize", "--json", "no/such/x.json", "m.keras"], 2, "--json no/such/x.json: there is no directory"),
        (["run", "no.py"], 127, "There is no program at 'no.py'."),
        (["tune", "no.py"], 127, "There is no program at 'no.py'."),
        (["data", "inspect", "no.py"], 127, "There is no program at 'no.py'."),
        (["run", "empty"], 127, "'empty' is a directory without a __main__.py."),
        (["show", "no-such-case"], 2, "No case at 'no-such-case'."),
        (["show", UNREADABLE], 2, f"{UNREADABLE} cannot be read as a case"),
        (["report", UNREADABLE], 2, f"{UNREADABLE} cannot be read as a case"),
        (["compare", UNREADABLE, UNREADABLE], 2, f"{UNREADABLE} cannot be read as a case"),
        (["trace", "empty"], 2, "There is no trace in empty."),
        (["check", "no.py"], 2, "no.py does not exist."),
        (["check", "--select", "nope", "."], 2, "There is no cause, pattern or group named 'nope'."),
        (["verify", "empty"], 2, "empty has no manifest.json."),
        (["verify", "no"], 2, "no does not exist."),
        (["job", "empty"], 2, "No rank of a job has written into"),
        (["data", "convert", "no", "shards"], 2, "There is nothing at no."),
        (["data", "serve", "no.py:f"], 2, "There is no file at 'no.py'."),
        (["data", "serve", "pipeline"], 2, "'pipeline' names no function."),
        (["tune", "--branch", "faster", "train.py"], 2, "is in no git repository with a commit."),
        (["run", "--with", "@tuned", "train.py"], 2, "has found levers to use."),
        (["launch"], 2, "What to start is missing"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_what_cannot_be_is_told_in_one_line(
    words: list[str],
    code: int,
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "train.py").write_text("print(1)\n", encoding="utf-8")
    (tmp_path / UNREADABLE).write_text("{", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.setattr(sys, "argv", ["flatout", *words])
    with pytest.raises(SystemExit) as left:
        main()
    printed = capsys.readouterr()
    *progress, line = printed.err.splitlines()
    assert left.value.code == code
    assert line.startswith("flatout: ")
    assert told in line
    assert not printed.out
    assert all("left at most" in one for one in progress), printed.err
    assert not list(tmp_path.glob(".flatout/cases/*")), "nothing was begun"


def test_a_group_alone_says_what_there_is(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["flatout", "data"])
    with pytest.raises(SystemExit) as left:
        main()
    assert not left.value.code
    assert "inspect  " in capsys.readouterr().out


def test_the_table_of_exit_codes_is_that_of_the_errors() -> None:
    from flatout.model import errors

    text = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    table = set(map(int, re.findall(r"^\| (\d+) \|", text, re.MULTILINE)))
    raised = {one.exit_code for one in vars(errors).values() if isinstance(one, type) and hasattr(one, "exit_code")}
    assert raised <= table


# ── Python ───────────────────────────────────────────────────────────────────────────────────────────────────────────

SHOWN = {"json", "view", "quiet", "verbose"}
"""What a caller has the case for; `show` says whether to print it."""
SEVERAL = {"lever": "levers", "route": "routes", "batch": "batches", "shape": "shapes", "target": "dataset"}
"""Options that are repeated or hold a list, and what is a list in Python."""
IN_PROCESS = {"arguments", "module", "unfenced", "network", "without", "pipeline", "patch", "apply"}
"""Of a program that runs in a process of its own: `tune_dataset` is given the dataset itself."""

PRINTED = {"output_format", "output", "json_file", "exit_zero", "list_patterns", "no_cache", "workers"}
"""Of `check`: how its findings are written, and how fast; Python gets a case."""
REPAIRS = {"fix", "unsafe_fixes", "diff", "stdin_filename"}
"""Of `check`: from Python nothing is repaired."""


@pytest.mark.parametrize(
    ("path", "call", "without"),
    [
        ("flatout run", flatout.run, set()),
        ("flatout tune", flatout.tune, set()),
        ("flatout optimize", flatout.optimize, set()),
        ("flatout data inspect", flatout.inspect, IN_PROCESS),
        ("flatout data tune", flatout.tune_dataset, IN_PROCESS),
        ("flatout bisect", flatout.bisect, set()),
        ("flatout check", flatout.check, PRINTED | REPAIRS),
    ],
    ids=["run", "tune", "optimize", "data inspect", "data tune", "bisect", "check"],
)
def test_python_has_the_names_of_the_command_line(path: str, call: Any, without: set[str]) -> None:
    typed = {one.name for one in ALL[path].params} - SHOWN - {"help"}
    typed |= {"arguments"} if "ARGS" in (ALL[path].params[0].metavar or "") else set()
    mirrored = {SEVERAL.get(name, name) for name in typed} - without
    named = set(inspect.signature(call).parameters) - {"show"}
    assert mirrored - named == set(), "options that Python lacks"
    assert named - mirrored <= {"needs"}, "parameters that are no option"


def test_an_editor_is_shown_the_functions_that_are_called() -> None:
    """What type checkers read in flatout/__init__.py is what the packages call."""
    tree = ast.parse(Path(inspect.getfile(flatout)).read_text(encoding="utf-8"))
    shown = {
        name.name: f"{one.module}:{name.name}"
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for one in block.body
        if isinstance(one, ast.ImportFrom)
        for name in one.names
    }
    called = {
        ast.unparse(one.args[0]): ast.literal_eval(one.args[1])
        for one in ast.walk(tree)
        if isinstance(one, ast.Call)
        and ast.unparse(one.func) == "make_callable"
        and isinstance(one.args[1], ast.Constant)
    }
    assert called.keys() == {"check", "optimize", "run", "tune"}
    assert {name: shown.get(name) for name in called} == called


@pytest.mark.parametrize("path", ["flatout run", "flatout tune", "flatout optimize"])
def test_python_has_the_defaults_of_the_command_line(path: str) -> None:
    parameters = inspect.signature(getattr(flatout, path.split()[1])).parameters
    for one in ALL[path].params:
        name = SEVERAL.get(one.name, one.name)
        if name in parameters and name not in ("batches",):
            there = parameters[name].default
            assert (one.default or None) == (there or None) or there is inspect.Parameter.empty, one.name


# ── the schema ───────────────────────────────────────────────────────────────────────────────────────────────────────

KEPT = sorted(
    path
    for path in FIXTURES.rglob("*.json")
    if path.name == "case.json" or path.parent.name in ("screens", "cases") or path.stem in ("shows", "quiet")
)
TYPES: dict[str, Any] = {
    "object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float),
    "null": type(None),
}  # fmt: skip


def faults(value: Any, schema: dict[str, Any], root: dict[str, Any], path: str = "") -> Iterator[str]:
    """What of JSON Schema the schema of a case uses."""
    if "$ref" in schema:
        yield from faults(value, root["$defs"][schema["$ref"].rpartition("/")[2]], root, path)
    if "anyOf" in schema and all(list(faults(value, one, root, path)) for one in schema["anyOf"]):
        yield f"{path}: fits none"
    if kinds := schema.get("type"):
        names = kinds if isinstance(kinds, list) else [kinds]
        whole = isinstance(value, float) and value == int(value) and "integer" in names
        fits = whole or any(isinstance(value, TYPES[name]) for name in names)
        if not fits or (isinstance(value, bool) and "boolean" not in names):
            yield f"{path}: {value!r} is not {names}"
    if isinstance(value, dict):
        yield from (f"{path}: {name} is missing" for name in schema.get("required", ()) if name not in value)
        for name, item in value.items():
            inner = schema.get("properties", {}).get(name) or schema.get("additionalProperties") or {}
            yield from faults(item, inner, root, f"{path}.{name}")
    if isinstance(value, list):
        few = schema.get("prefixItems")
        for index, item in enumerate(value):
            yield from faults(item, few[index] if few else schema.get("items", {}), root, f"{path}[{index}]")


@pytest.mark.parametrize("path", KEPT, ids=lambda path: str(path.relative_to(FIXTURES)))
def test_every_kept_case_fits_the_schema(path: Path) -> None:
    schema = case_schema()
    kept = json.loads(path.read_text(encoding="utf-8"))
    written = Case.from_json(kept).to_json()
    assert list(faults(written, schema, schema)) == []


def test_the_schema_can_fail() -> None:
    schema = case_schema()
    assert list(faults({"steps": 3}, schema, schema))
    assert list(faults({"kind": "run", "findings": [{"cause": 3}]}, schema, schema))
    assert not list(faults({"kind": "run"}, schema, schema))
    assert set(schema["$defs"]["Case"]["properties"]) >= set(Case("run").to_json())


def test_the_schema_in_the_docs_is_up_to_date() -> None:
    text = (ROOT / "docs" / "case-schema.json").read_text(encoding="utf-8")
    assert json.loads(text) == case_schema(), "flatout schema --json docs/case-schema.json"


# ── completion ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["tu"], "tune"),
        (["data", ""], "convert"),
        (["data", "tune", "--mem"], "--memory"),
        (["tune", "--lever", "xl"], "xla"),
        (["run", "--with", "@"], "@tuned"),
        (["show", "--view", "tri"], "trials"),
        (["optimize", "--route", "onnx"], "onnxruntime"),
        (["explain", "eager-s"], "eager-step"),
        (["completion", "f"], "fish"),
    ],
)
def test_completion(words: list[str], found: str) -> None:
    assert any(name.startswith(found) for name in candidates(words)), candidates(words)


def test_completion_of_kept_cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".flatout" / "cases" / "train-1").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert candidates(["show", "tr"]) == ["train-1"]
    assert candidates(["run", "tr"]) == [], "files are the shell's own"


@pytest.mark.parametrize("shell", SCRIPTS)
def test_the_script_of_a_shell_asks_for_words(shell: str) -> None:
    assert "flatout completion words" in SCRIPTS[shell]
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=SCRIPTS[shell], text=True, check=True)


def test_an_option_of_the_program_may_be_called_as_one_of_ours() -> None:
    with pytest.raises(InvalidOption, match="has no option --nope"):
        ALL["flatout run"].main(["--nope", "x.py"], prog_name="flatout run", standalone_mode=False)


def test_a_full_disk_is_told_in_words(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def full(first: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("flatout.cli._run", full)
    monkeypatch.setattr("sys.argv", ["flatout", "tune", "train.py"])
    with pytest.raises(SystemExit) as left:
        flatout.cli.main()
    assert left.value.code == 3
    assert "The disk is full. Free some space" in capsys.readouterr().err


def test_a_directory_that_may_not_be_read_is_one_line_and_no_verdict(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", ".flatout/cases")

    monkeypatch.setattr(sys, "argv", ["flatout", "gate"])
    monkeypatch.setattr(flatout.cli, "_run", refused)
    with pytest.raises(SystemExit) as left:
        flatout.cli.main()
    assert left.value.code == 2, "1 would be a regression"
    assert capsys.readouterr().err.startswith("flatout: .flatout/cases may not be read or written: Permission denied.")


@pytest.mark.parametrize("arguments", ["schema", "explain input-bound", "show FILE", "report FILE -o -"])
def test_a_closed_standard_output_is_no_fault(arguments: str) -> None:
    command = arguments.replace("FILE", str(FIXTURES / "screens" / "run-slow.json"))
    done = subprocess.run(
        ["sh", "-c", f"exec {sys.executable} -m flatout {command} >&-"], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
