"""What is wrong with a command as it was typed, in one sentence, as all other errors of flatout are told.

Typer writes the usage, a hint and an error, each in words of its own ("0 is not in the range x>=1"). Its errors are
known here by the names of their classes: where these are defined differs between its versions.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Any

KINDS = {"int": "a whole number", "integer": "a whole number", "float": "a number"}
_VALUE = re.compile(r"(?P<value>'.*'|\S+) is not ")


def is_usage_error(error: Exception) -> bool:
    """Whether Typer has raised it for what was typed."""
    return hasattr(error, "format_message") and hasattr(error, "exit_code")


def told(error: Any, command: str) -> str:
    """The sentence, and where to look. `command`: what was typed, where the error does not know it."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else command
    return f"{_what(error, context, path)} See `{path} -h`."


def near(name: str, known: list[str]) -> str:
    """` Did you mean --budget?`, or nothing."""
    close = get_close_matches(name, known, n=1, cutoff=0.7)
    return f" Did you mean {close[0]}?" if close else ""


def options_of(command: Any) -> list[str]:
    """The long options of a command."""
    return [name for one in command.params for name in (*one.opts, *one.secondary_opts) if name.startswith("--")]


def _what(error: Any, context: Any, path: str) -> str:
    kind = type(error).__name__
    if kind == "NoSuchOption":
        known = options_of(context.command) if context is not None else []
        return f"`{path}` has no option {error.option_name}.{near(error.option_name, known)}"
    if kind == "BadOptionUsage":
        takes = "takes no value" if "not take" in error.message else "needs a value"
        return f"{error.option_name} {takes}."
    if kind == "MissingParameter" and error.param is not None:
        return f"`{path}` needs {_named(error.param)}."
    if kind == "BadParameter" and error.param is not None:
        return _bad_value(error.param, error.message)
    text = str(error.message)
    if found := re.match(r"No such command '(.*?)'", text):
        hint = near(found[1], list(getattr(context.command, "commands", {})))
        return f"`{path}` has no command {found[1]!r}.{hint}"
    if found := re.match(r"Got unexpected extra arguments? ?\(?s?\)? \((.*)\)", text):
        return f"`{path}` has no place for {found[1]!r}."
    return f"{text.rstrip('.')}."


def _named(parameter: Any) -> str:
    """`--good ENV`, or `PROGRAM`."""
    names = [name for name in parameter.opts if name.startswith("--")]
    shown = str(parameter.metavar).removesuffix(" [ARGS]...").removesuffix("...").replace(" | ", ", or ")
    return f"{names[0]} {shown}" if names else shown


def _bad_value(parameter: Any, message: str) -> str:
    name = next((one for one in parameter.opts if one.startswith("--")), parameter.metavar or parameter.name)
    found, of = _VALUE.match(message), parameter.type
    kind = KINDS.get(of.name.removesuffix(" range"))
    if found is None or kind is None:
        return f"{name}: {message.rstrip('.')}."
    low, high = getattr(of, "min", None), getattr(of, "max", None)
    limits = "" if low is None else f" from {low:g} on" if high is None else f" from {low:g} to {high:g}"
    value = found["value"].strip("'")
    return f"{name} takes {kind}{limits}, not {value!r}."
