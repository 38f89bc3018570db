"""The conversion: plan, write what is not written yet, and seal the set.

    source → plan → shards, on all cores or by a Beam runner → reader, checksums, schema

A pipeline has no plan: its elements come one after the other (`stream.py`).
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from flatout.data.shards import containers, place, plan, reader, schema, shard, workers
from flatout.data.shards.progress import Progress
from flatout.data.shards.shard import Job, Written
from flatout.data.shards.sources import Source
from flatout.model.errors import OutputNotWritable, ProcessFailed

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True)
class Wishes:
    name: str | None = None
    format: str = "tfrecord"
    compression: str = ""
    shard_size: int | None = None
    shuffle: int | None = None
    """A seed, or None for the order of the source."""
    skip: bool = False
    force: bool = False
    processes: int | None = None
    quiet: bool = False


@dataclass(frozen=True)
class Outcome:
    schema: schema.Schema
    path: Path
    """Of the schema."""
    seconds: float = 0.0
    resumed: int = 0
    """Shards that were finished before."""
    complete_before: bool = False


Runner = Callable[[Sequence[Job]], Iterable[tuple[Job, "Written | workers.Died"]]]
"""Writes the shards somewhere else: a Beam pipeline."""


def convert(source: Source, given: str, destination: Path, wishes: Wishes, runner: Runner | None = None) -> Outcome:
    """`given` is the source as the user named it."""
    suffix = containers.suffix(wishes.format, wishes.compression)
    name = plan.set_name(wishes.name, given)
    planned = plan.make(source, name, suffix, wishes.shard_size, wishes.shuffle)
    there = place.Place(destination, name)
    with writable(there), there.held():
        if there.begin(planned.fingerprint(), wishes.force):
            there.leave()
            return Outcome(schema.load(there.schema), there.schema, complete_before=True)
        jobs = _jobs(planned, there, wishes)
        written = {job.file: known for job in jobs if (known := shard.done(job)) is not None}
        resumed = len(written)
        missing = [job for job in jobs if job.file not in written]
        progress = Progress("converting", *_amount(missing), wishes.quiet)
        try:
            for job, result in _written(missing, wishes, progress, runner):
                written[job.file] = expect_alive(result, f"writing {job.file}", len(written), len(jobs))
        finally:
            progress.end()
            there.tidy()
        complete = _schema(planned, wishes, [written[job.file] for job in jobs])
        there.finish(complete, reader.write(complete))
    return Outcome(complete, there.schema, progress.seconds, resumed)


def _jobs(planned: plan.Plan, there: place.Place, wishes: Wishes) -> list[Job]:
    directory, working = str(there.directory.absolute()), str(there.working.absolute())
    return [
        Job(planned.file(n), directory, working, planned.part(n), wishes.format, wishes.compression, wishes.skip)
        for n in range(len(planned))
    ]


def _amount(jobs: Sequence[Job]) -> tuple[int, int]:
    return sum(len(job.elements) for job in jobs), sum(int(job.elements.sizes().sum()) for job in jobs)


def _written(
    jobs: Sequence[Job], wishes: Wishes, progress: Progress, runner: Runner | None
) -> Iterator[tuple[Job, Written | workers.Died]]:
    if runner is not None:
        yield from runner(jobs)
    else:
        yield from workers.run(shard.write, jobs, wishes.processes or workers.cores(), progress.tell)


def expect_alive(result: Written | workers.Died, what: str, finished: int, count: int) -> Written:
    if isinstance(result, workers.Died):
        raise ProcessFailed(
            f"The worker {what} {result.reason}, twice. {finished} of {count} shards are finished and kept: run the "
            "same command again, with fewer --processes if memory was short."
        )
    return result


def _schema(planned: plan.Plan, wishes: Wishes, written: Sequence[Written]) -> schema.Schema:
    source = planned.source
    return schema.Schema(
        name=planned.name,
        source=source.kind,
        format=wishes.format,
        compression=wishes.compression,
        elements=sum(one.shard.elements for one in written),
        digest=f"{sum(one.digest for one in written) % 2**64:016x}",
        features=source.features,
        shards=tuple(one.shard for one in written),
        classes=source.classes,
        skipped=tuple(skipped for one in written for skipped in one.skipped),
        shuffled_by=wishes.shuffle,
        fingerprint=planned.fingerprint(),
        layout=source.layout,
    )


@contextlib.contextmanager
def writable(there: place.Place) -> Iterator[None]:
    """Turns a failure to write into what happened, what is safe, and what to do."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise OutputNotWritable(
                f"There is no room left at {there.directory}: {error.strerror}. Finished shards are whole and kept; "
                "nothing half-written bears a final name. Make room and run the same command again: it goes on there."
            ) from None
        what = f"{error.strerror or error}" + (f" ({error.filename})" if error.filename else "")
        raise OutputNotWritable(
            f"Could not write to {there.directory}: {what}. Finished shards are kept. Name a folder that may be "
            "written."
        ) from None
