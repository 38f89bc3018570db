"""Commands with many options: the options are the fields of a dataclass, and the command takes one object.

Typer reads the options of a command from the parameters of a function. `command` gives it a function whose signature
is made from the dataclass, so that a command with twenty options is still a function of one argument:

    @dataclass(frozen=True)
    class Options:
        model: Annotated[str, typer.Argument(help="…")]
        batch: Annotated[str, typer.Option(help="…")] = "1"

    command(app, "optimize", Options, run)
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

T = TypeVar("T")

VerboseOption = Annotated[
    bool, typer.Option("--verbose", help="Print everything: evidence, every trial, every reason.")
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print the verdict only.")]
JsonOption = Annotated[str | None, typer.Option("--json", metavar="FILE", help="Write the case as JSON (- is stdout).")]


def command(
    app: typer.Typer,
    name: str,
    options: type[T],
    run: Callable[[T], None],
    context_settings: dict[str, Any] | None = None,
) -> None:
    """Register a command. Its help is the docstring of `run`."""
    hints = get_type_hints(options, include_extras=True)

    def call(**values: Any) -> None:
        run(options(**values))

    parameters = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in dataclasses.fields(options)  # type: ignore[arg-type]
    ]
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = hints
    call.__doc__ = run.__doc__
    app.command(name, context_settings=context_settings)(call)
