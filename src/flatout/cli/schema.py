"""`flatout schema`: the JSON Schema of a case."""

from __future__ import annotations

from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    @app.command("schema")
    def _command(
        json: Annotated[str, typer.Option("--json", metavar="FILE", help="Where to write it (- is stdout).")] = "-",
    ) -> None:
        """Print the JSON Schema of a case: of what --json writes and .flatout/cases/*/case.json holds."""
        from json import dumps

        from flatout.model.schema import case_schema
        from flatout.report.json import write_text

        write_text(dumps(case_schema(), ensure_ascii=False, indent=2) + "\n", json)
