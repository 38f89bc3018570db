"""`flatout data tune TARGET`: rewrite a pipeline, prove that its elements stay the same, and say what it gives."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from flatout.cli.data.inspect import TargetArgument
from flatout.cli.run import PASS_ON
from flatout.cli.tune import seconds
from flatout.model.errors import InvalidOption

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def register(app: typer.Typer) -> None:
    @app.command("tune", context_settings=PASS_ON)
    def _command(
        context: typer.Context,
        target: TargetArgument,
        module: Annotated[bool, typer.Option("-m", help="TARGET is a module to run, as in `python -m`.")] = False,
        allow: Annotated[
            list[str] | None,
            typer.Option("--allow", metavar="KIND", help="Also make semantic or reassociated changes."),
        ] = None,
        without: Annotated[
            list[str] | None, typer.Option("--without", metavar="NAME", help="Leave this rewrite out.")
        ] = None,
        memory: Annotated[
            str | None, typer.Option("--memory", metavar="SIZE", help="What a cache may hold: 500M, 4G.")
        ] = None,
        disk: Annotated[
            str | None, typer.Option("--disk", metavar="DIRECTORY", help="Keep a cache here that memory cannot hold.")
        ] = None,
        pipeline: Annotated[int, typer.Option("--pipeline", help="Which of several pipelines, from 1.")] = 1,
        budget: Annotated[str, typer.Option(metavar="TIME", help="How long it may take: 90s, 10m, 1h.")] = "2m",
        patch: Annotated[
            str | None, typer.Option("--patch", metavar="FILE", help="Write the change of the source as a diff.")
        ] = None,
        apply: Annotated[bool, typer.Option("--apply", help="Edit the source in place; backups are kept.")] = False,
        json: Annotated[
            str | None, typer.Option("--json", metavar="FILE", help="Write the case as JSON (- is stdout).")
        ] = None,
        quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the verdict only.")] = False,
    ) -> None:
        """Rewrite the pipeline that a program iterates, compare every element, and race both side by side."""
        from flatout.cli.data.output import show
        from flatout.data import patching, session
        from flatout.data.task import PipelineTask
        from flatout.store import saving

        unknown = set(allow or ()) - {"semantic", "reassociated"}
        if unknown:
            raise InvalidOption(f"--allow takes semantic or reassociated, not {', '.join(sorted(unknown))}.")
        task = PipelineTask(
            do="tune",
            pipeline=pipeline,
            seconds=seconds(budget),
            allow=tuple(allow or ()),
            without=tuple(without or ()),
            memory=size(memory) if memory else None,
            disk=str(Path(disk).absolute()) if disk else None,
        )
        asked = session.Asked(target, tuple(context.args), module, task, seconds(budget))
        directory = session.new_directory(target)
        case = patching.with_patch(session.run(asked, directory, quiet), asked, directory, quiet)
        saving.save(case, directory)
        show(case, "trials", directory, json, quiet)
        patching.written(case, Path(patch) if patch else None, apply)
        sys.exit(0)


def size(text: str) -> int:
    """`500M`, `4G`, `1.5GiB`, or plain bytes."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if match is None:
        raise InvalidOption(f"--memory takes a size such as 500M or 4G, not {text!r}.")
    return int(float(match[1]) * UNITS[match[2].upper()])
