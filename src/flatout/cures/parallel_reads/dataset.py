"""Files that are read one after the other are read several at a time.

The records come in another order then. Behind a shuffle the program has asked for no certain one, and the elements are
compared as a multiset; elsewhere the change is semantic and has to be allowed.
"""

from __future__ import annotations

from typing import Any

from flatout.observe import stages
from flatout.pipeline import recipes
from flatout.pipeline.rewriting import Context, Proposal, Refused

CYCLE = 8
IN_ANY_ORDER = ("Map", "ParallelMap", "Filter", "Prefetch", "Cache", "Repeat", "Options")
"""Stages that do the same to each element, whichever comes first. A `take` or `batch` does not."""
ONE_READER = ("TFRecord", "TextLine", "FixedLengthRecord")


def rewrite(dataset: Any, context: Context) -> Proposal | None:
    import tensorflow as tf

    reader = next((stage for stage, _ in stages.chain(dataset) if _reads_one_by_one(stage)), None)
    if reader is None:
        return None
    files = _file_names(reader)
    if files is None or (int(files.cardinality()) in (0, 1)):
        return None
    shuffled = is_shuffled(_behind(dataset, reader))
    if not shuffled and "semantic" not in context.allow:
        raise Refused(
            f"the files at {stages.location(reader)} could be read several at a time; no shuffle follows, so that "
            "would change the order of the elements (allow semantic changes for it)"
        )
    cycle = min(CYCLE, int(files.cardinality())) if int(files.cardinality()) > 0 else CYCLE
    made = files.interleave(
        _reader_of(reader), cycle_length=cycle, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True
    )
    result = recipes.rebuild(dataset, recipes.exchange(reader, recipes.stands_for(made, reader)))
    what = f"{cycle} files at a time at {stages.location(reader)}"
    return Proposal(result, what, equivalence="exact" if shuffled else "semantic")


def is_shuffled(behind: list[Any]) -> bool:
    """Whether a shuffle follows before the order of the elements matters. `behind`: the stages, the last one first."""
    for stage in reversed(behind):
        if stages.kind(stage) == "Shuffle":
            return True
        if stages.kind(stage) not in IN_ANY_ORDER or stages.states(stage):
            return False
    return False


def _reads_one_by_one(stage: Any) -> bool:
    kind = stages.kind(stage)
    if kind in ONE_READER:
        return getattr(stage, "_num_parallel_reads", None) is None and _file_names(stage) is not None
    if kind not in ("FlatMap", "Interleave") or not _opens_files(stage):
        return False
    return kind == "FlatMap" or stages.kind(stage) == "Interleave"


def _opens_files(stage: Any) -> bool:
    """Whether the datasets that a stage flattens are readers of files, and nothing else keeps state in it."""
    readers = ("TFRecordDataset", "TextLineDataset", "FixedLengthRecordDataset")
    return any(op.startswith(readers) for op in stages.ops_of(stage._map_func)) and not stages.states(stage)


def _file_names(stage: Any) -> Any | None:
    if stages.kind(stage) in ("FlatMap", "Interleave"):
        return recipes.upstream(stage)[0]
    names = getattr(stage, "_filenames", None)
    return names if hasattr(names, "interleave") else None


def _reader_of(stage: Any) -> Any:
    """The dataset of one file."""
    import tensorflow as tf

    kind = stages.kind(stage)
    if kind in ("FlatMap", "Interleave"):
        return stage._map_func._func
    if kind == "TFRecord":
        return lambda name: tf.data.TFRecordDataset(name, stage._compression_type, stage._buffer_size)
    if kind == "TextLine":
        return lambda name: tf.data.TextLineDataset(name, stage._compression_type, stage._buffer_size)
    return lambda name: tf.data.FixedLengthRecordDataset(
        name, stage._record_bytes, stage._header_bytes, stage._footer_bytes, stage._buffer_size, stage._compression_type
    )


def _behind(dataset: Any, reader: Any) -> list[Any]:
    found: list[Any] = []
    for stage in recipes.main_line(dataset):
        if stage is reader:
            return found
        found.append(stage)
    return []
