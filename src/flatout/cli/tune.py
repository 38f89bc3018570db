"""`flatout tune PROGRAM [ARGS]`: try the cures on the program itself, and prove their effect."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from flatout.cli._options import QuietOption, VerboseOption
from flatout.cli.run import PASS_ON, ModuleOption, NetworkOption, ProgramArgument, UnfencedOption
from flatout.model.quantities import seconds


def register(app: typer.Typer) -> None:
    @app.command("tune", context_settings=PASS_ON)
    def _command(
        context: typer.Context,
        program: ProgramArgument,
        module: ModuleOption = False,
        lever: Annotated[
            list[str] | None,
            typer.Option("--lever", metavar="NAME", help="Try this change only, such as xla (may be repeated)."),
        ] = None,
        without: Annotated[
            list[str] | None, typer.Option("--without", metavar="NAME", help="Leave this change out.")
        ] = None,
        allow: Annotated[
            list[str] | None,
            typer.Option(
                "--allow",
                metavar="KIND",
                help="Changes of lower precision (precision), or of the training itself (semantic), may win too.",
            ),
        ] = None,
        budget: Annotated[
            str | None,
            typer.Option(metavar="TIME", help="How long it may take: 90s, 10m, 1h (8m, more if it starts slowly)."),
        ] = None,
        patch: Annotated[
            str | None, typer.Option("--patch", metavar="FILE", help="Write the change of the source as a diff.")
        ] = None,
        branch: Annotated[
            str | None, typer.Option("--branch", metavar="NAME", help="Commit the patch on a new branch of git.")
        ] = None,
        apply: Annotated[bool, typer.Option("--apply", help="Edit the source in place; backups are kept.")] = False,
        resume: Annotated[bool, typer.Option("--resume", help="Go on with a tune that was cut short.")] = False,
        json: Annotated[
            str | None, typer.Option("--json", metavar="FILE", help="Write the case as JSON (- is stdout).")
        ] = None,
        prove: Annotated[
            bool,
            typer.Option("--prove", help="Follow program and cure over the whole training, as long as it takes."),
        ] = False,
        on: Annotated[
            str | None,
            typer.Option("--on", metavar="CLUSTER", help="Try changes on the nodes of a cluster: ray, ray:HOST:PORT."),
        ] = None,
        unfenced: UnfencedOption = False,
        network: NetworkOption = False,
        quiet: QuietOption = False,
        verbose: VerboseOption = False,
    ) -> None:
        """Try cures on the unmodified program, side by side, and say what won, by how much, and at what price.

        The program is started several times with changes injected from outside. No trial writes any of
        its files, or uses the network.
        """
        from flatout.process import termination
        from flatout.process.fence.means import Leave
        from flatout.tune.request import TuneRequest
        from flatout.tune.session import tune

        request = TuneRequest(
            program,
            tuple(context.args),
            module=module,
            levers=tuple(lever or ()),
            without=tuple(without or ()),
            allow=tuple(allow or ()),
            budget=seconds(budget) if budget is not None else None,
            resume=resume,
            json=json,
            quiet=quiet,
            verbose=verbose,
            patch=Path(patch) if patch else None,
            branch=branch,
            apply=apply,
            prove=prove,
            on=on,
            leave=Leave(unfenced, network),
        )
        with termination.as_interrupt():
            code = tune(request)
        sys.exit(code)
