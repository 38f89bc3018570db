"""The same conversion as an Apache Beam pipeline, for more than one machine.

The unit of work is the shard, as on one machine, and the code that writes it is the same: a shard comes out the same to
the byte whoever writes it. So Beam hands out shards, and its runner sees to machines and retries. Source and
destination must be reachable from all workers under the same path.
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
    """`options` are `name=value`, passed on to Beam."""
    try:
        import apache_beam  # noqa: F401
    except ImportError:
        raise ToolMissing(
            'Converting with a runner needs Apache Beam: pip install "flatout[beam]". One machine needs none: leave '
            "--runner out."
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
        words = str(error).strip().split("\n")[-1][:500]
        raise ProcessFailed(
            f"The runner {name} failed: {words or type(error).__name__}. Finished shards are kept; run it again."
        ) from None


def write(job: Job) -> str:
    """One shard, by a worker of Beam. What is wrong with an element is written down for the one who asked: a runner
    would try it again and again, and tell it as a traceback."""
    note = Path(job.working, job.file + FAILED)
    note.unlink(missing_ok=True)
    try:
        if shard.done(job) is None:
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
    written = shard.done(job)
    return written if written is not None else workers.Died("has left no file")
