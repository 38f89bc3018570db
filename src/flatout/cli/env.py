"""`flatout env`: audit the machine, the drivers, the libraries and the flags."""

from __future__ import annotations

import sys

import typer


def register(app: typer.Typer) -> None:
    app.command("env")(env)


def env(
    json_file: str | None = typer.Option(
        None,
        "--json",
        metavar="FILE",
        help="Write the case as JSON (- is stdout).",
    ),
    quick: bool = typer.Option(False, "--quick", help="Do not import TensorFlow, which takes seconds."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="Show problems only."),
    strict: bool = typer.Option(False, "--strict", help="Exit with code 1 if there is a fault."),
) -> None:
    """Audit the machine, the drivers, the libraries and the flags."""
    from flatout.environment import audit
    from flatout.model.evidence.outcomes import EnvironmentReading

    if not quick and not quiet and sys.stderr.isatty():
        sys.stderr.write("flatout: importing TensorFlow, which takes some seconds (--quick skips it)\n")
    case = audit(quick=quick)
    if json_file is not None:
        from flatout.report.json import write

        write(case, json_file)
    if json_file != "-":
        import codecs
        import io

        from rich.console import Console

        from flatout.environment.table import show

        if isinstance(sys.stdout, io.TextIOWrapper):
            codecs.register_error("flatout-ascii", _in_ascii)
            sys.stdout.reconfigure(errors="flatout-ascii")
        show(case, Console(highlight=False), quiet=quiet)
    if strict and any(item.status == "fault" for item in case.evidence_of(EnvironmentReading)):
        raise typer.Exit(1)


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    """What a terminal without UTF-8 gets in place of what its encoding lacks."""
    from flatout.report.terminal.output import to_ascii

    if not isinstance(error, UnicodeEncodeError):
        raise error
    return to_ascii(error.object[error.start : error.end]), error.end
