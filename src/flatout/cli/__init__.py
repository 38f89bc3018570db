"""The command line: one thin file per command, listed here and nowhere else."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

import typer

from flatout.model.errors import FlatoutError
from flatout.model.version import __version__

COMMANDS = (
    "run",
    "tune",
    "check",
    "data",
    "optimize",
    "verify",
    "show",
    "report",
    "compare",
    "history",
    "gate",
    "serve",
    "explain",
    "trace",
    "env",
    "lsp",
)
"""Each is a module here that defines `register(app)`; the order is the order in `flatout --help`."""


def make_app(commands: Sequence[str] = COMMANDS) -> typer.Typer:
    """The command line with these commands."""
    # Help is rendered by click alone: loading rich for it would double the start-up time.
    app = typer.Typer(
        name="flatout",
        help="Find out why a TensorFlow program is slow, fix it, and prove the fix on that very program.",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    app.callback(context_settings={"help_option_names": ["-h", "--help"]})(_root)
    for name in commands:
        importlib.import_module(f"flatout.cli.{name}").register(app)
    return app


def _version(value: bool) -> None:
    if value:
        typer.echo(f"flatout {__version__}")
        raise typer.Exit()


def _root(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    pass


def main() -> None:
    """Entry point. An error of ours is one clear message and an exit code, never a traceback."""
    # Reading the options of all commands takes longer than showing a case: only the one in use is loaded.
    named = [word for word in sys.argv[1:2] if word in COMMANDS]
    try:
        make_app(named or COMMANDS)()
    except FlatoutError as error:
        sys.stderr.write(f"flatout: {error}\n")
        raise SystemExit(error.exit_code) from None
    except BrokenPipeError:
        # The reader (head, less) has closed the pipe, which is not an error.
        sys.stderr.close()
        raise SystemExit(141) from None
