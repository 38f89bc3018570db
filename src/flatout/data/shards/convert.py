"""The conversion: plan, write the shards that are not written yet, and complete the set.

    source → plan → shards, on all cores or by a Beam runner → reader, checksums, schema

A pipeline cannot be planned, because its elements come one after the other: see `stream.py`.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from flatout.data.shards import formats, plan, reader, schema, shard, workers
from flatout.data.shards.destination import Destination
from flatout.data.shards.progress import Progress
from flatout.data.shards.shard import Job, Written
from flatout.data.shards.source import Source
from flatout.model.errors import OutputNotWritable, ProcessFailed

DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True)
class ConvertRequest:
    name: str | None = None
    format: str = "tfrecord"
    compression: str = ""
    shard_size: int | None = None
    shuffle: int | None = None
    """A seed; None: the order of the source."""
    skip: bool = False
    force: bool = False
    processes: int | None = None
    quiet: bool = False


@dataclass(frozen=True)
class Outcome:
    schema: schema.Schema
    path: Path
    """The schema's file."""
    seconds: float = 0.0
    resumed: int = 0
    """Shards that an earlier run had finished."""
    complete_before: bool = False


Runner = Callable[[Sequence[Job]], Iterable[tuple[Job, "Written | workers.Died"]]]
"""Writes the shards in another way: with a Beam pipeline."""


def convert(
    source: Source, source_name: str, directory: Path, request: ConvertRequest, runner: Runner | None = None
) -> Outcome:
    """`source_name`: as the user typed it."""
    suffix = formats.suffix(request.format, request.compression)
    name = plan.set_name(request.name, source_name)
    planned = plan.make(source, name, suffix, request.shard_size, request.shuffle)
    destination = Destination(directory, name)
    with explain_write_errors(destination), destination.lock():
        if destination.begin(planned.fingerprint(), request.force):
            destination.remove_working_directory()
            return Outcome(schema.load(destination.schema), destination.schema, complete_before=True)
        jobs = _jobs(planned, destination, request)
        written = {job.file: known for job in jobs if (known := shard.finished(job)) is not None}
        resumed = len(written)
        missing = [job for job in jobs if job.file not in written]
        progress = Progress("converting", *_amount(missing), request.quiet)
        try:
            for job, result in _write_shards(missing, request, progress, runner):
                written[job.file] = expect_written(result, f"writing {job.file}", len(written), len(jobs))
        finally:
            progress.end()
            destination.remove_temporary_files()
        complete = _schema(planned, request, [written[job.file] for job in jobs])
        destination.finish(complete, reader.write(complete))
    return Outcome(complete, destination.schema, progress.seconds, resumed)


def _jobs(planned: plan.Plan, destination: Destination, request: ConvertRequest) -> list[Job]:
    directory, working = str(destination.directory.absolute()), str(destination.working.absolute())
    return [
        Job(planned.file(n), directory, working, planned.part(n), request.format, request.compression, request.skip)
        for n in range(len(planned))
    ]


def _amount(jobs: Sequence[Job]) -> tuple[int, int]:
    return sum(len(job.elements) for job in jobs), sum(int(job.elements.sizes().sum()) for job in jobs)


def _write_shards(
    jobs: Sequence[Job], request: ConvertRequest, progress: Progress, runner: Runner | None
) -> Iterator[tuple[Job, Written | workers.Died]]:
    if runner is not None:
        yield from runner(jobs)
    else:
        yield from workers.run(shard.write, jobs, request.processes or workers.cores(), progress.report)


def expect_written(result: Written | workers.Died, task: str, finished: int, count: int) -> Written:
    if isinstance(result, workers.Died):
        raise ProcessFailed(
            f"The worker {task} {result.reason}, twice. {finished} of {count} shards are finished and kept: run the "
            "same command again, with fewer --workers if memory ran out."
        )
    return result


def _schema(planned: plan.Plan, request: ConvertRequest, written: Sequence[Written]) -> schema.Schema:
    source = planned.source
    return schema.Schema(
        name=planned.name,
        source=source.kind,
        format=request.format,
        compression=request.compression,
        elements=sum(one.shard.elements for one in written),
        digest=f"{sum(one.digest for one in written) % 2**64:016x}",
        features=source.features,
        shards=tuple(one.shard for one in written),
        classes=source.classes,
        skipped=tuple(skipped for one in written for skipped in one.skipped),
        shuffled_by=request.shuffle,
        fingerprint=planned.fingerprint(),
        layout=source.layout,
    )


@contextlib.contextmanager
def explain_write_errors(destination: Destination) -> Iterator[None]:
    """Turn a failed write into an error that says what happened, what is kept, and what to do."""
    try:
        yield
    except OSError as error:
        if error.errno in DISK_FULL:
            raise OutputNotWritable(
                f"There is no space left at {destination.directory}: {error.strerror}. Finished shards are complete "
                "and kept. Free some space and run the same command again: it continues from there."
            ) from None
        what = f"{error.strerror or error}" + (f" ({error.filename})" if error.filename else "")
        raise OutputNotWritable(
            f"Could not write to {destination.directory}: {what}. Finished shards are kept. Name a directory that is "
            "writable."
        ) from None
