"""`flatout history`: the step time of each program by commit."""

from __future__ import annotations

from typing import Annotated

import typer

from flatout.cli._options import QuietOption


def register(app: typer.Typer) -> None:
    @app.command("history")
    def _command(
        program: Annotated[str | None, typer.Argument(help="Only this program; all by default.")] = None,
        last: Annotated[int, typer.Option("--last", "-n", min=1, help="States to show of each program.")] = 20,
        json: Annotated[
            str | None, typer.Option("--json", metavar="FILE", help="Write the history as JSON (- is stdout).")
        ] = None,
        width: Annotated[int | None, typer.Option(min=20, help="Columns; those of the terminal by default.")] = None,
        quiet: QuietOption = False,
    ) -> None:
        """Show the trend of the step time of each program that was run here, by commit.

        Every `flatout run` is recorded in .flatout/history.db; FLATOUT_HISTORY names another file.
        """
        history(program, last, json, width, quiet)


def history(program: str | None, last: int, json: str | None, width: int | None, quiet: bool = False) -> None:
    from flatout.history.series import all_series
    from flatout.history.trend import render, to_json, verdict
    from flatout.model.errors import CaseNotFound

    found = [
        one for one in all_series() if program in (None, one.program, one.title) or one.program.endswith(f"/{program}")
    ]
    if not found:
        raise CaseNotFound(
            f"The history has no runs of {program!r} yet. `flatout history` shows the programs that it has."
            if program
            else "The history has no runs yet. Run `flatout run PROGRAM` here first."
        )
    if json is not None:
        from flatout.cli.compare import write_json

        write_json(to_json(found), json)
    if json != "-":
        typer.echo("\n".join(map(verdict, found)) if quiet else render(found, last, width), nl=quiet)
