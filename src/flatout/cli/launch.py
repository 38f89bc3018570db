"""`flatout launch -n N -- COMMAND`: start the ranks of a distributed program on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from flatout.cli._options import JsonOption, QuietOption, VerboseOption

PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "allow_interspersed_args": False}


def register(app: typer.Typer) -> None:
    @app.command("launch", context_settings=PASS_ON)
    def _command(
        context: typer.Context,
        workers: Annotated[int, typer.Option("-n", "--workers", min=1, metavar="N", help="Workers to start.")] = 2,
        servers: Annotated[
            int, typer.Option("--ps", min=0, metavar="N", help="Parameter servers; with them comes a chief.")
        ] = 0,
        job: Annotated[
            str | None, typer.Option(metavar="DIR", help="Where the ranks meet (below .flatout/jobs by default).")
        ] = None,
        keep_going: Annotated[
            bool, typer.Option("--keep-going", help="Let the other ranks run on where one fails.")
        ] = False,
        pin: Annotated[
            bool, typer.Option("--pin/--no-pin", help="Give each rank processors of its own, where there are enough.")
        ] = True,
        timeout: Annotated[
            str | None, typer.Option(metavar="TIME", help="End all ranks after so long: 90s, 10m, 1h.")
        ] = None,
        json: JsonOption = None,
        quiet: QuietOption = False,
        verbose: VerboseOption = False,
    ) -> None:
        """Start the ranks of a distributed program on this machine, each with its TF_CONFIG.

        `flatout launch -n 2 -- python train.py` runs it; `flatout launch -n 2 -- flatout run train.py` observes all
        ranks as one job. Where a rank fails, the others are ended. The exit code is that of the rank that failed first.
        """
        from flatout.model.errors import InvalidOption
        from flatout.model.quantities import seconds
        from flatout.run.launch import LaunchRequest, launch

        command = tuple(context.args[1:] if context.args[:1] == ["--"] else context.args)
        if not command:
            raise InvalidOption("What to start is missing: `flatout launch -n 2 -- python train.py`.")
        view = "details" if verbose else "overview"
        longest = seconds(timeout, "--timeout") if timeout is not None else None
        raise SystemExit(
            launch(LaunchRequest(command, workers, servers, job, keep_going, pin, longest, json, view, quiet))
        )
