"""`flatout data inspect TARGET`: what each stage of a pipeline costs, and which one limits it."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from flatout.cli.run import PASS_ON, NetworkOption, UnfencedOption, no_option

TargetArgument = Annotated[
    str,
    typer.Argument(
        metavar="TARGET [ARGS]...",
        help="A program (script.py) and its arguments, or a function that makes a dataset (package.module:function).",
        callback=no_option,
    ),
]

TargetModuleOption = Annotated[bool, typer.Option("-m", "--module", help="TARGET is a module, as with python -m.")]


def register(app: typer.Typer) -> None:
    @app.command("inspect", context_settings=PASS_ON)
    def _command(
        context: typer.Context,
        target: TargetArgument,
        module: TargetModuleOption = False,
        needs: Annotated[
            float | None, typer.Option("--needs", metavar="RATE", help="Batches a second that the trainer takes.")
        ] = None,
        json: Annotated[
            str | None, typer.Option("--json", metavar="FILE", help="Write the case as JSON (- is stdout).")
        ] = None,
        unfenced: UnfencedOption = False,
        network: NetworkOption = False,
        quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the verdict only.")] = False,
    ) -> None:
        """Measure every stage of the pipelines that a program iterates, and find the one that limits each.

        The program runs in a child process until its steps are known. None of its files are written.
        """
        from flatout.cli._output import show
        from flatout.data import session
        from flatout.data.task import PipelineTask
        from flatout.process.fence.means import Leave
        from flatout.store import saving

        task = PipelineTask(do="inspect", needs=needs)
        leave = Leave(unfenced, network)
        request = session.PipelineRequest(target, tuple(context.args), module, task, 60.0, leave)
        directory = session.new_directory(request)
        case = session.run(request, directory, quiet)
        saving.save(case, directory)
        show(case, "stages", directory, json, quiet)
        sys.exit(0)
