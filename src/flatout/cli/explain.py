"""`flatout explain`: the page of a cause, a lever, a route or a check, or the list of all causes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from flatout.report.terminal.explanation import Entry


def register(app: typer.Typer) -> None:
    @app.command("explain")
    def _command(
        cause: str = typer.Argument(
            None,
            metavar="[NAME]",
            help="A cause (`input-bound`), a lever (`cache`), a route of `optimize` or a check of `env`; "
            "all causes by default.",
        ),
        json: str = typer.Option(None, "--json", metavar="FILE", help="Write it as JSON (- is stdout)."),
        width: int = typer.Option(None, "--width", min=20, help="Columns; those of the terminal by default."),
    ) -> None:
        """Explain a cause, a lever, a route or a check: what it is, what it costs or changes, when it pays."""
        explain(cause, json, width)


def explain(name: str | None, json: str | None, width: int | None) -> None:
    from flatout.report.terminal import explanation

    entries = list(_causes()) if name is None else _named(name)
    if json is not None:
        _write_json(entries, name is None, json)
        if json == "-":
            return
    text = (
        explanation.index(entries, width)
        if name is None
        else "\n".join(explanation.page(entry, width) for entry in entries)
    )
    typer.echo(text, nl=False)


def _named(name: str) -> list[Entry]:
    """The pages of this name: one, or two where a lever and a check share a name."""
    from flatout.model.errors import UnknownCause
    from flatout.plugins import suggestion

    # Each catalogue takes time to read, so the ones that are asked for most come first.
    known: list[str] = []
    for catalogues in ((_causes,), (_cures, _checks), (_routes,)):
        there = [entry for entries in catalogues for entry in entries()]
        if found := [entry for entry in there if entry.name == name]:
            return found
        known += [entry.name for entry in there]
    raise UnknownCause(
        f"There is no cause, lever, check or route named {name!r}.{suggestion(name, known)} "
        "`flatout explain` lists the causes."
    )


def _causes() -> Iterator[Entry]:
    from flatout.causes import catalogue
    from flatout.report.terminal.explanation import Entry

    for cause in catalogue().values():
        yield Entry(cause.name, cause.spec.group, cause.title, cause.page, cause.spec.cures)


def _cures() -> Iterator[Entry]:
    from flatout.cures import catalogue
    from flatout.report.terminal.explanation import Entry

    for cure in catalogue().values():
        yield Entry(cure.name, f"lever, {cure.spec.equivalence}", cure.title, cure.page)


def _routes() -> Iterator[Entry]:
    from flatout.plugins import page_of
    from flatout.report.terminal.explanation import Entry
    from flatout.routes import catalogue

    for route in catalogue().values():
        yield Entry(route.name, f"route, {route.family}, {route.precision}", *page_of(type(route)))


def _checks() -> Iterator[Entry]:
    from flatout.environment.checks import catalogue
    from flatout.report.terminal.explanation import Entry

    for check in catalogue().values():
        yield Entry(check.name, f"check of the environment, {check.spec.group}", check.title, check.page)


def _write_json(entries: list[Entry], whole: bool, destination: str) -> None:
    from json import dumps

    from flatout.report.json import write_text

    plain = [
        {"name": e.name, "group": e.group, "title": e.title, "levers": list(e.levers or ()), "page": e.page}
        for e in entries
    ]
    write_text(dumps(plain if whole else plain[0], ensure_ascii=False, indent=2) + "\n", destination)
