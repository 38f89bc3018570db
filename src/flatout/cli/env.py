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
        import io

        from rich.console import Console

        from flatout.environment.table import show

        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")  # a terminal without UTF-8 gets question marks
        show(case, Console(highlight=False), quiet=quiet)
    if strict and any(item.status == "fault" for item in case.evidence_of(EnvironmentReading)):
        raise typer.Exit(1)
