"""`flatout gate`: fail a build that made a program slower."""

from __future__ import annotations

from typing import Annotated

import typer

from flatout.cli.compare import MarkdownOption


def register(app: typer.Typer) -> None:
    @app.command("gate")
    def _command(
        baseline: Annotated[str, typer.Option(metavar="REF", help="A branch, tag or commit to compare with.")] = "main",
        max_regression: Annotated[
            str, typer.Option("--max-regression", metavar="SHARE", help="The largest slowdown that is accepted.")
        ] = "5%",
        program: Annotated[
            list[str] | None,
            typer.Option("--program", metavar="NAME", help="Compare this program only (may be repeated)."),
        ] = None,
        allow_missing: Annotated[
            bool, typer.Option("--allow-missing", help="Exit with 0 if there is no baseline to compare with.")
        ] = False,
        json: Annotated[
            str | None, typer.Option("--json", metavar="FILE", help="Write the result as JSON (- is stdout).")
        ] = None,
        markdown: MarkdownOption = None,
        quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the verdict only.")] = False,
    ) -> None:
        """Compare the newest runs in the history with those of a baseline, for continuous integration.

        Exit codes: 0 no regression, 1 a regression, 2 an error, 3 no baseline in the history.
        In a GitHub workflow the result is also written to the summary of the step.
        """
        code = gate(baseline, max_regression, program or [], json, markdown, quiet)
        if code and not (allow_missing and code == 3):
            raise typer.Exit(code)


def gate(
    baseline: str, max_regression: str, programs: list[str], json: str | None, markdown: str | None, quiet: bool
) -> int:
    from flatout.cli.compare import share, write, write_json
    from flatout.history.gate import add_to_summary, is_named, judge
    from flatout.history.series import all_series
    from flatout.model.errors import CaseNotFound

    allowed = share(max_regression)
    assert allowed is not None
    known = all_series()
    missing = [name for name in programs if not any(is_named(one, (name,)) for one in known)]
    if missing or not known:  # a name that is mistyped must not pass
        named = " of " + ", ".join(missing) if missing else ""
        raise CaseNotFound(f"The history has no runs{named} to judge. Run `flatout run PROGRAM` here first.")
    found = judge(known, baseline, allowed, programs)
    add_to_summary(found.to_markdown())
    if json is not None:
        write_json(found.to_json(), json)
    if markdown is not None:
        write(found.to_markdown(), markdown)
    if "-" not in (json, markdown):
        typer.echo(found.verdict)
        for one in found.programs:
            if one.comparison is None:
                typer.echo(f"\n{one.why}")
            elif not quiet:
                from flatout.report.terminal.comparison import render

                typer.echo("\n" + render(one.comparison), nl=False)
    return found.code
