"""`flatout bisect --good A --bad B PROGRAM`: the release, or the package, that made a program slower."""

from __future__ import annotations

from typing import Annotated

import typer

from flatout.cli._options import QuietOption
from flatout.cli.run import PASS_ON, ModuleOption, NetworkOption, ProgramArgument, UnfencedOption
from flatout.model.quantities import seconds

NOT_SLOWER = 3


def register(app: typer.Typer) -> None:
    @app.command("bisect", context_settings=PASS_ON)
    def _command(
        context: typer.Context,
        program: ProgramArgument,
        good: Annotated[
            str,
            typer.Option("--good", metavar="ENV", help="Packages that are fast: tensorflow==2.15, or a list of them."),
        ],
        bad: Annotated[str, typer.Option("--bad", metavar="ENV", help="Packages that are slow, in the same form.")],
        module: ModuleOption = False,
        versions: Annotated[
            str | None,
            typer.Option("--versions", metavar="LIST", help="The releases to try: 2.16.1,2.17.0 (all by default)."),
        ] = None,
        budget: Annotated[str, typer.Option(metavar="TIME", help="How long each comparison may take: 90s, 5m.")] = "2m",
        json: Annotated[
            str | None, typer.Option("--json", metavar="FILE", help="Write the result as JSON (- is stdout).")
        ] = None,
        unfenced: UnfencedOption = False,
        network: NetworkOption = False,
        quiet: QuietOption = False,
    ) -> None:
        """Find the release of a package, or the package of a lock file, that made a program slower.

        An environment is made for each that is tried, and kept. ENV is a list of packages or a file with one
        (requirements.txt). Exit codes: 0 found, 2 the options cannot be used, 3 it is not slower or cannot be measured.
        """
        from flatout.process.fence.means import Leave
        from flatout.report.terminal.bisection import render
        from flatout.versions.request import Subject
        from flatout.versions.search import BisectRequest, bisect

        named = tuple(one.strip() for one in versions.split(",")) if versions else ()
        subject = Subject(program, tuple(context.args), module, Leave(unfenced, network))
        found = bisect(BisectRequest(subject, good, bad, named, seconds(budget), quiet))
        if json is not None:
            from flatout.cli.compare import write_json

            write_json(found.to_json(), json)
        if json != "-":
            typer.echo(found.verdict if quiet else render(found), nl=quiet)
        if found.outcome != "found":
            raise typer.Exit(NOT_SLOWER)
