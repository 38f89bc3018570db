"""The calls in the source that create the stages of a tf.data pipeline, and the chains that they form."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from flatout.model.case import Case, Pipeline, Stage
from flatout.source.editing import statements
from flatout.source.editing.case_facts import same_file
from flatout.source.editing.document import Document

_METHODS = {
    "Map": ("map",),
    "ParallelMap": ("map",),
    "Batch": ("batch", "ragged_batch"),
    "ParallelBatch": ("batch", "ragged_batch"),
    "PaddedBatch": ("padded_batch",),
    "Shuffle": ("shuffle",),
    "Repeat": ("repeat",),
    "Prefetch": ("prefetch",),
    "Cache": ("cache",),
    "Filter": ("filter",),
    "Take": ("take",),
    "Skip": ("skip",),
    "Shard": ("shard",),
    "Zip": ("zip",),
    "FlatMap": ("flat_map", "from_generator"),
    "Interleave": ("interleave",),
    "ParallelInterleave": ("interleave",),
    "Generator": ("from_generator",),
    "TensorSlice": ("from_tensor_slices", "list_files", "TFRecordDataset", "TextLineDataset"),
    "Tensor": ("from_tensors", "from_generator"),
    "TFRecord": ("TFRecordDataset",),
    "Range": ("range",),
    "Unbatch": ("unbatch",),
    "Window": ("window",),
    "Concatenate": ("concatenate",),
}
CHAINED = {method for methods in _METHODS.values() for method in methods} | {
    "with_options", "apply", "enumerate", "rebatch", "ignore_errors", "take_while", "unique", "snapshot",
    "group_by_window", "bucket_by_sequence_length", "rejection_resample", "scan", "map_with_options",
}  # fmt: skip


def users(pipeline: Pipeline, path: str) -> list[Stage]:
    """Stages that are created in this file, the source first, without those that Keras adds."""
    return [
        stage
        for stage in pipeline.stages
        if stage.where is not None and same_file(path, stage.where.file) and not stage.detail.by_keras
    ]


def pipelines(case: Case, path: str) -> Iterator[tuple[Pipeline, list[Stage]]]:
    for pipeline in case.pipelines:
        found = users(pipeline, path)
        if found:
            yield pipeline, found


def call_of(document: Document, pipeline: Pipeline, stage: Stage) -> cst.Call | None:
    """The call that created a stage. Similar calls on one line are matched in the order of the stages."""
    if stage.where is None or stage.where.line is None:
        return None
    methods = _METHODS.get(stage.op)
    alike = [
        other
        for other in pipeline.stages
        if other.where is not None and other.where.line == stage.where.line and _METHODS.get(other.op) == methods
    ]
    found = at_line(document, stage.where.line, methods)
    if not found:
        return None
    index = next((number for number, other in enumerate(alike) if other is stage), 0)
    if len(alike) <= len(found):
        return found[index]
    return found[-1]


def at_line(document: Document, line: int, methods: tuple[str, ...] | None = None) -> list[cst.Call]:
    """Calls of these methods whose name is on a line, in the order of their chain; else those that span it."""
    alike = [call for call in document.all(cst.Call) if method(call) in (methods or CHAINED)]
    named = [call for call in alike if document.line(_name(call)) == line]
    if named:
        return named
    # Older Pythons name the line on which the whole chain begins.
    spanning = [call for call in alike if line in document.lines(call)]
    return spanning[:1] if len({document.span(call)[0] for call in spanning}) > 1 else spanning


def method(call: cst.CSTNode | None) -> str:
    if isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute):
        return call.func.attr.value
    return call.func.value if isinstance(call, cst.Call) and isinstance(call.func, cst.Name) else ""


def dot_of(document: Document, call: cst.Call) -> int:
    """Offset of the dot before a method's name."""
    return document.source.rfind(".", 0, document.span(_name(call))[0])


def _name(call: cst.Call) -> cst.CSTNode:
    return call.func.attr if isinstance(call.func, cst.Attribute) else call.func


def next_in_chain(document: Document, call: cst.Call) -> cst.Call | None:
    """`.batch(…)` of `dataset.map(…).batch(…)`, for the call of `map`."""
    attribute = document.parent(call)
    if isinstance(attribute, cst.Attribute) and attribute.value is call:
        outer = document.parent(attribute)
        if isinstance(outer, cst.Call) and outer.func is attribute:
            return outer
    return None


def variable(document: Document, call: cst.Call) -> str:
    """`dataset` for the statement `dataset = dataset.map(…)`, which has lines of its own."""
    assign = document.parent(call)
    if (
        isinstance(assign, cst.Assign)
        and len(assign.targets) == 1
        and isinstance(call.func, cst.Attribute)
        and isinstance(call.func.value, (cst.Name, cst.Attribute))
        and isinstance(assign.targets[0].target, (cst.Name, cst.Attribute))
        and document.text(assign.targets[0].target) == document.text(call.func.value)
        and _holder_stands_alone(document, assign)
    ):
        return document.text(call.func.value)
    return ""


def _holder_stands_alone(document: Document, assign: cst.Assign) -> bool:
    holder = statements.holding(document, assign)
    return holder is not None and statements.stands_alone(document, holder)


def next_statement(document: Document, call: cst.Call) -> cst.Call | None:
    """The call of `X = X.batch(…)` right below `X = ….map(…)`."""
    assign, statement = document.parent(call), statements.holding(document, call)
    below = statements.following(document, statement) if statement is not None else None
    if not isinstance(assign, cst.Assign) or not isinstance(below, cst.SimpleStatementLine) or len(below.body) != 1:
        return None
    small = below.body[0]
    if not isinstance(small, cst.Assign) or len(assign.targets) != 1:
        return None
    first: cst.CSTNode = small.value
    while isinstance(first, cst.Call) and isinstance(first.func, cst.Attribute):
        if not isinstance(first.func.value, cst.Call):
            break
        first = first.func.value
    if isinstance(first, cst.Call) and isinstance(first.func, cst.Attribute) and isinstance(first.func.value, cst.Name):
        names = {document.text(target.target) for target in (*assign.targets, *small.targets)}
        return first if names == {first.func.value.value} else None
    return None


def following(document: Document, call: cst.Call) -> cst.Call | None:
    """The stage after this one, in the chain or in the statement below."""
    found = next_in_chain(document, call) or next_statement(document, call)
    return found if method(found) in CHAINED else None


def end_of(document: Document, call: cst.Call) -> cst.Call:
    """The last stage after a call, in its chain and in the statements right below."""
    found = following(document, call)
    return call if found is None else end_of(document, found)


def append(document: Document, call: cst.Call, text: str) -> None:
    """Add a stage after a call, in the style of its neighbours: in the chain, or as a statement."""
    name = variable(document, call)
    statement = statements.holding(document, call)
    if name and statement is not None and next_in_chain(document, call) is None:
        statements.after(document, statement, f"{name} = {name}{text}")
        return
    outer = next_in_chain(document, call)
    end = document.span(call)[1]
    if outer is not None:
        dot = dot_of(document, outer)
        if document.begins_its_line(dot):
            document.insert(dot, text + _line_break(document, dot))
        else:
            document.insert(end, text)
    elif isinstance(call.func, cst.Attribute) and document.begins_its_line(dot_of(document, call)):
        # The last stage of a chain over several lines: below it, and below its comment.
        here = document.line_end(end)
        rest = document.source[end:here].strip()
        position = here if not rest or rest.startswith("#") else end
        line_break = _line_break(document, dot_of(document, call))
        document.insert(end if "\\" in line_break else position, line_break + text)
    else:
        document.insert(end, text)


def _line_break(document: Document, dot: int) -> str:
    """The line break before this dot, which may need a backslash."""
    continued = document.source[: document.line_start(dot)].rstrip("\r\n").endswith("\\")
    return (" \\" if continued else "") + document.newline + document.indentation(dot)
