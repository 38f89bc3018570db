"""`flatout check`: find performance faults in source, without running it, and repair them."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from flatout.cli._options import command
from flatout.model.errors import UnknownView

if TYPE_CHECKING:
    from flatout.check.driver import Report
    from flatout.check.workflow import Progress, Request
    from flatout.model.case import Case

FORMATS = "concise, full, json, sarif, github, gitlab or junit"
Names = list[str] | None


@dataclass(frozen=True)
class Options:
    """The options as they are typed."""

    paths: Annotated[
        Names, typer.Argument(help="Files, folders or notebooks; `-` is standard input.  [default: .]")
    ] = None
    select: Annotated[Names, typer.Option(help="Only these causes, patterns or groups; `all` for all.")] = None
    extend_select: Annotated[Names, typer.Option(help="These in addition to the defaults.")] = None
    ignore: Annotated[Names, typer.Option(help="All except these.")] = None
    tf: Annotated[
        str | None, typer.Option(metavar="VERSION", help="The oldest TensorFlow the code is for, such as 2.16.")
    ] = None
    confidence: Annotated[
        str | None, typer.Option(metavar="LEVEL", help="Show findings from this confidence: low, medium or high.")
    ] = None
    fix: Annotated[bool, typer.Option("--fix", help="Make the repairs that do not change what is computed.")] = False
    unsafe_fixes: Annotated[
        bool, typer.Option("--unsafe-fixes", help="With --fix or --diff: make the other repairs too.")
    ] = False
    diff: Annotated[bool, typer.Option("--diff", help="Show the repairs and write nothing.")] = False
    output_format: Annotated[str, typer.Option("--format", "-f", help=f"{FORMATS}.")] = "concise"
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Write to a file instead of standard output.")
    ] = None
    json_file: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Also write the case as JSON (- is stdout).")
    ] = None
    from_case: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="CASE",
            help="Rank findings by what they cost in this kept run (`latest`); those that cost nothing go.",
        ),
    ] = None
    confirm: Annotated[
        str | None,
        typer.Option(metavar="PROGRAM", help='Run this once to rank them, such as "train.py --epochs 1".'),
    ] = None
    stdin_filename: Annotated[str, typer.Option(help="The file name to report for `-`.")] = "stdin.py"
    exit_zero: Annotated[bool, typer.Option("--exit-zero", help="Exit with 0 even if there are faults.")] = False
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Check every file again, and do not write the cache.")
    ] = False
    workers: Annotated[
        int | None, typer.Option("--workers", "--jobs", "-j", min=1, help="Processes; one per core by default.")
    ] = None
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no notes; findings only.")] = False
    list_patterns: Annotated[bool, typer.Option("--list", help="List all patterns and exit.")] = False

    def request(self) -> Request:
        from flatout.check.workflow import Request

        return Request(
            paths=tuple(self.paths or ["."]),
            select=_split(self.select),
            extend_select=_split(self.extend_select),
            ignore=_split(self.ignore),
            tensorflow=self.tf,
            confidence=self.confidence,
            fix=self.fix,
            unsafe_fixes=self.unsafe_fixes,
            diff=self.diff,
            stdin_name=self.stdin_filename,
            processes=self.workers,
            cached=not self.no_cache,
            from_case=self.from_case,
            confirm=tuple(shlex.split(self.confirm or "")),
        )


def register(app: typer.Typer) -> None:
    command(app, "check", Options, _check)


def _check(options: Options) -> None:
    """Find performance faults in source without running it."""
    from flatout.check import output as views
    from flatout.check.workflow import judged_by_run, view_of

    if options.list_patterns:
        typer.echo(_listed(), nl=False)
        return
    if options.output_format not in views.FORMATS:
        raise UnknownView(f"There is no format {options.output_format!r}. It may be {FORMATS}.")
    request = options.request()
    report = _report(request, options.quiet)
    if report is None:
        return
    judged_by_run(report, request, _run_once)
    if not options.quiet:
        _print_problems(report)
    view = view_of(report)
    if options.json_file is not None:
        from flatout.check.output.case import as_case
        from flatout.report import json as case_json

        case_json.write(as_case(view, ("flatout", "check", *request.paths)), options.json_file)
    if not options.diff and options.json_file != "-":
        _write(views.render(options.output_format, view), options.output)
    if report.count and not options.exit_zero:
        raise typer.Exit(1)


def check(
    *paths: str | os.PathLike[str],
    select: Sequence[str] = (),
    extend_select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    tf: str | None = None,
    confidence: str | None = None,
    from_case: str | None = None,
    confirm: Sequence[str] = (),
) -> Case:
    """Find performance faults in source, as `flatout check` does, and return them as the findings of a case.

    The parameters are the options of the command. `from_case` is a case of `flatout run`, or `latest`; `confirm` is a
    program with its arguments, which is run once. Nothing is repaired and nothing is printed.
    """
    from flatout.check.output.case import as_case
    from flatout.check.workflow import Request, check_paths, judged_by_run, view_of

    request = Request(
        paths=tuple(os.fspath(path) for path in paths) or (".",),
        select=tuple(select),
        extend_select=tuple(extend_select),
        ignore=tuple(ignore),
        tensorflow=tf,
        confidence=confidence,
        from_case=from_case,
        confirm=tuple(confirm),
    )
    report = check_paths(request, request.job(), lambda done, total: None, lambda text: None, lambda count: None)
    judged_by_run(report, request, _run_once)
    return as_case(view_of(report), ("flatout", "check", *request.paths))


def _split(names: Names) -> tuple[str, ...]:
    """`--select a,b --select c`"""
    return tuple(name.strip() for given in names or () for name in given.split(",") if name.strip())


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


def _run_once(program: tuple[str, ...]) -> Case | None:
    """As `flatout run` does. What the program prints goes to standard error: standard output is for the findings."""
    from flatout.run.request import RunRequest
    from flatout.run.session import run_for_case

    module = program[0] == "-m"
    name, *arguments = program[1:] if module else program
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        _, case = run_for_case(RunRequest(name, tuple(arguments), module=module, quiet=True, silent=True))
    finally:
        os.dup2(kept, 1)
        os.close(kept)
    return case


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
        when = "opt-in" if not item.default else "seldom" if item.seldom else "default"
        rows.append(f"{item.full_name:44} {when:7}  {summary}\n")
    return "".join(rows)
