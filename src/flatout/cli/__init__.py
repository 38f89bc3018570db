"""The command line: one thin file per command, listed here and nowhere else."""

from __future__ import annotations

import sys

import typer

from flatout.cli import (
    check,
    compare,
    data,
    env,
    explain,
    gate,
    history,
    lsp,
    optimize,
    report,
    run,
    serve,
    show,
    trace,
    tune,
    verify,
)
from flatout.model.errors import FlatoutError
from flatout.model.version import __version__

COMMANDS = (
    run,
    tune,
    check,
    data,
    optimize,
    verify,
    show,
    report,
    compare,
    history,
    gate,
    serve,
    explain,
    trace,
    env,
    lsp,
)
"""Each module defines `register(app)`; the order is the order in `flatout --help`."""

# Help is rendered by click alone: loading rich for it would double the start-up time.
app = typer.Typer(
    name="flatout",
    help="Find out why a TensorFlow program is slow, fix it, and prove the fix on that very program.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for command in COMMANDS:
    command.register(app)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"flatout {__version__}")
        raise typer.Exit()


@app.callback(context_settings={"help_option_names": ["-h", "--help"]})
def _root(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    pass


def main() -> None:
    """Entry point. An error of ours is one clear message and an exit code, never a traceback."""
    try:
        app()
    except FlatoutError as error:
        sys.stderr.write(f"flatout: {error}\n")
        raise SystemExit(error.exit_code) from None
    except BrokenPipeError:
        # The reader (head, less) has closed the pipe, which is not an error.
        sys.stderr.close()
        raise SystemExit(141) from None
