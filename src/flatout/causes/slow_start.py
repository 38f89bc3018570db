"""The program works for a good part of the run before its first step.

## What it is
Before the first step the program reads and parses its data, imports packages and builds its model. All of it is done
anew at each start, in one thread.

## Why it costs
A device that costs money waits for it. Every short run, every trial and every restart after a failure pays it again:
parsing text in Python takes a microsecond per character, reading the parsed arrays back takes a thousandth of that.

## How it looks
```python
rows = [[float(cell) for cell in line.split(",")] for line in open("data.csv")]     # 40 s at each start
```

## The cure
```python
if not os.path.exists("data.npy"):
    rows = [[float(cell) for cell in line.split(",")] for line in open("data.csv")]
    np.save("data.npy", np.array(rows, "float32"))
rows = np.load("data.npy", mmap_mode="r")
```
Keep what was parsed, as arrays or records (`flatout data convert`); read with tf.data while training runs; import heavy
packages where they are used. flatout names what the line makes, and writes these statements in its names. No lever does
it: only you know what a file depends on, and when it is out of date.

## When it is not worth it
When the start is short against a run of full length.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from flatout.causes._by_hand import keep
from flatout.causes._run_parts import LIBRARIES, busiest, is_beside_steps, most_of, of_run, seconds, spot
from flatout.causes._spec import Cause
from flatout.model import queries
from flatout.model.case import Case, Finding, Fix, RunPart
from flatout.model.evidence.job import RankOf

OF_RUN = 0.1
LEAST_SECONDS = 1.0
"""What every start takes is no fault."""
STRATEGY = "Strategy("
GPU_SECONDS = 8.0
"""What the first line that works in TensorFlow may take for the start of a GPU: its context, its libraries, the first
kernels. It took 4 to 5 s on an H200; no other GPU was measured."""


def _is_long(case: Case, value: float) -> bool:
    return case.run is not None and value >= max(OF_RUN * case.run.seconds, LEAST_SECONDS)


def lines(case: Case) -> Iterator[Finding]:
    """The program's own lines."""
    for part in case.run.of("before") if case.run is not None and case.steps is not None else ():
        part = _own_work(case, part)
        if not _is_long(case, part.seconds):
            continue
        where = busiest(part)
        most = ""
        if where is not None:
            value = part.lines()[0].seconds
            most = f" {most_of(value, part.seconds).capitalize()}, {seconds(value)}, is at {spot(where)}."
        yield from of_run(
            "slow-start",
            case,
            f"The program worked for {seconds(part.seconds)} before its first step, beside imports.{most}",
            part.seconds,
            where,
            [Fix(_advice(part))],
        )


def _own_work(case: Case, part: RunPart) -> RunPart:
    """The part without lines of the loop that makes the steps: an eager step is seen when it ends, so that the first
    one, in which layers are built, lies before it. Nor does it count that a rank of a job waits for the others to come,
    which it does where its strategy is made."""
    left_out = [one for one in part.lines() if is_beside_steps(case, one) or _meets_others(case, one)]
    kept = tuple(one for one in part.parts if one not in left_out)
    own = replace(part, seconds=part.seconds - sum(one.seconds for one in left_out), parts=kept)
    return _without_start_of_gpu(own) if queries.gpus_in_use(case) else own


def _without_start_of_gpu(part: RunPart) -> RunPart:
    """The line that takes longest of those that work in TensorFlow is taken for the one at which the GPU starts."""
    first = next((one for one in part.lines() if one.name in LIBRARIES), None)
    if first is None:
        return part
    taken = min(first.seconds, GPU_SECONDS)
    left = replace(first, seconds=first.seconds - taken)
    lines = sorted((left if one is first else one for one in part.parts), key=lambda one: -one.seconds)
    return replace(part, seconds=part.seconds - taken, parts=tuple(lines))


def _meets_others(case: Case, line: RunPart) -> bool:
    return bool(case.evidence_of(RankOf)) and line.where is not None and STRATEGY in (line.where.code or "")


def _advice(part: RunPart) -> str:
    package = part.lines()[0].name if part.lines() else ""
    if package in LIBRARIES:
        return "Load weights and build models once, and leave what the run does not need."
    by_hand = next((text for line in part.lines()[:1] if (text := keep(line))), "")
    general = (
        "Keep what this makes in a file (np.save, TFRecord) and read that at the next start, or make it in tf.data."
    )
    return by_hand or general


def imports(case: Case) -> Iterator[Finding]:
    """Packages beside TensorFlow and Keras."""
    for part in case.run.of("import") if case.run is not None else ():
        if part.name not in (*LIBRARIES, "modules") and _is_long(case, part.seconds):
            yield from of_run(
                "slow-start",
                case,
                f"Importing {part.name} took {seconds(part.seconds)}.",
                part.seconds,
                part.where,
                [Fix(f"Import {part.name} inside of the function that uses it, or only the part that is needed.")],
            )


CAUSE = Cause(group="run", in_run={"lines": lines, "imports": imports})
