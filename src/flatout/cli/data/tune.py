"""`flatout data tune TARGET`: rewrite a pipeline, prove that its elements stay the same, and measure the gain."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flatout.cli._options import command
from flatout.cli.data.inspect import TargetArgument, TargetModuleOption
from flatout.cli.run import PASS_ON, NetworkOption, UnfencedOption
from flatout.model.errors import InvalidOption
from flatout.model.quantities import seconds, size

if TYPE_CHECKING:
    from flatout.data.session import PipelineRequest


@dataclass(frozen=True)
class Options:
    """The options as they are typed."""

    context: typer.Context
    target: TargetArgument
    module: TargetModuleOption = False
    allow: Annotated[
        list[str] | None,
        typer.Option(
            "--allow",
            metavar="KIND",
            help="Also changes of order or randomness (semantic), or of rounding (reassociated).",
        ),
    ] = None
    without: Annotated[list[str] | None, typer.Option("--without", metavar="NAME", help="Leave this rewrite out.")] = (
        None
    )
    memory: Annotated[
        str | None, typer.Option("--memory", metavar="SIZE", help="Largest size of a cache in memory: 500MB, 4GiB.")
    ] = None
    disk: Annotated[
        str | None, typer.Option("--disk", metavar="DIRECTORY", help="Where to put a cache that memory cannot hold.")
    ] = None
    pipeline: Annotated[int, typer.Option("--pipeline", help="Which of several pipelines, from 1.")] = 1
    budget: Annotated[str, typer.Option(metavar="TIME", help="How long it may take: 90s, 10m, 1h.")] = "2m"
    patch: Annotated[
        str | None, typer.Option("--patch", metavar="FILE", help="Write the change of the source as a diff.")
    ] = None
    apply: Annotated[bool, typer.Option("--apply", help="Edit the source in place; backups are kept.")] = False
    json: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Write the case as JSON (- is stdout).")
    ] = None
    unfenced: UnfencedOption = False
    network: NetworkOption = False
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the verdict only.")] = False

    def request(self) -> PipelineRequest:
        from flatout.data.session import PipelineRequest
        from flatout.data.task import PipelineTask
        from flatout.process.fence.means import Leave

        unknown = set(self.allow or ()) - {"semantic", "reassociated"}
        if unknown:
            raise InvalidOption(f"--allow takes semantic or reassociated, not {', '.join(sorted(unknown))}.")
        task = PipelineTask(
            do="tune",
            pipeline=self.pipeline,
            seconds=seconds(self.budget),
            allow=tuple(self.allow or ()),
            without=tuple(self.without or ()),
            memory=size(self.memory, "--memory") if self.memory else None,
            disk=str(Path(self.disk).absolute()) if self.disk else None,
        )
        leave = Leave(self.unfenced, self.network)
        return PipelineRequest(self.target, tuple(self.context.args), self.module, task, seconds(self.budget), leave)


def register(app: typer.Typer) -> None:
    command(app, "tune", Options, tune, PASS_ON)


def tune(options: Options) -> None:
    """Rewrite the pipeline that a program iterates, compare every element, and race both side by side."""
    from flatout.cli._output import show
    from flatout.data import patch, session
    from flatout.store import saving

    request = options.request()
    directory = session.new_directory(request)
    case = session.run(request, directory, options.quiet)
    case = patch.with_patch(case, request, directory, options.quiet)
    saving.save(case, directory)
    show(case, "trials", directory, options.json, options.quiet)
    patch.write(case, Path(options.patch) if options.patch else None, options.apply)
    sys.exit(0)
