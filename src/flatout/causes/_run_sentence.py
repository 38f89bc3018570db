"""The first sentence of a verdict: where the wall clock of the run went."""

from __future__ import annotations

from flatout.causes._run_parts import busiest, most_of, seconds, spot
from flatout.model.case import Case, RunPart, RunTree

MOST = 4
LONG = 5.0
"""Seconds from which on a run without steps is worth the sentence."""
LEAST = 0.04
"""Share of the run from which a part is named."""


def sentence(case: Case) -> str:
    """`15 s: 7.2 s in Gallery.on_epoch_end (train.py:17), 5.5 s before the first step, 1.4 s in 300 training steps.`"""
    run = case.run
    if run is None or run.seconds <= 0 or (case.steps is None and run.seconds < LONG):
        return ""
    items = sorted(_items(run, _trace_in_steps(case, run)), key=lambda item: -item[0])
    named = [item for item in items if item[0] >= LEAST * run.seconds][:MOST]
    steps = [item for item in items if item[2] == "steps" and item not in named]
    texts = [f"{seconds(value)} {text}" for value, text, _ in (*named, *steps)]
    return f"{seconds(run.seconds)}: {', '.join(texts)}." if texts else ""


def _trace_in_steps(case: Case, run: RunTree) -> bool:
    """Most of what the steps took is told as traces, since most of them trace."""
    if case.steps is None or case.steps.kind == "inference":
        return False
    steps, traces = run.seconds_of("steps"), run.seconds_of("tracing")
    return traces > steps and case.steps.count * case.steps.ms.median / 1000 > 2 * steps


def _items(run: RunTree, traced_steps: bool) -> list[tuple[float, str, str]]:
    """(seconds, where, kind) of what a reader thinks of as one thing."""
    items = []
    start = run.seconds_of("interpreter", "import", "before", "prepare")
    if start:
        has_steps = any(part.kind == "steps" for part in run.parts)
        text = "before the first step" if has_steps else "to start"
        items.append((start, text + _of_start(run, start), "start"))
    for kind, text in (("tracing", "in traces and first calls"), ("epoch-start", "between epochs"),
                       ("unattributed", "unattributed"), ("observer", "in flatout's own tracing"),
                       ("exit", "to exit")):  # fmt: skip
        value = run.seconds_of(kind)  # type: ignore[arg-type]
        if value:
            items.append((value, text, kind))
    for part in run.parts:
        text = _text(part)
        if part.kind == "steps" and traced_steps:
            text = text.replace("in ", "in the rest of ", 1)
        if text:
            items.append((part.seconds, text, part.kind))
    return items


def _of_start(run: RunTree, start: float) -> str:
    """` (4.1 s importing tensorflow)`: the largest part of it."""
    largest = run.of("import", "before", "prepare")[0] if run.of("import", "before", "prepare") else None
    if largest is None or largest.seconds < 0.4 * start:
        return ""
    if largest.kind == "import":
        return f" ({seconds(largest.seconds)} importing {largest.name})"
    line = busiest(largest)
    return f" ({seconds(largest.lines()[0].seconds)} at {spot(line)})" if line is not None else ""


def _text(part: RunPart) -> str:
    place = f" ({spot(part.where)})" if part.where is not None else ""
    if part.kind == "steps":
        words = "session runs" if part.name == "session" else "steps"
        training = part.name in ("fit", "train-function", "apply", "tape")
        words = words.removesuffix("s") if part.count == 1 else words
        return f"in {part.count:,} {'training ' if training else ''}{words}"
    if part.kind in ("callback", "checkpoint", "summary", "prediction"):
        return f"in {part.name}{place}"
    if part.kind == "validation":
        line = busiest(part) if part.where is None else None
        return f"in {'validation' if part.name == 'loop' else part.name}{place or (f' ({spot(line)})' if line else '')}"
    if part.kind == "program":
        line = busiest(part)
        if line is None:
            return "in other lines of the program"
        return f"in other lines of the program, {most_of(part.lines()[0].seconds, part.seconds)} at {spot(line)}"
    return ""
