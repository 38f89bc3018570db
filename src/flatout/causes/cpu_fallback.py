"""Operations that were meant for the GPU run on the CPU, because the GPU has no kernel for them.

## What it is
With soft placement, which is on by default in TensorFlow 2, an operation without a kernel for the
requested device and type is silently placed on the CPU.

## Why it costs
The operation itself is slower, and its inputs must be copied to the host and its results back, each time
with a wait. In the middle of a model one such operation splits the work of the GPU in two.

## How it looks
```python
with tf.device("/GPU:0"):
    words = tf.strings.split(sentences)              # strings live on the CPU
    numbers = tf.strings.to_number(words.values, tf.int32)
    vectors = tf.gather(embedding, numbers)
```

## The cure
Move such work into the input pipeline, which runs on the CPU anyway and ahead of the step:
```python
dataset = dataset.map(words_to_numbers)              # on the CPU, in parallel, before the copy
vectors = tf.gather(embedding, numbers)              # on the GPU
```
Otherwise use another type (some integer and float64 kernels exist on the CPU only) or another operation.
`tf.config.set_soft_device_placement(False)` turns each silent fallback into an error for one test run;
`tf.debugging.set_log_device_placement(True)` prints every placement.
- An edit of the source: exact where the operation only moves; precision where its type changes.

No lever does this: only the author knows which type or which device is right.

## When it is not worth it
Many small integer operations (shapes, indices, counters) are placed on the CPU on purpose. An operation
that runs once per epoch does not matter.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from flatout.causes._spec import Cause
from flatout.model import queries
from flatout.model.case import Case, Finding, Fix
from flatout.model.evidence.graphs import PlacementFallback
from flatout.source.analysis.patterns import Match, pattern
from flatout.source.analysis.scopes import Site
from flatout.source.analysis.syntax import constant, last_name


def in_run(case: Case) -> Iterator[Finding]:
    if case.placement is None or not case.placement.fallbacks:
        return
    asked = sorted({item.asked for item in case.placement.fallbacks if isinstance(item, PlacementFallback)})
    count = sum(item.ops for item in case.placement.fallbacks if isinstance(item, PlacementFallback))
    yield from queries.finding(
        "cpu-fallback",
        case,
        f"Soft placement ran {queries.counted(count, 'op')} elsewhere, silently: no {', '.join(asked)} is there, as "
        "the program asks for.",
        cost_ms=None,
        where=next((item.where for item in case.placement.fallbacks if item.where), None),
        evidence=case.placement.fallbacks[:3],
        fixes=[
            Fix("Name a device that exists, or none; tf.config.set_soft_device_placement(False) makes it an error.")
        ],
        estimate="not measured",
    )


# ── how it looks in source ───────────────────────────────────────────────────────────────────────────────────────

_PART = re.compile(
    r"(job:[\w.-]+|replica:(\d+|\*)|task:(\d+|\*)|(device:)?(cpu|gpu|tpu|tpu_system|xla_cpu|xla_gpu|plugin\w*|\*|npu|dml|custom)(:(\d+|\*))?)",
    re.IGNORECASE,
)
_ON_HOST = (
    "tensorflow.strings.",
    "tensorflow.io.read_file",
    "tensorflow.io.decode_",
    "tensorflow.image.decode_",
)


@pattern("no-such-device", calls=("device",), written=r"\bdevice[\s\\]*\([\s\\(]*\w*[\"']", of_tensorflow=True)
def _no_such_device(call: ast.Call, site: Site) -> Iterator[Match]:
    """`tf.device("cuda:0")`"""
    name = constant(call.args[0]) if call.args else None
    if site.dotted(call.func) != "tensorflow.device" or not isinstance(name, str) or not name:
        return
    spelled = re.sub(r":\s+(?=\d)", ":", name)  # TensorFlow takes "CPU: 0" too
    if not all(_PART.fullmatch(part) for part in spelled.strip("/").split("/") if part) or name != name.strip():
        yield Match(
            call,
            f"{name!r} is no device of TensorFlow.",
            'Devices are named "/GPU:0", "/CPU:0" or "/job:worker/task:0/GPU:0".',
            "semantic",
            report_at=call.args[0],
        )


@pattern(
    "host-work-on-gpu",
    nodes=(ast.With,),
    words=("device",),
    written=r"\bdevice[\s\\]*\([^)]{0,400}[gG][pP][uU]",
    of_tensorflow=True,
)
def _host_work_on_gpu(node: ast.With, site: Site) -> Iterator[Match]:
    """Strings, files or datasets under `with tf.device("/GPU:0")`."""
    for item in node.items:
        call = item.context_expr
        if not isinstance(call, ast.Call) or site.dotted(call.func) != "tensorflow.device" or not call.args:
            continue
        name = constant(call.args[0])
        if not isinstance(name, str) or "gpu" not in name.lower():
            continue
        for inner in ast.walk(node):
            if isinstance(inner, ast.Call) and site.dotted(inner.func).startswith(_ON_HOST):
                yield Match(
                    inner,
                    f"{last_name(inner.func)} has no kernel for GPUs: it runs on the CPU, with copies back and forth.",
                    "Move it out of the block, into the input pipeline.",
                    report_at=inner.func,
                )
                return


CAUSE = Cause(
    group="hardware",
    in_run=in_run,
    patterns=(_no_such_device, _host_work_on_gpu),
)
