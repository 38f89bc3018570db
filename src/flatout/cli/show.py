"""`flatout show`: a view of a kept case in the terminal. Needs neither the program nor TensorFlow."""

from __future__ import annotations

import sys

import typer

from flatout.cli._options import QuietOption, VerboseOption


def register(app: typer.Typer) -> None:
    @app.command("show")
    def _command(
        case: str = typer.Argument(None, help="A case.json, its directory or its name; the latest by default."),
        view: str = typer.Option(
            "overview",
            "--view",
            "-v",
            help="overview, details, timeline, ops, memory, input, functions, placement, devices, trials or patch.",
        ),
        json: str = typer.Option(None, "--json", metavar="FILE", help="Write the case as JSON (- is stdout)."),
        width: int = typer.Option(None, "--width", min=20, help="Columns; those of the terminal by default."),
        quiet: QuietOption = False,
        verbose: VerboseOption = False,
    ) -> None:
        """Show a kept case: one screen with the verdict, all of it with --verbose, or one view."""
        show(case, "details" if verbose else view, json, width, quiet)


def show(reference: str | None, view: str, json: str | None, width: int | None, quiet: bool = False) -> None:
    # Imported here, so that `flatout --help` does not wait for rich.
    from flatout import store
    from flatout.model.errors import CaseUnreadable

    path = store.latest_with_patch() if view == "patch" and reference is None else store.locate(reference)
    case = store.load(path)
    if json is not None:
        from flatout.report.json import write

        write(case, json)
        if json == "-":
            return  # standard output gets the JSON only
    if view == "patch" and case.patch and not sys.stdout.isatty():
        from flatout.source.editing import unified_diff

        sys.stdout.buffer.write(unified_diff.to_bytes(case.patch))
        sys.stdout.flush()
        return
    from flatout.report.terminal import headline, render

    try:
        text = f"{headline(case)}\n" if quiet else render(case, view, width, directory=path.parent)
    except (ArithmeticError, AttributeError, TypeError, ValueError) as error:
        raise CaseUnreadable(
            f"{path} has values that the view {view!r} cannot show: {error}. Run the program again, or "
            "read the file itself with `--json -`."
        ) from error
    typer.echo(text, nl=False)
