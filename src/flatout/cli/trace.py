"""`flatout trace PATH…`: read traces that already exist."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    @app.command("trace")
    def _command(
        paths: Annotated[
            list[Path],
            typer.Argument(help="Trace files (*.xplane.pb, also gzip'ed), log directories, patterns."),
        ],
        json: Annotated[
            str | None, typer.Option("--json", metavar="FILE", help="Write the case as JSON (- is stdout).")
        ] = None,
        perfetto: Annotated[
            Path | None,
            typer.Option(metavar="FILE", help="Write a timeline for ui.perfetto.dev (.json, .json.gz)."),
        ] = None,
        view: Annotated[str, typer.Option("--view", "-v", help="The view to print.")] = "overview",
        all_runs: Annotated[
            bool, typer.Option("--all-runs", help="All runs of a directory, not only the newest.")
        ] = False,
        save: Annotated[bool, typer.Option("--save/--no-save", help="Keep the case under .flatout/.")] = True,
        quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the verdict only.")] = False,
    ) -> None:
        """Read XPlane traces of TensorFlow or JAX: what waits for what, steps, kernels, copies, memory."""
        trace(paths, json=json, perfetto=perfetto, view=view, all_runs=all_runs, save=save, quiet=quiet)


def trace(
    paths: list[Path],
    *,
    json: str | None,
    perfetto: Path | None,
    view: str,
    all_runs: bool,
    save: bool,
    quiet: bool,
) -> None:
    from flatout.trace import analyse

    if view != "overview":
        from flatout.report.terminal import VIEWS, unknown_view

        if view not in VIEWS:
            raise unknown_view(view)  # before a case is kept

    def progress(message: str) -> None:
        if not quiet:
            sys.stderr.write(f"flatout: {message}\n")

    case = analyse(paths, all_runs=all_runs, progress=progress)
    from flatout.causes import diagnose

    case = diagnose(case)
    if save:
        from flatout import store
        from flatout.store import saving  # not before the trace is read: the history's database takes 5 MB

        title = f"trace-{paths[0].resolve().name.split('.')[0] or 'log'}"
        progress(f"kept as {saving.save(case, store.new_directory(title))}")
    if perfetto is not None:
        from flatout.report.perfetto import to_chrome_json

        count = to_chrome_json(paths, perfetto, all_runs=all_runs)
        progress(f"wrote {count:,} events to {perfetto}; open it at https://ui.perfetto.dev")
    if json is not None:
        from flatout.report.json import write

        write(case, json)
        if json == "-":
            return  # standard output gets the JSON only
    from flatout.report.terminal import headline, render

    if quiet:
        typer.echo(headline(case))
        return
    typer.echo(render(case, view).rstrip("\n"))
