"""The command line: one thin file per command, listed here and nowhere else.

The overview (`flatout --help`) is text, written without Typer: loading that and reading the options of every command
takes three times as long as Python itself. A command in use is loaded alone.
"""

from __future__ import annotations

import errno
import gc
import importlib
import os
import sys
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from flatout.model.errors import FlatoutError, InvalidOption
from flatout.model.text import clean
from flatout.model.version import __version__

if TYPE_CHECKING:
    import typer

ABOUT = "Find out why a TensorFlow program is slow, fix it, and prove the fix on that very program."

GROUPS = {
    "Observe": {
        "run": "Run a program unchanged and say where its time goes and why.",
        "launch": "Start the ranks of a distributed program on this machine.",
        "job": "Put the ranks of a distributed program together as one case.",
        "trace": "Read XPlane traces of TensorFlow or JAX.",
        "env": "Audit the machine, the drivers, the libraries and the flags.",
    },
    "Cure": {
        "tune": "Try cures on a program, measure them, prove them, write the patch.",
        "data": "Measure and rewrite an input pipeline; store data as shards.",
        "check": "Find performance faults in source without running it.",
        "lsp": "Show the faults that check finds in an editor.",
    },
    "Serve a model": {
        "optimize": "Try the ways to serve a trained model and hand over the best.",
        "verify": "Check an artefact here: files, weights, answers, speed.",
    },
    "Keep and compare": {
        "show": "Show a kept case in the terminal.",
        "report": "Write a case as one HTML file, or as the text of a pull request.",
        "serve": "Show the kept cases in the browser, and what runs right now.",
        "compare": "Compare two kept cases, or a program in two environments.",
        "bisect": "Find the release or the package that made a program slower.",
        "history": "Show the trend of each program's step time, by commit.",
        "gate": "Fail on a regression, for continuous integration.",
    },
    "Look up": {
        "explain": "Explain a cause, a lever, a route or a check.",
        "schema": "Print the JSON Schema of a case.",
        "completion": "Print what completes commands and names in your shell.",
    },
}
"""The commands in the order of `flatout --help`. Each is a module here that defines `register(app)`."""

COMMANDS = {name: text for group in GROUPS.values() for name, text in group.items()}

FIRST = {
    "flatout run train.py": "where its time goes and why; it runs unchanged",
    "flatout tune train.py": "what makes it faster: tried, proved, as a patch",
    "flatout check src/": "faults in source, without running it",
    "flatout optimize model.keras": "a trained model, fast to serve",
}
"""What `flatout` alone tells to try."""


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
    """`flatout --help`"""
    width = max(map(len, COMMANDS)) + 2
    lines = [
        "Usage: flatout COMMAND [ARGS]...",
        "",
        textwrap.fill(ABOUT, 78, initial_indent="  ", subsequent_indent="  "),
    ]
    for title, group in GROUPS.items():
        lines += ["", f"{title}:", *(f"  {name.ljust(width)}{text}" for name, text in group.items())]
    lines += ["", "Options:", "  --version   Print the version.", "  -h, --help  Show this message and exit."]
    return "\n".join([*lines, "", "`flatout COMMAND --help` describes a command.", ""])


def first_steps() -> str:
    """`flatout` alone"""
    width = max(map(len, FIRST)) + 2
    lines = [textwrap.fill(ABOUT, 78), "", "Try first:"]
    lines += [f"  {command.ljust(width)}{text}" for command, text in FIRST.items()]
    return "\n".join([*lines, "", "`flatout --help` lists all commands.", ""])


def _run(first: str) -> None:
    try:
        _invoke(make_app([first] if first in COMMANDS else tuple(COMMANDS)))
    except SystemExit as left:
        if first == "show" and not left.code:
            # It has written its text, and nothing else is under way: taking the modules down takes a sixth of its time.
            sys.stdout.flush()
            os._exit(0)
        raise


def _invoke(app: typer.Typer) -> None:
    """Call the command that was typed, and end with its exit code."""
    import typer

    from flatout.cli import _usage
    from flatout.cli._form import formed

    try:
        code = formed(app).main(prog_name="flatout", standalone_mode=False)
    except typer.Abort:
        raise SystemExit(130) from None
    except Exception as error:
        if not _usage.is_usage_error(error):
            raise
        words = [word for word in sys.argv[1:] if word in COMMANDS][:1]
        raise InvalidOption(_usage.told(error, " ".join(["flatout", *words]))) from None
    raise SystemExit(code if isinstance(code, int) else 0)


def main() -> None:
    """Entry point. An error of ours is one clear message and an exit code, never a traceback."""
    _open_closed_streams()
    gc.set_threshold(100_000, 50, 50)  # what is loaded at the start stays: looking for garbage in it takes a tenth
    first = next(iter(sys.argv[1:]), "")
    try:
        if not first and "_FLATOUT_COMPLETE" not in os.environ:
            sys.stdout.write(first_steps())
        elif first in ("-h", "--help"):
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
    except OSError as error:
        told = _of_files(error, first)
        if told is None:
            raise
        sys.stderr.write(f"flatout: {told[0]}\n")
        raise SystemExit(told[1]) from None


def _open_closed_streams() -> None:
    """`flatout show >&-`: without a standard stream, Python has None in its place, which nothing can be written to.

    A program that is started finds the stream closed as before: what is opened here is not inherited.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  # until the end


def _of_files(error: OSError, first: str) -> tuple[str, int] | None:
    """The message and the exit code, where the disk is full or a file may not be touched. None for all other errors."""
    where = f" ({clean(error.filename)})" if error.filename else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        again = " `--resume` goes on with this tune." if first == "tune" else ""
        return f"The disk is full{where}. Free some space, then run the same command again.{again}", 3
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS) and where:
        todo = "Change its permissions, or work in a directory that you may read and write."
        return f"{clean(error.filename)} may not be read or written: {error.strerror}. {todo}", 2
    return None
