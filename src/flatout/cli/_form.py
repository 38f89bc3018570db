"""The form of all commands, made in one place: names of arguments and values in help, and what is refused early.

Typer writes `{program}` and `<int range>`, and cuts summaries. Here an argument is `PROGRAM`, a number `N`, and the
summary of a subcommand the first sentence of its help. Options that exclude each other, and files that cannot be
written, are refused before anything is run, since a run may take hours.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer
import typer.main

from flatout.model.errors import InvalidOption, OutputNotWritable

VALUES = {
    "int": "N",
    "integer": "N",
    "int range": "N",
    "integer range": "N",
    "float": "NUMBER",
    "float range": "NUMBER",
    "path": "PATH",
}
"""What a value of each type is called; all others are `NAME`."""
WRITTEN = ("--json", "--markdown", "--output", "--patch", "--perfetto")
"""Options that name a file to write, where their value is called FILE."""
EXCLUSIVE = (
    ("quiet", "verbose"),
    ("quiet", "view"),
    ("verbose", "view"),
    ("apply", "branch"),
    ("no-trace", "steps"),
    ("no-trace", "window"),
)
"""Pairs of options of which a command takes one."""


def formed(app: typer.Typer) -> typer.core.TyperGroup:
    """The commands of an app, ready to be called."""
    group = typer.main.get_command(app)
    assert isinstance(group, typer.core.TyperGroup)
    _form(group)
    return group


def _form(group: typer.core.TyperGroup) -> None:
    for command in group.commands.values():
        if isinstance(command, typer.core.TyperGroup):
            _form(command)
        else:
            _refuse_pairs(command)
        command.short_help = (command.help or "").strip().partition("\n\n")[0].replace("\n", " ")
        for one in command.params:
            if isinstance(one, typer.core.TyperArgument):
                _form_argument(one)
            elif one.metavar is None and not getattr(one, "is_flag", False):
                one.metavar = VALUES.get(one.type.name, "NAME")
            if one.metavar == "FILE" and (name := next((name for name in WRITTEN if name in one.opts), None)):
                one.callback = _writable(name)


def _form_argument(one: typer.core.TyperArgument) -> None:
    name = one.metavar or (one.name or "").upper() + ("..." if one.nargs == -1 else "")
    one.metavar = name
    pieces = [name if one.required or name.startswith("[") else f"[{name}]"]
    one.get_usage_pieces = lambda ctx: pieces  # type: ignore[method-assign]  # newer versions of Typer add braces


def _refuse_pairs(command: Any) -> None:
    """Refuse options that exclude each other before the command begins."""
    invoke: Callable[[Any], Any] = command.invoke

    def checked(context: Any) -> Any:
        given = {name.replace("_", "-") for name, value in context.params.items() if value != _default(command, name)}
        if context.params.get("trace") is False:
            given.add("no-trace")
        for one, other in EXCLUSIVE:
            if one in given and other in given:
                raise InvalidOption(f"--{one} and --{other} exclude each other: give one of them.")
        streams = [name for name in ("json", "markdown", "output") if context.params.get(name) == "-"]
        if len(streams) > 1:
            both = " and ".join(f"--{name} -" for name in streams[:2])
            raise InvalidOption(f"{both}: standard output has room for one. Give the other a file.")
        return invoke(context)

    command.invoke = checked


def _default(command: Any, name: str) -> Any:
    return next((one.default for one in command.params if one.name == name), None)


def _writable(option: str) -> Callable[[Any, Any, Any], Any]:
    """A callback that refuses a file which could not be written at the end."""

    def check(context: Any, parameter: Any, value: Any) -> Any:
        if value in (None, "-") or context.resilient_parsing:
            return value
        if not value:
            raise OutputNotWritable(f"{option} needs the name of a file, and its value is empty.")
        folder = Path(value).absolute().parent
        if not folder.is_dir():
            raise OutputNotWritable(f"{option} {value}: there is no directory {folder}.")
        if Path(value).is_dir():
            raise OutputNotWritable(f"{option} {value}: that is a directory. Give the name of a file.")
        if not os.access(value if Path(value).exists() else folder, os.W_OK):
            raise OutputNotWritable(f"{option} {value}: it may not be written. Give another name.")
        return value

    return check
