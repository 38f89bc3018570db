from __future__ import annotations

import typer


def register(app: typer.Typer) -> None:
    @app.command("trace")
    def _command() -> None:
        """To be written."""
