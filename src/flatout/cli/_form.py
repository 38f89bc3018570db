"""The form of all commands, made in one place: names of arguments and values in help, summaries in full, suggestions.

Typer writes `{program}` and `<int range>`, and cuts summaries. Here an argument is `PROGRAM`, a number `N`, and the
summary of a subcommand the first sentence of its help.
"""

from __future__ import annotations

import typer
import typer.main

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
        command.short_help = (command.help or "").strip().partition("\n\n")[0].replace("\n", " ")
        for one in command.params:
            if isinstance(one, typer.core.TyperArgument):
                _form_argument(one)
            elif one.metavar is None and not getattr(one, "is_flag", False):
                one.metavar = VALUES.get(one.type.name, "NAME")


def _form_argument(one: typer.core.TyperArgument) -> None:
    name = one.metavar or (one.name or "").upper() + ("..." if one.nargs == -1 else "")
    one.metavar = name
    pieces = [name if one.required or name.startswith("[") else f"[{name}]"]
    one.get_usage_pieces = lambda ctx: pieces  # type: ignore[method-assign]  # newer versions of Typer add braces
