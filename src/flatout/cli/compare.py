"""`flatout compare A B`: what changed between two runs, how certain that is, and what else differs.

`flatout compare --env A --env B PROGRAM`: one program in two environments.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from flatout.cli.run import ModuleOption, NetworkOption, UnfencedOption
from flatout.model.errors import InvalidOption, OutputNotWritable
from flatout.model.quantities import seconds

if TYPE_CHECKING:
    from flatout.versions.request import CompareRequest

EnvOption = Annotated[
    list[str] | None,
    typer.Option(
        "--env",
        metavar="ENV",
        help="An environment for the program, given twice: a Python, a virtual environment, or tensorflow==2.15.",
    ),
]

ThresholdOption = Annotated[
    str | None,
    typer.Option("--max-regression", metavar="SHARE", help="Exit with code 1 above this, for example 5%."),
]
MarkdownOption = Annotated[
    str | None, typer.Option("--markdown", metavar="FILE", help="Write a summary as Markdown (- is stdout).")
]


class _Command(TyperCommand):
    """With --env, everything after PROGRAM is the program's own; without, options may stand anywhere."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if any(word == "--env" or word.startswith("--env=") for word in args):
            ctx.allow_interspersed_args = False
            ctx.ignore_unknown_options = True
        return super().parse_args(ctx, args)


def register(app: typer.Typer) -> None:
    @app.command("compare", cls=_Command)
    def _command(
        what: Annotated[
            list[str],
            typer.Argument(
                metavar="BEFORE AFTER | PROGRAM [ARGS]...",
                help="Two kept cases, each one case, several separated by commas, or a pattern; with --env a program.",
            ),
        ],
        env: EnvOption = None,
        module: ModuleOption = False,
        budget: Annotated[
            str, typer.Option(metavar="TIME", help="With --env: how long it may take: 90s, 10m, 1h.")
        ] = "5m",
        max_regression: ThresholdOption = None,
        json: Annotated[
            str | None, typer.Option("--json", metavar="FILE", help="Write the comparison as JSON (- is stdout).")
        ] = None,
        markdown: MarkdownOption = None,
        width: Annotated[int | None, typer.Option(min=20, help="Columns; those of the terminal by default.")] = None,
        quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the verdict only.")] = False,
        unfenced: UnfencedOption = False,
        network: NetworkOption = False,
    ) -> None:
        """Compare two kept cases: the step and its parts with intervals, and what else differs.

        With two --env, race one program in two environments: two Pythons, virtual environments, or packages as in
        tensorflow==2.15, for which an environment is made and kept.

        Exit codes: 0 no regression, 1 a regression above --max-regression, 2 the comparison cannot be made.
        """
        if env:
            from flatout.process.fence.means import Leave
            from flatout.versions.request import CompareRequest, Subject

            before, after = _two(env)
            if markdown is not None:
                raise InvalidOption("--markdown writes comparisons of cases. With --env, --json has all of it.")
            subject = Subject(what[0], tuple(what[1:]), module, Leave(unfenced, network))
            request = CompareRequest(subject, before, after, seconds(budget), quiet)
            regressed = compare_environments(request, share(max_regression), json, width)
        else:
            if len(what) != 2:
                raise InvalidOption("compare takes two cases, before and after; or --env twice and a program.")
            regressed = compare(what[0], what[1], share(max_regression), json, markdown, width, quiet)
        if regressed:
            raise typer.Exit(1)


def _two(env: list[str]) -> tuple[str, str]:
    if len(env) != 2:
        raise InvalidOption(f"--env is given {len(env)} times. Give it twice: the environments before and after.")
    return env[0], env[1]


def compare_environments(request: CompareRequest, allowed: float | None, json: str | None, width: int | None) -> bool:
    """Whether the program is slower in the second environment by more than is allowed."""
    from flatout.report.terminal.environments import render
    from flatout.versions.session import compare_environments as make

    found = make(request)
    if json is not None:
        write_json(found.to_json(), json)
    if json != "-":
        typer.echo(found.verdict if request.quiet else render(found, width), nl=request.quiet)
    grown = found.step.share.ratio if found.step.share is not None and found.outcome == "slower" else 0.0
    return allowed is not None and grown > allowed


def compare(
    before: str,
    after: str,
    allowed: float | None,
    json: str | None,
    markdown: str | None,
    width: int | None,
    quiet: bool,
) -> bool:
    """Whether the second side is slower by more than is allowed."""
    from flatout.compare.case_selection import runs_of
    from flatout.compare.comparison import compare as make
    from flatout.history.series import repeats_of

    old, new = runs_of(before), runs_of(after)
    found = make(old, new, allowed, repeats_of((*old, *new)))
    if json is not None:
        write_json(found.to_json(), json)
    if markdown is not None:
        from flatout.report.markdown import render as as_markdown

        write(as_markdown(found), markdown)
    if "-" not in (json, markdown):  # standard output gets one thing only
        if quiet:
            typer.echo(found.verdict)
        else:
            from flatout.report.terminal.comparison import render

            typer.echo(render(found, width), nl=False)
    return found.regressed


def share(text: str | None) -> float | None:
    """`5%`, `5 %` or `0.05` → 0.05."""
    if text is None:
        return None
    words = text.strip()
    percent = words.endswith("%")
    try:
        value = float(words.rstrip("% ")) / (100 if percent else 1)
    except ValueError:
        value = -1.0
    if not 0 <= value < (10 if percent else 1):  # a plain 5 is ambiguous
        raise InvalidOption(f"--max-regression takes a share such as 5% or 0.05, not {text!r}.")
    return value


def write(text: str, destination: str) -> None:
    from flatout.store import write_atomically

    if destination == "-":
        typer.echo(text, nl=False)
        return
    try:
        write_atomically(Path(destination), text)
    except OSError as error:
        raise OutputNotWritable(
            f"Could not write to {destination}: {error.strerror or error}. Name a file in a directory that exists."
        ) from None


def write_json(data: object, destination: str) -> None:
    import json

    from flatout.report.json import write_text

    write_text(json.dumps(data, ensure_ascii=False, indent=2, allow_nan=False) + "\n", destination)
