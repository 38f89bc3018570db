"""`flatout check`: find performance faults in source, without running it, and repair them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from flatout.check.driver import Report
    from flatout.check.workflow import Progress, Request

_PATHS = typer.Argument(None, help="Files, folders or notebooks; `-` is standard input.  [default: .]")
_SELECT = typer.Option([], "--select", help="Only these causes, patterns or groups; `all` for all.")
_EXTEND = typer.Option([], "--extend-select", help="These in addition to the defaults.")
_IGNORE = typer.Option([], "--ignore", help="All except these.")
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
    fix: bool = typer.Option(False, "--fix", help="Make the repairs that do not change what is computed."),
    unsafe_fixes: bool = typer.Option(
        False, "--unsafe-fixes", help="With --fix or --diff: make the other repairs too."
    ),
    diff: bool = typer.Option(False, "--diff", help="Show the repairs and write nothing."),
    output_format: str = typer.Option("concise", "--format", "-f", help=f"{FORMATS}."),
    output: str = typer.Option(
        None, "--output", "-o", metavar="FILE", help="Write to a file instead of standard output."
    ),
    json_file: str = typer.Option(None, "--json", metavar="FILE", help="Also write the case as JSON (- is stdout)."),
    stdin_filename: str = typer.Option("stdin.py", "--stdin-filename", help="The file name to report for `-`."),
    exit_zero: bool = typer.Option(False, "--exit-zero", help="Exit with 0 even if there are faults."),
    no_cache: bool = typer.Option(False, "--no-cache", help="Check every file again, and do not write the cache."),
    jobs: int = typer.Option(None, "--jobs", "-j", min=1, help="Processes; one per core by default."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="No progress, no notes; findings only."),
    list_patterns: bool = typer.Option(False, "--list", help="List all patterns and exit."),
) -> None:
    """Find performance faults in source without running it."""
    from flatout.check import output as views
    from flatout.check.workflow import Request, view_of

    if list_patterns:
        typer.echo(_listed(), nl=False)
        return
    if output_format not in views.FORMATS:
        from flatout.model.errors import UnknownView

        raise UnknownView(f"There is no format {output_format!r}. It may be {FORMATS}.")
    request = Request(
        paths=tuple(paths or ["."]),
        select=_split(select),
        extend_select=_split(extend_select),
        ignore=_split(ignore),
        tensorflow=tf,
        fix=fix,
        unsafe_fixes=unsafe_fixes,
        diff=diff,
        stdin_name=stdin_filename,
        processes=jobs,
        cached=not no_cache,
    )
    report = _report(request, quiet)
    if report is None:
        return
    if not quiet:
        _print_problems(report)
    view = view_of(report)
    if json_file is not None:
        from flatout.check.output.case import as_case
        from flatout.report import json as case_json

        case_json.write(as_case(view, ("flatout", "check", *request.paths)), json_file)
    if not diff and json_file != "-":
        _write(views.render(output_format, view), output)
    if report.count and not exit_zero:
        raise typer.Exit(1)


def _split(names: list[str]) -> tuple[str, ...]:
    """`--select a,b --select c`"""
    return tuple(name.strip() for given in names for name in given.split(",") if name.strip())


def _report(request: Request, quiet: bool) -> Report | None:
    """None for standard input that is repaired: the result is written to standard output."""
    from flatout.check.workflow import STANDARD_INPUT, check_input, check_paths, repair_text

    job = request.job()
    if request.paths == (STANDARD_INPUT,):
        content = sys.stdin.buffer.read()
        if not request.repairs:
            return check_input(content, request, job)
        sys.stdout.buffer.write(repair_text(content, request, job))
        sys.stdout.flush()
        return None

    def repaired(count: int) -> None:
        if not quiet:
            sys.stderr.write(f"flatout: {count} fault{'s' if count > 1 else ''} repaired\n")

    return check_paths(request, job, _progress(quiet), lambda text: _write(text, None), repaired)


def _print_problems(report: Report) -> None:
    from flatout.model.text import clean

    for problem in report.problems:
        sys.stderr.write(f"{clean(problem.path)}: {clean(problem.text)}\n")


def _progress(quiet: bool) -> Progress:
    """A line on a terminal, for many files."""
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
        summary = (item.detect.__doc__ or "").strip().split("\n")[0]
        rows.append(f"{item.full_name:44} {'default' if item.default else 'opt-in ':7}  {summary}\n")
    return "".join(rows)
