"""`flatout report`: a kept case as one HTML file. Needs neither the program nor TensorFlow."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from flatout.model.errors import OutputNotWritable


def register(app: typer.Typer) -> None:
    @app.command("report")
    def _command(
        case: Annotated[
            str | None, typer.Argument(help="A case.json, its directory or its name; the latest by default.")
        ] = None,
        output: Annotated[
            str, typer.Option("--output", "-o", metavar="FILE", help="The file to write (- is standard output).")
        ] = "report.html",
        markdown: Annotated[
            str | None,
            typer.Option("--markdown", metavar="FILE", help="Instead, the text of a pull request (- is stdout)."),
        ] = None,
        force: Annotated[bool, typer.Option("--force", help="Overwrite a file that is not a report.")] = False,
        json: Annotated[
            str | None, typer.Option("--json", metavar="FILE", help="Write the case as JSON (- is stdout).")
        ] = None,
        quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing when the file is written.")] = False,
    ) -> None:
        """Write a case as one self-contained HTML file that opens offline in any browser."""
        if markdown is not None:
            pull_request(case, markdown, json=json)
        else:
            report(case, output, force=force, json=json, quiet=quiet)


def pull_request(reference: str | None, output: str, *, json: str | None) -> None:
    from flatout import store
    from flatout.cli.compare import write as write_text
    from flatout.report.pull_request import render

    case = store.load(store.locate(reference))
    if json is not None:
        from flatout.report.json import write

        write(case, json)
    if json != "-" or output != "-":  # standard output gets one thing only
        write_text(render(case), output)


def report(reference: str | None, output: str, *, force: bool, json: str | None, quiet: bool) -> None:
    from flatout import store
    from flatout.report.html import render

    path = store.locate(reference)
    case = store.load(path)
    if json is not None:
        from flatout.report.json import write

        write(case, json)
    _check_output(output, force)
    page = render(case, path.resolve().parent)
    if output == "-":
        if json != "-":
            sys.stdout.buffer.write(page.encode("utf-8"))
            sys.stdout.buffer.flush()
        return
    try:
        store.write_atomically(Path(output), page)
    except OSError as error:
        raise OutputNotWritable(
            f"Could not write {output}: {error.strerror or error}. Give a file in a directory that exists and may be "
            "written."
        ) from None
    if not quiet:
        sys.stderr.write(f"flatout: wrote {output} ({len(page.encode()) / 1e6:.1f} MB); open it in a browser\n")


def _check_output(output: str, force: bool) -> None:
    """A report may be overwritten, any other file may not."""
    from flatout.report.html import MARKER

    path = Path(output)
    if output == "-" or force or not path.exists():
        return
    if path.is_dir():
        raise OutputNotWritable(f"{output} is a directory. Name a file: `-o {path / 'report.html'}`.")
    with open(path, encoding="utf-8", errors="replace") as stream:
        if MARKER not in stream.read(200):
            raise OutputNotWritable(
                f"{output} exists and is not a report of flatout. Name another file, or give --force to write over it."
            )
