from __future__ import annotations

import typer


def register(app: typer.Typer) -> None:
    @app.command("show")
    def _command() -> None:
        """To be written."""
