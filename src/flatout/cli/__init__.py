"""The command line: one thin file per command, listed here and nowhere else.

The overview (`flatout --help`) is text, written without Typer: loading that and reading the options of every command
takes three times as long as Python itself. A command in use is loaded alone.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from flatout.model.errors import FlatoutError
from flatout.model.version import __version__

if TYPE_CHECKING:
    import typer

ABOUT = "Find out why a TensorFlow program is slow, fix it, and prove the fix on that very program."

COMMANDS = {
    "run": "Run a program unchanged and say where each step's time goes and why.",
    "tune": "Try cures on a program and say what won, by how much, at what price.",
    "check": "Find performance faults in source without running it.",
    "data": "Measure and rewrite an input pipeline; store data as shards.",
    "optimize": "Try the ways to serve a trained model and hand over the best.",
    "verify": "Check an artefact here: files, weights, answers, speed.",
    "show": "Show a kept case in the terminal.",
    "report": "Write a case as one self-contained HTML file.",
    "compare": "Compare two kept cases: the step, its parts, what else differs.",
    "history": "Show the trend of each program's step time, by commit.",
    "gate": "Fail on a regression, for continuous integration.",
    "serve": "Show the kept cases in the browser, and what runs right now.",
    "explain": "Explain a cause, a lever, a route or a check.",
    "trace": "Read XPlane traces of TensorFlow or JAX.",
    "env": "Audit the machine, the drivers, the libraries and the flags.",
    "lsp": "Speak the Language Server Protocol with an editor.",
}
"""Each is a module here that defines `register(app)`; the order and the texts are those of `flatout --help`."""


def make_app(commands: Sequence[str] = tuple(COMMANDS)) -> typer.Typer:
    """The command line with these commands."""
    import typer

    # Help is rendered by click alone: loading rich for it would double the start-up time.
    app = typer.Typer(
        name="flatout",
        help=ABOUT,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    app.callback(context_settings={"help_option_names": ["-h", "--help"]})(_root)
    for name in commands:
        importlib.import_module(f"flatout.cli.{name}").register(app)
    return app


def _root() -> None:
    pass


def overview() -> str:
    width = max(map(len, COMMANDS)) + 2
    return "\n".join(
        (
            "Usage: flatout [OPTIONS] COMMAND [ARGS]...",
            "",
            textwrap.fill(ABOUT, 78, initial_indent="  ", subsequent_indent="  "),
            "",
            "Options:",
            "  --version   Print the version.",
            "  -h, --help  Show this message and exit.",
            "",
            "Commands:",
            *(f"  {name.ljust(width)}{text}" for name, text in COMMANDS.items()),
            "",
            "`flatout COMMAND --help` describes a command.",
            "",
        )
    )


def _run(first: str) -> None:
    try:
        make_app([first] if first in COMMANDS else tuple(COMMANDS))()
    except SystemExit as left:
        if first == "show" and not left.code:
            # It has written its text, and nothing else is under way: taking the modules down takes a sixth of its time.
            sys.stdout.flush()
            os._exit(0)
        raise


def main() -> None:
    """Entry point. An error of ours is one clear message and an exit code, never a traceback."""
    gc.set_threshold(100_000, 50, 50)  # what is loaded at the start stays: looking for garbage in it takes a tenth
    first = next(iter(sys.argv[1:]), "--help")
    try:
        if first in ("-h", "--help"):
            sys.stdout.write(overview())
        elif first == "--version":
            sys.stdout.write(f"flatout {__version__}\n")
        else:
            _run(first)
    except FlatoutError as error:
        sys.stderr.write(f"flatout: {error}\n")
        raise SystemExit(error.exit_code) from None
    except BrokenPipeError:
        # The reader (head, less) has closed the pipe, which is not an error.
        sys.stderr.close()
        raise SystemExit(141) from None
