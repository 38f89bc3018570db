"""Every tf.function that was made, called or traced, and which argument made it trace again."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from flatout.model.case import Function, Retrace, Where
from flatout.observe.reading.recording import Fact, Recording
from flatout.source import context, users_code

LIBRARY_NAMES = {
    "one_step_on_data": "the step of Keras fit",
    "multi_step_on_iterator": "the step function of Keras fit",
    "one_step_on_data_distributed": "the step function of Keras predict",
}


def read(recording: Recording) -> tuple[Function, ...]:
    traces: dict[tuple[str, int, str], list[Fact]] = defaultdict(list)
    for fact in recording.all("trace"):
        traces[tuple(fact["function"])].append(fact)
    found = []
    for file, line, name, total in recording.last("functions").get("rows") or []:
        mine = traces.get((file, line, name), [])
        outermost = any(fact["outermost"] for fact in mine)
        if not total["calls"] and not outermost and not (file and users_code.is_users_file(file)):
            continue
        if name == "wrapped_fn" or "/tensorflow/python/" in file:
            continue  # TensorFlow's own: functions of tf.data stages belong to the pipeline
        found.append(
            Function(
                name=LIBRARY_NAMES.get(name, name),
                where=_definition(file, line, name),
                traces=int(total["traces"]),
                trace_ms=float(total["trace_s"]) * 1e3 or sum(float(f["ms"]) for f in mine),
                calls=int(total["calls"]),
                call_ms=float(total["seconds"]) * 1e3,
                why=_why(mine),
                instances=max(int(total["made"]), 1),
                jit_compile=total.get("jit"),
                nodes=max((int(fact.get("nodes") or 0) for fact in mine), default=0),
            )
        )
    return tuple(sorted(found, key=lambda function: -(function.call_ms + function.trace_ms)))


def _definition(file: str, line: int, name: str) -> Where | None:
    if not file:
        return None
    return context.where(file, context.definition_line(file, line) or line, name)


def _why(traces: list[Fact]) -> tuple[Retrace, ...]:
    """One line per argument and call site; the first trace, and its repetition that makes variables, need no reason."""
    counts: Counter[tuple[str, Any]] = Counter()
    examples: dict[tuple[str, Any], tuple[str, str]] = {}
    for fact in traces:
        if fact["first"] or fact["again"]:
            continue
        caller = tuple(fact["caller"][0][:3]) if fact["caller"] else None
        changes = fact["changed"] or [["(the context of the call)", "", ""]]
        for argument, before, after in changes[:3]:
            key = (argument, caller)
            counts[key] += 1
            examples.setdefault(key, (before, after))
    return tuple(
        Retrace(argument, *examples[(argument, caller)], count, context.where(*caller) if caller else None)
        for (argument, caller), count in counts.most_common(8)
    )
