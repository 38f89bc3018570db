"""`flatout explain`: the page of one cause of slowness or of one lever, or the list of all causes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from flatout.causes import Cause
    from flatout.plugins import Loaded
    from flatout.report.terminal.pages import Entry


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
    from flatout.causes import catalogue
    from flatout.report.terminal import pages

    entries = [_cause(cause) for cause in catalogue().values()] if name is None else [_entry(name)]
    if json is not None:
        _write_json(entries, name is None, json)
        if json == "-":
            return
    typer.echo(pages.index(entries, width) if name is None else pages.page(entries[0], width), nl=False)


def _entry(name: str) -> Entry:
    """The page of this name. No name stands in two catalogues."""
    from flatout.causes import find
    from flatout.cures._catalogue import catalogue as levers
    from flatout.report.terminal.pages import Entry

    if name in levers():
        lever = levers()[name]
        return Entry(lever.name, f"lever, {lever.equivalence}", lever.title, lever.page)
    return _cause(find(name))


def _cause(cause: Loaded[Cause]) -> Entry:
    from flatout.report.terminal.pages import Entry

    return Entry(cause.name, cause.spec.group, cause.title, cause.page, cause.spec.cures)


def _write_json(entries: list[Entry], whole: bool, destination: str) -> None:
    from json import dumps

    from flatout.report.json import write_text

    plain = [
        {"name": e.name, "group": e.group, "title": e.title, "levers": list(e.levers or ()), "page": e.page}
        for e in entries
    ]
    write_text(dumps(plain if whole else plain[0], ensure_ascii=False, indent=2) + "\n", destination)
