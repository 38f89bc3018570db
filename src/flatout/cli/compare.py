"""`flatout compare A B`: what changed between two runs, how certain that is, and what else differs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flatout.model.errors import InvalidOption, OutputNotWritable

ThresholdOption = Annotated[
    str | None,
    typer.Option("--max-regression", metavar="SHARE", help="Exit with code 1 above this, for example 5%."),
]
MarkdownOption = Annotated[
    str | None, typer.Option("--markdown", metavar="FILE", help="Write a summary as Markdown (- is stdout).")
]


def register(app: typer.Typer) -> None:
    @app.command("compare")
    def _command(
        before: Annotated[str, typer.Argument(help="A case, several separated by commas, or a pattern.")],
        after: Annotated[str, typer.Argument(help="The same, for the other side.")],
        max_regression: ThresholdOption = None,
        json: Annotated[
            str | None, typer.Option("--json", metavar="FILE", help="Write the comparison as JSON (- is stdout).")
        ] = None,
        markdown: MarkdownOption = None,
        width: Annotated[int | None, typer.Option(min=20, help="Columns; those of the terminal by default.")] = None,
        quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the verdict only.")] = False,
    ) -> None:
        """Compare two kept cases: the step and its parts with intervals, and what else differs.

        Exit codes: 0 no regression, 1 a regression above --max-regression, 2 the comparison cannot be made.
        """
        if compare(before, after, share(max_regression), json, markdown, width, quiet):
            raise typer.Exit(1)


def compare(
    before: str,
    after: str,
    allowed: float | None,
    json: str | None,
    markdown: str | None,
    width: int | None,
    quiet: bool,
) -> bool:
    """Whether the second side is slower by more than is allowed."""
    from flatout.compare.case_selection import runs_of
    from flatout.compare.comparison import compare as make
    from flatout.history.series import repeats_of

    old, new = runs_of(before), runs_of(after)
    found = make(old, new, allowed, repeats_of((*old, *new)))
    if json is not None:
        write_json(found.to_json(), json)
    if markdown is not None:
        from flatout.report.markdown import render as as_markdown

        write(as_markdown(found), markdown)
    if "-" not in (json, markdown):  # standard output gets one thing only
        if quiet:
            typer.echo(found.verdict)
        else:
            from flatout.report.terminal.comparison import render

            typer.echo(render(found, width), nl=False)
    return found.regressed


def share(text: str | None) -> float | None:
    """`5%`, `5 %` or `0.05` → 0.05."""
    if text is None:
        return None
    words = text.strip()
    percent = words.endswith("%")
    try:
        value = float(words.rstrip("% ")) / (100 if percent else 1)
    except ValueError:
        value = -1.0
    if not 0 <= value < (10 if percent else 1):  # a plain 5 is ambiguous
        raise InvalidOption(f"--max-regression takes a share such as 5% or 0.05, not {text!r}.")
    return value


def write(text: str, destination: str) -> None:
    from flatout.store import write_atomically

    if destination == "-":
        typer.echo(text, nl=False)
        return
    try:
        write_atomically(Path(destination), text)
    except OSError as error:
        raise OutputNotWritable(
            f"Could not write to {destination}: {error.strerror or error}. Name a file in a directory that exists."
        ) from None


def write_json(data: object, destination: str) -> None:
    import json

    from flatout.report.json import write_text

    write_text(json.dumps(data, ensure_ascii=False, indent=2, allow_nan=False) + "\n", destination)
