"""`flatout data convert SOURCE DEST`: many small files, or a pipeline, into record shards, and back."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flatout.cli._options import command

if TYPE_CHECKING:
    from flatout.data.shards.convert import ConvertRequest, Outcome
    from flatout.data.shards.source import Source


@dataclass(frozen=True)
class Options:
    """The options as they are typed."""

    source: Annotated[
        str,
        typer.Argument(
            help="A folder of files, a .csv, .jsonl, .npy or .npz file, or a pipeline as `module:function`."
        ),
    ]
    dest: Annotated[Path, typer.Argument(help="The folder to write to.")]
    name: Annotated[str | None, typer.Option(help="The name of the shards; that of the source if left out.")] = None
    kind: Annotated[
        str, typer.Option(metavar="KIND", help="images, audio, csv, json, arrays or files; detected if left out.")
    ] = "auto"
    shard_size: Annotated[
        str | None, typer.Option("--shard-size", metavar="SIZE", help="Largest size of a shard: 128MB if left out.")
    ] = None
    shuffle: Annotated[
        int | None, typer.Option(metavar="SEED", help="Shuffle the elements; the same seed gives the same order.")
    ] = None
    compression: Annotated[str, typer.Option(metavar="gzip", help="Compress the shards.")] = ""
    format: Annotated[str, typer.Option("--format", help="tfrecord or arrayrecord.")] = "tfrecord"
    on_error: Annotated[
        str, typer.Option("--on-error", metavar="fail|skip", help="What to do with a corrupt element.")
    ] = "fail"
    verify: Annotated[
        bool, typer.Option("--verify", help="Read source and shards again: is every element there, once?")
    ] = False
    extract: Annotated[
        bool, typer.Option("--extract", help="The other way: restore the files in DEST from the shards in SOURCE.")
    ] = False
    keep_text: Annotated[
        bool, typer.Option("--keep-text", help="Store the text of each CSV or JSON row too, so that --extract works.")
    ] = False
    float64: Annotated[bool, typer.Option("--float64", help="Store CSV and JSON numbers as doubles.")] = False
    header: Annotated[bool, typer.Option("--header/--no-header", help="CSV: the first row names the columns.")] = True
    workers: Annotated[
        int | None, typer.Option("--workers", "--processes", min=1, help="Processes; one per core by default.")
    ] = None
    runner: Annotated[
        str | None,
        typer.Option(metavar="RUNNER", help="Convert as an Apache Beam pipeline: DirectRunner, FlinkRunner, …"),
    ] = None
    runner_option: Annotated[
        list[str] | None, typer.Option("--runner-option", metavar="NAME=VALUE", help="Passed to Beam (repeatable).")
    ] = None
    force: Annotated[bool, typer.Option("--force", help="Overwrite shards of this name.")] = False
    json: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Write the case as JSON (- is stdout).")
    ] = None
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress; errors only.")] = False

    def request(self) -> ConvertRequest:
        from flatout.data.shards.convert import ConvertRequest
        from flatout.model.errors import InvalidOption
        from flatout.model.quantities import size

        if self.on_error not in ("fail", "skip"):
            raise InvalidOption(f"--on-error is `fail` or `skip`, not {self.on_error!r}.")
        return ConvertRequest(
            name=self.name,
            format=self.format,
            compression=self.compression,
            shard_size=None if self.shard_size is None else size(self.shard_size, "--shard-size"),
            shuffle=self.shuffle,
            skip=self.on_error == "skip",
            force=self.force,
            processes=self.workers,
            quiet=self.quiet or self.json == "-",
        )


def register(app: typer.Typer) -> None:
    command(app, "convert", Options, convert)


def convert(options: Options) -> None:
    """Store many small files, or a pipeline, as a few large record shards, with a reader; --extract restores them.

    A conversion that was killed continues where it stopped when the same command is given again, and ends with the same
    bytes. A file with a final name is always complete.
    """
    request = options.request()
    try:
        if options.extract:
            _extract(options, request)
            return
        source = None if _is_pipeline(options.source) else _open_source(options)
        outcome = _convert(source, options, request)
        verified = _verify(outcome, source, request) if options.verify else None
    except KeyboardInterrupt:
        sys.stderr.write("\nflatout: stopped. Finished shards are kept; the same command continues from there.\n")
        raise SystemExit(130) from None
    _show(outcome, source, verified, options, request)


def _is_pipeline(source: str) -> bool:
    return ":" in source and not Path(source).exists()


def _open_source(options: Options) -> Source:
    from flatout.data.shards.sources.detection import RowOptions, open_source
    from flatout.model.errors import InvalidOption

    source, destination = Path(options.source).resolve(), options.dest.resolve()
    if source.is_dir() and source in (destination, *destination.parents):
        raise InvalidOption(
            f"{options.dest} is inside {options.source}: the shards would be among the files. Name a folder outside."
        )
    rows = RowOptions(options.header, options.float64, options.keep_text)
    return open_source(options.source, options.kind, rows)


def _convert(source: Source | None, options: Options, request: ConvertRequest) -> Outcome:
    from flatout.data.shards import beam, stream
    from flatout.data.shards import convert as conversion

    if source is None:
        return stream.convert(options.source, options.dest, request, options.runner)
    runner = None if options.runner is None else beam.runner(options.runner, options.runner_option or [])
    return conversion.convert(source, options.source, options.dest, request, runner)


def _verify(outcome: Outcome, source: Source | None, request: ConvertRequest) -> str:
    from flatout.data.shards.verify import verify

    return verify(outcome.schema, outcome.path.parent, source, request.processes, request.quiet)


def _extract(options: Options, request: ConvertRequest) -> None:
    from flatout.data.shards import schema
    from flatout.data.shards.extract import extract

    path = schema.find(Path(options.source))
    count = extract(schema.load(path), path.parent, options.dest, request.processes, request.quiet)
    if not request.quiet:
        typer.echo(f"{count:,} elements restored to {options.dest}")


def _show(
    outcome: Outcome, source: Source | None, verified: str | None, options: Options, request: ConvertRequest
) -> None:
    from flatout.data.shards import summary

    if options.json is not None:
        from flatout.report import json as case_json

        case_json.write(summary.as_case(outcome, verified), options.json)
    if not request.quiet:
        typer.echo(summary.as_text(outcome, () if source is None else source.notes, verified))
