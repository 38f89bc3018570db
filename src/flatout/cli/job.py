"""`flatout job DIR`: put the ranks of a job together, as far as they have come."""

from __future__ import annotations

from typing import Annotated

import typer

from flatout.cli._options import JsonOption, QuietOption, VerboseOption


def register(app: typer.Typer) -> None:
    @app.command("job")
    def _command(
        directory: Annotated[str, typer.Argument(metavar="DIR", help="The directory that was given with --job.")],
        json: JsonOption = None,
        quiet: QuietOption = False,
        verbose: VerboseOption = False,
    ) -> None:
        """Put the cases of all ranks of a job together and show them as one.

        The last rank of a job does this by itself. It is of use where that rank was killed, or while ranks still run.
        """
        from pathlib import Path

        from flatout.cli._output import show
        from flatout.job import closing, merge

        meeting = Path(directory).absolute()
        case = merge.merge(meeting)
        title = Path(next((word for word in case.program.command if word.endswith(".py")), "program")).stem
        kept = closing.keep(case, meeting, title)
        show(case, "details" if verbose else "overview", kept, json, quiet)
