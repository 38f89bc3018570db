"""`flatout data …`: tf.data pipelines and the files they read. One module per subcommand, listed here."""

from __future__ import annotations

from types import ModuleType

import typer

from flatout.cli.data import convert, inspect, serve, tune

COMMANDS: tuple[ModuleType, ...] = (inspect, tune, convert, serve)
"""Each module defines `register(app)`; the order is the order in `flatout data --help`."""


def register(app: typer.Typer) -> None:
    group = typer.Typer(
        name="data",
        help="Say what each stage of an input pipeline costs, rewrite it, prove it, and store data as shards.",
        invoke_without_command=True,
        rich_markup_mode=None,
    )
    group.callback()(_data)  # with a callback, Typer keeps it a group
    for command in COMMANDS:
        command.register(group)
    app.add_typer(group)


def _data(context: typer.Context) -> None:
    if context.invoked_subcommand is None:  # as `flatout` alone: what there is, and no error
        typer.echo(context.get_help())
