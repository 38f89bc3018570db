"""`flatout check`: find performance faults in source, without running it, and repair them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from flatout.check.driver import Job, Report
    from flatout.check.output import View
    from flatout.check.settings import Settings

_PATHS = typer.Argument(None, help="Files, folders or notebooks; `-` is standard input.  [default: .]")
_SELECT = typer.Option([], "--select", help="Only these causes, patterns or groups; `all` for all.")
_EXTEND = typer.Option([], "--extend-select", help="These besides the defaults.")
_IGNORE = typer.Option([], "--ignore", help="All but these.")
FORMATS = "concise, full, json, sarif, github, gitlab or junit"


def register(app: typer.Typer) -> None:
    app.command("check")(check)


def check(
    paths: list[str] = _PATHS,
    select: list[str] = _SELECT,
    extend_select: list[str] = _EXTEND,
    ignore: list[str] = _IGNORE,
    tf: str = typer.Option(
        None, "--tf", metavar="VERSION", help="The oldest TensorFlow the code is for, such as 2.16."
    ),
    fix: bool = typer.Option(False, "--fix", help="Repair what can be repaired without any risk."),
    unsafe_fixes: bool = typer.Option(False, "--unsafe-fixes", help="With --fix or --diff: repair the rest as well."),
    diff: bool = typer.Option(False, "--diff", help="Show the repairs and write nothing."),
    output_format: str = typer.Option("concise", "--format", "-f", help=f"{FORMATS}."),
    output: str = typer.Option(None, "--output", "-o", metavar="FILE", help="Write there, not to standard output."),
    json_file: str = typer.Option(None, "--json", metavar="FILE", help="Also write the case as JSON (- is stdout)."),
    stdin_filename: str = typer.Option("stdin.py", "--stdin-filename", help="The name of what comes from `-`."),
    exit_zero: bool = typer.Option(False, "--exit-zero", help="Leave with 0 though there are faults."),
    no_cache: bool = typer.Option(False, "--no-cache", help="Look at every file anew, and keep nothing."),
    jobs: int = typer.Option(None, "--jobs", "-j", min=1, help="Processes; one per core if left out."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="No progress, no notes; findings only."),
    list_patterns: bool = typer.Option(False, "--list", help="List all patterns and leave."),
) -> None:
    """Find performance faults in source without running it."""
    from flatout.check import output as views

    if list_patterns:
        typer.echo(_listed(), nl=False)
        return
    if output_format not in views.FORMATS:
        from flatout.model.errors import UnknownView

        raise UnknownView(f"There is no format {output_format!r}. It may be {FORMATS}.")
    paths = paths or ["."]
    settings = _settings(paths, tf)
    job = _job(settings, select, extend_select, ignore, jobs, no_cache)
    if paths == ["-"]:
        content = sys.stdin.buffer.read()
        report = _checked_text(content, stdin_filename, job, fix, unsafe_fixes, diff)
        if report is None:
            return
    else:
        report = _checked_files(paths, job, fix, unsafe_fixes, diff, quiet)
    view = _view(report)
    if not quiet:
        _say_problems(report)
    if json_file is not None:
        from flatout.check.output.case import as_case
        from flatout.report import json as case_json

        case_json.write(as_case(view, ("flatout", "check", *paths)), json_file)
    if not diff and json_file != "-":
        _write(views.render(output_format, view), output)
    if report.count and not exit_zero:
        raise typer.Exit(1)


def _settings(paths: list[str], tf: str | None) -> Settings:
    import dataclasses

    from flatout.check import settings as settings_of

    first = Path(paths[0] if paths[0] != "-" else ".")
    found = settings_of.load(first if first.is_dir() else first.parent)
    return found if tf is None else dataclasses.replace(found, tf=settings_of.version(tf))


def _job(
    settings: Settings, select: list[str], added: list[str], ignore: list[str], jobs: int | None, no_cache: bool
) -> Job:
    from flatout.check.driver import Job
    from flatout.check.selection import check_names
    from flatout.check.selection import select as chosen

    for names in settings.per_file_ignores.values():
        check_names(names)
    patterns = chosen(
        _split(select) or settings.select,
        (*settings.extend_select, *_split(added)),
        (*settings.ignore, *_split(ignore)),
        settings.tf,
    )
    return Job(patterns, settings, jobs, not no_cache)


def _split(names: list[str]) -> list[str]:
    """`--select a,b --select c`"""
    return [name.strip() for given in names for name in given.split(",") if name.strip()]


def _checked_files(paths: list[str], job: Job, fix: bool, unsafe: bool, diff: bool, quiet: bool) -> Report:
    from flatout.check.driver import check as check_files

    report = check_files(paths, job, _progress(quiet))
    if not fix and not diff:
        return report
    from flatout.check.repairing import repair

    repaired = repair(report, job, unsafe, (lambda text: _write(text, None)) if diff else None)
    if diff or not repaired:
        return report
    if not quiet:
        sys.stderr.write(f"flatout: {repaired} fault{'s' if repaired > 1 else ''} repaired\n")
    return check_files(paths, job, _progress(True))


def _checked_text(content: bytes, name: str, job: Job, fix: bool, unsafe: bool, diff: bool) -> Report | None:
    from flatout.check.driver import check_text

    if not fix and not diff:
        return check_text(content, name, job)
    from flatout.check.fixing import fix as fixed
    from flatout.check.repairing import wanted
    from flatout.source.editing.unified_diff import diff as unified

    result = fixed(content, name, job.checker(), lambda item: wanted(item, unsafe))
    if diff:
        _write(unified(content, result.content, name.lstrip("/")), None)
    else:
        sys.stdout.buffer.write(result.content)
        sys.stdout.flush()
    return None


def _view(report: Report) -> View:
    from flatout.check import files
    from flatout.check.output import View
    from flatout.source.editing.source_text import decode

    texts: dict[str, list[str]] = {}
    for path in report.files:
        content = files.read(path) if not path.endswith(".ipynb") else b""
        if isinstance(content, bytes):
            try:
                text = decode(content).text
            except (SyntaxError, UnicodeError, LookupError):
                continue
            texts[path] = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return View(report, Path.cwd(), texts)


def _say_problems(report: Report) -> None:
    from flatout.model.text import clean

    for problem in report.problems:
        sys.stderr.write(f"{clean(problem.path)}: {clean(problem.text)}\n")


def _progress(quiet: bool):  # type: ignore[no-untyped-def]
    """A line on a terminal, for trees that take a while."""
    if quiet or not sys.stderr.isatty():
        return lambda done, total: None

    def show(done: int, total: int) -> None:
        if total >= 200 and (done % 50 == 0 or done == total):
            sys.stderr.write(f"\rflatout: {done} of {total} files" if done < total else "\r\x1b[K")
            sys.stderr.flush()

    return show


def _write(text: str, destination: str | None) -> None:
    from flatout.report.json import write_text

    if destination is not None and destination != "-":
        write_text(text, destination)
        return
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
    sys.stdout.flush()


def _listed() -> str:
    from flatout.causes import patterns

    rows = []
    for item in patterns():
        says = (item.detect.__doc__ or "").strip().split("\n")[0]
        rows.append(f"{item.full_name:44} {'default' if item.default else 'opt-in ':7}  {says}\n")
    return "".join(rows)
