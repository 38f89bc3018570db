"""`flatout env`: audit the machine, the drivers, the libraries and the flags."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from flatout.model.errors import OutputNotWritable

if TYPE_CHECKING:
    from flatout.model.case import Case


def register(app: typer.Typer) -> None:
    app.command("env")(env)


def env(
    json_file: str | None = typer.Option(
        None,
        "--json",
        metavar="FILE",
        help="Write the case as JSON; `-` is standard output, without the table.",
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
        _write_json(case, json_file)
    if json_file != "-":
        import io

        from rich.console import Console

        from flatout.environment.table import show

        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")  # a terminal without UTF-8 gets question marks
        show(case, Console(highlight=False), quiet=quiet)
    if strict and any(item.status == "fault" for item in case.evidence_of(EnvironmentReading)):
        raise typer.Exit(1)


def _write_json(case: Case, target: str) -> None:
    from flatout.store import write_atomically

    text = json.dumps(case.to_json(), indent=1, allow_nan=False) + "\n"
    if target == "-":
        sys.stdout.write(text)
        return
    try:
        write_atomically(Path(target), text)
    except OSError as error:
        raise OutputNotWritable(
            f"The case could not be written to {target}: {error.strerror}. Name a file in a directory that exists."
        ) from None
