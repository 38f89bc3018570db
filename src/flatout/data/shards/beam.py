"""The conversion as an Apache Beam pipeline, for several machines.

The unit of work is the shard, as on one machine, and the code that writes it is the same, so that a shard has the same
bytes whichever worker writes it. Beam distributes the shards; its runner handles machines and retries. All workers must
reach source and destination under the same path.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from flatout.data.shards import shard, workers
from flatout.data.shards.convert import Runner
from flatout.data.shards.shard import Job, Written
from flatout.model.errors import ElementUnreadable, FlatoutError, ProcessFailed, ToolMissing

FAILED = ".failed"


def runner(name: str, options: Sequence[str]) -> Runner:
    """`options` are `name=value` and are passed to Beam."""
    try:
        import apache_beam  # noqa: F401
    except ImportError:
        raise ToolMissing(
            'Converting with a runner needs Apache Beam: pip install "flatout[beam]". On one machine it is not needed: '
            "leave --runner out."
        ) from None

    def run(jobs: Sequence[Job]) -> Iterator[tuple[Job, Written | workers.Died]]:
        if jobs:
            _run(jobs, name, [f"--{option.removeprefix('--')}" for option in options])
        for job in jobs:
            yield job, _result(job)

    return run


def _run(jobs: Sequence[Job], name: str, flags: Sequence[str]) -> None:
    import apache_beam as beam
    from apache_beam.options.pipeline_options import PipelineOptions

    try:
        with beam.Pipeline(runner=name, options=PipelineOptions(list(flags))) as pipeline:
            written = pipeline | "Shards" >> beam.Create(list(jobs), reshuffle=True)
            written | "Write" >> beam.Map(write)
    except FlatoutError:
        raise
    except Exception as error:  # whatever a runner raises
        reason = str(error).strip().split("\n")[-1][:500]
        raise ProcessFailed(
            f"The runner {name} failed: {reason or type(error).__name__}. Finished shards are kept; run it again."
        ) from None


def write(job: Job) -> str:
    """Write one shard, in a worker of Beam. An element that cannot be read is written to a file: a runner would try it
    again and again, and report a traceback."""
    note = Path(job.working, job.file + FAILED)
    note.unlink(missing_ok=True)
    try:
        if shard.finished(job) is None:
            shard.write(job)
    except FlatoutError as error:
        note.write_text(str(error), encoding="utf-8", errors="backslashreplace")
    return job.file


def _result(job: Job) -> Written | workers.Died:
    note = Path(job.working, job.file + FAILED)
    if note.exists():
        text = note.read_text(encoding="utf-8")
        note.unlink()
        raise ElementUnreadable(text)
    written = shard.finished(job)
    return written if written is not None else workers.Died("left no file")
