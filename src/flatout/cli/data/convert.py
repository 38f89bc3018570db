"""`flatout data convert SOURCE DEST`: many small files, or a pipeline, into record shards, and back."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from flatout.data.shards.convert import Outcome, Wishes
    from flatout.data.shards.sources import Source

SourceArgument = Annotated[
    str,
    typer.Argument(help="A folder of files, a .csv, .jsonl, .npy or .npz file, or a pipeline as `module:function`."),
]
DestinationArgument = Annotated[Path, typer.Argument(help="The folder to write to.")]


def register(app: typer.Typer) -> None:
    app.command("convert")(convert)


def convert(
    source: SourceArgument,
    dest: DestinationArgument,
    name: Annotated[str | None, typer.Option(help="What the shards are called; the source's name if left out.")] = None,
    kind: Annotated[
        str, typer.Option(metavar="KIND", help="images, audio, csv, json, arrays or files; seen by itself if left out.")
    ] = "auto",
    shard_size: Annotated[
        str | None, typer.Option("--shard-size", metavar="SIZE", help="No shard beyond it: 128MB if left out.")
    ] = None,
    shuffle: Annotated[
        int | None, typer.Option(metavar="SEED", help="Shuffle the elements; the same seed gives the same order.")
    ] = None,
    compression: Annotated[str, typer.Option(metavar="gzip", help="Compress the shards.")] = "",
    format: Annotated[str, typer.Option("--format", help="tfrecord or arrayrecord.")] = "tfrecord",
    on_error: Annotated[
        str, typer.Option("--on-error", metavar="fail|skip", help="What a corrupt element does.")
    ] = "fail",
    verify: Annotated[
        bool, typer.Option("--verify", help="Read source and shards again: is every element there, once?")
    ] = False,
    extract: Annotated[
        bool, typer.Option("--extract", help="The way back: SOURCE holds shards, DEST the files.")
    ] = False,
    keep_text: Annotated[
        bool, typer.Option("--keep-text", help="Keep the text of each CSV or JSON row too, so that --extract works.")
    ] = False,
    float64: Annotated[bool, typer.Option("--float64", help="Keep CSV and JSON numbers as doubles.")] = False,
    header: Annotated[bool, typer.Option("--header/--no-header", help="CSV: the first row names the columns.")] = True,
    processes: Annotated[int | None, typer.Option(min=1, help="One per core if left out.")] = None,
    runner: Annotated[
        str | None,
        typer.Option(metavar="RUNNER", help="Convert as an Apache Beam pipeline: DirectRunner, FlinkRunner, …"),
    ] = None,
    runner_option: Annotated[
        list[str] | None, typer.Option("--runner-option", metavar="NAME=VALUE", help="Passed on to Beam (repeatable).")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite what stands under this name.")] = False,
    json: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Write the case as JSON (- is stdout).")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress; errors only.")] = False,
) -> None:
    """Store many small files, or a pipeline, as a few large record shards, with a reader; --extract goes back.

    A conversion that was killed goes on where it stopped when the same command is given again, and ends with the same
    bytes. Nothing half-written ever bears a final name.
    """
    from flatout.data.shards import plan
    from flatout.data.shards.convert import Wishes
    from flatout.model.errors import InvalidOption

    if on_error not in ("fail", "skip"):
        raise InvalidOption(f"--on-error is `fail` or `skip`, not {on_error!r}.")
    wishes = Wishes(
        name=name,
        format=format,
        compression=compression,
        shard_size=None if shard_size is None else plan.size(shard_size),
        shuffle=shuffle,
        skip=on_error == "skip",
        force=force,
        processes=processes,
        quiet=quiet or json == "-",
    )
    try:
        if extract:
            _extracted(source, dest, wishes)
            return
        opened = None if _is_pipeline(source) else _opened(source, dest, kind, header, float64, keep_text)
        outcome = _converted(opened, source, dest, wishes, runner, runner_option or [])
        verified = _verified(outcome, opened, wishes) if verify else None
    except KeyboardInterrupt:
        sys.stderr.write("\nflatout: stopped. Finished shards are kept; the same command goes on from there.\n")
        raise SystemExit(130) from None
    _tell(outcome, opened, verified, wishes, json)


def _is_pipeline(source: str) -> bool:
    return ":" in source and not Path(source).exists()


def _opened(source: str, dest: Path, kind: str, header: bool, float64: bool, keep_text: bool) -> Source:
    from flatout.data.shards.sources.opening import Rows, opened
    from flatout.model.errors import InvalidOption

    inside = Path(source).resolve()
    if inside.is_dir() and inside in (dest.resolve(), *dest.resolve().parents):
        raise InvalidOption(
            f"{dest} lies inside {source}: the shards would be among the files. Name a folder beside it."
        )
    return opened(source, kind, Rows(header, float64, keep_text))


def _converted(
    opened: Source | None, given: str, dest: Path, wishes: Wishes, runner: str | None, options: list[str]
) -> Outcome:
    from flatout.data.shards.convert import convert as converted

    if opened is None:
        from flatout.data.shards.stream import convert as streamed

        return streamed(given, dest, wishes, runner)
    if runner is None:
        return converted(opened, given, dest, wishes)
    from flatout.data.shards import beam

    return converted(opened, given, dest, wishes, beam.runner(runner, options))


def _verified(outcome: Outcome, opened: Source | None, wishes: Wishes) -> str:
    from flatout.data.shards.verify import verify

    return verify(outcome.schema, outcome.path.parent, opened, wishes.processes, wishes.quiet)


def _extracted(source: str, dest: Path, wishes: Wishes) -> None:
    from flatout.data.shards import schema
    from flatout.data.shards.extract import extract

    path = schema.find(Path(source))
    count = extract(schema.load(path), path.parent, dest, wishes.processes, wishes.quiet)
    if not wishes.quiet:
        typer.echo(f"{count:,} elements given back to {dest}")


def _tell(outcome: Outcome, opened: Source | None, verified: str | None, wishes: Wishes, json: str | None) -> None:
    from flatout.data.shards import telling

    if json is not None:
        from flatout.report import json as case_json

        case_json.write(telling.as_case(outcome, verified), json)
    if not wishes.quiet:
        typer.echo(telling.told(outcome, () if opened is None else opened.notes, verified))
