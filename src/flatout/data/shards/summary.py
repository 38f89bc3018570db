"""The result of a conversion, as text and as a Case."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from flatout.data.shards import reader
from flatout.data.shards.convert import Outcome
from flatout.data.shards.schema import Feature, Schema
from flatout.model.case import Case, Note, Program
from flatout.model.evidence.pipelines import ShardWritten
from flatout.model.text import clean
from flatout.model.version import __version__

SHOWN = 10


def as_text(outcome: Outcome, notes: Sequence[str], verified: str | None) -> str:
    schema = outcome.schema
    lines = [_headline(outcome)]
    lines += [f"  features  {_features(schema)}"]
    if outcome.resumed:
        lines.append(f"  resumed   {outcome.resumed} of {len(schema.shards)} shards were finished before")
    if schema.skipped:
        lines.append(f"  skipped   {len(schema.skipped):,} corrupt; they are listed in {clean(outcome.path.name)}")
        lines += [f"            {clean(one.name)}: {clean(one.reason)}" for one in schema.skipped[:SHOWN]]
        if len(schema.skipped) > SHOWN:
            lines.append(f"            and {len(schema.skipped) - SHOWN:,} more")
    lines += [f"  note      {clean(note)}" for note in notes]
    if verified:
        lines.append(f"  verified  {verified}")
    lines.append(f"  read it   {clean(outcome.path.parent / (reader.module_name(schema.name) + '_reader.py'))}: load()")
    return "\n".join(lines)


def _headline(outcome: Outcome) -> str:
    schema = outcome.schema
    size = sum(one.bytes for one in schema.shards)
    shards = f"{len(schema.shards)} shard{'s' if len(schema.shards) > 1 else ''}"
    head = f"{clean(schema.name)}: {schema.elements:,} elements in {shards}, {size / 1e6:,.1f} MB"
    if outcome.complete_before:
        return f"{head}; it was complete already, nothing was written"
    return f"{head}, {outcome.seconds:.1f} s"


def _features(schema: Schema) -> str:
    shown = [_feature(one, schema) for one in schema.features[:SHOWN]]
    more = len(schema.features) - SHOWN
    return " · ".join(shown) + (f" · and {more} more" if more > 0 else "")


def _feature(one: Feature, schema: Schema) -> str:
    shape = f" {[length if length is not None else '?' for length in one.shape]}" if one.shape else ""
    what = one.encoding or one.dtype
    classes = f", {len(schema.classes)} classes" if one.name == "label" and schema.classes else ""
    return f"{clean(one.name)} ({what}{shape}{classes})"


def as_case(outcome: Outcome, verified: str | None) -> Case:
    schema = outcome.schema
    return Case(
        "data",
        program=Program(tuple(sys.argv), seconds=outcome.seconds),
        evidence=tuple(
            ShardWritten(one.bytes, one.elements, one.sha256, source="convert", note=one.file) for one in schema.shards
        ),
        notes=tuple(Note("warning", f"{one.name}: {one.reason}", "It is not in the shards.") for one in schema.skipped),
        verdict=_headline(outcome) + (f"; {verified}" if verified else "") + ".",
        flatout=__version__,
    )
