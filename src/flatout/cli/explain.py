"""`flatout explain`: the page of one cause of slowness or of one lever, or the list of all causes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from flatout.causes import Cause


def register(app: typer.Typer) -> None:
    @app.command("explain")
    def _command(
        cause: str = typer.Argument(None, help="A cause (`input-bound`) or a lever (`cache`); all causes if left out."),
        json: str = typer.Option(None, "--json", metavar="FILE", help="Write it as JSON (- is stdout)."),
        width: int = typer.Option(None, "--width", min=20, help="Columns; those of the terminal if left out."),
    ) -> None:
        """Explain a cause or a lever: what it is, what it costs or changes, how it looks, when it pays."""
        explain(cause, json, width)


def explain(name: str | None, json: str | None, width: int | None) -> None:
    from flatout.causes import catalogue, find
    from flatout.cures._catalogue import catalogue as levers

    causes = list(catalogue().values()) if name is None else [_page_of_lever(name) if name in levers() else find(name)]
    if json is not None:
        _write_json(causes, name is None, json)
        if json == "-":
            return
    from flatout.report.terminal import pages

    typer.echo(pages.index(causes, width) if name is None else pages.page(causes[0], width), nl=False)


def _page_of_lever(name: str) -> Cause:
    """Levers and causes share the form of their pages; no name is both."""
    from flatout.causes import Cause
    from flatout.cures._catalogue import find

    lever = find(name)
    return Cause(lever.name, f"lever, {lever.equivalence}", lever.title, lever.page, (), None)


def _write_json(causes: list[Cause], whole: bool, destination: str) -> None:
    from json import dumps

    from flatout.report.json import write_text

    plain = [
        {"name": c.name, "group": c.group, "title": c.title, "levers": list(c.levers), "page": c.page} for c in causes
    ]
    write_text(dumps(plain if whole else plain[0], ensure_ascii=False, indent=2) + "\n", destination)
