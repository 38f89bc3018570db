"""`flatout run PROGRAM [ARGS]`: run a program once, observed, and show where its time goes."""

from __future__ import annotations

from typing import Annotated

import typer

from flatout.cli._options import QuietOption, VerboseOption

PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "allow_interspersed_args": False}
"""Everything after PROGRAM is the program's own, options included."""


def no_option(context: typer.Context, value: str) -> str:
    """Refuse an option that does not exist: as everything else is the program's own, it would be taken for PROGRAM."""
    if value.startswith("-") and not context.resilient_parsing:
        from flatout.cli._usage import near, options_of
        from flatout.model.errors import InvalidOption

        hint = near(value.partition("=")[0], options_of(context.command))
        text = f"`{context.command_path}` has no option {value}.{hint} Options of the program come after its name."
        raise InvalidOption(text)
    return value


ProgramArgument = Annotated[
    str,
    typer.Argument(
        metavar="PROGRAM [ARGS]...",
        help="A Python file, a notebook, a module with -m, or a command that starts Python; and its own arguments.",
        callback=no_option,
    ),
]
UnfencedOption = Annotated[
    bool,
    typer.Option("--unfenced", help="Let trials write by ways that flatout cannot redirect, such as other programs."),
]
NetworkOption = Annotated[bool, typer.Option("--network", help="Let trials use the network.")]
ModuleOption = Annotated[bool, typer.Option("-m", "--module", help="PROGRAM is a module, as with python -m.")]


def register(app: typer.Typer) -> None:
    @app.command("run", context_settings=PASS_ON)
    def _command(
        context: typer.Context,
        program: ProgramArgument,
        module: ModuleOption = False,
        steps: Annotated[
            int | None, typer.Option(min=1, metavar="N", help="Trace N steps (chosen automatically by default).")
        ] = None,
        window: Annotated[
            str | None, typer.Option(metavar="FIRST:LAST", help="Trace from step FIRST to step LAST, counted from 0.")
        ] = None,
        trace: Annotated[
            bool | None,
            typer.Option("--trace/--no-trace", help="Take a trace of some steps. Default: not of a job's ranks."),
        ] = None,
        observe_for: Annotated[
            str | None,
            typer.Option("--for", metavar="TIME", help="Observe for 90s, 10m or 1h, then let the program go on."),
        ] = None,
        flame: Annotated[bool, typer.Option("--flame", help="Also draw a CPU flame graph (needs py-spy).")] = False,
        nsys: Annotated[
            bool, typer.Option("--nsys", help="Run under Nsight Systems, with NVTX ranges for steps.")
        ] = False,
        levers: Annotated[
            str | None,
            typer.Option("--with", metavar="LEVERS", help="Inject levers: xla,cache or @tuned (the last tune's)."),
        ] = None,
        json: Annotated[
            str | None, typer.Option("--json", metavar="FILE", help="Write the case as JSON (- is stdout).")
        ] = None,
        job: Annotated[
            str | None,
            typer.Option(
                metavar="DIR",
                help="This is one rank of a distributed job. All ranks share DIR, where they become one case.",
            ),
        ] = None,
        view: Annotated[str, typer.Option("--view", "-v", help="The view to print at the end.")] = "overview",
        quiet: QuietOption = False,
        verbose: VerboseOption = False,
    ) -> None:
        """Run a program unchanged, observe it, and print where each step's time goes and why.

        The program's output, arguments, exit code and signals stay its own. flatout writes to stderr, after the program
        has ended.
        """
        from flatout.model.quantities import seconds
        from flatout.run.request import RunRequest
        from flatout.run.session import run, window_of

        first, wanted = window_of(window, steps)
        request = RunRequest(
            program=program,
            arguments=tuple(context.args),
            module=module,
            trace=trace,
            observe_for=seconds(observe_for, "--for") if observe_for is not None else None,
            window_start=first,
            window_steps=wanted,
            flame=flame,
            nsys=nsys,
            levers=tuple(levers.split(",")) if levers else (),
            json=json,
            view="details" if verbose else view,
            quiet=quiet,
            job=job,
        )
        from flatout.trial.launcher import leave_like

        leave_like(run(request))
