"""Images are transposed between channels-first and channels-last again and again.

## What it is
`Transpose` operations around convolutions and poolings, written in the program or inserted because a layer
asks for a layout that its kernel does not have.

## Why it costs
A transpose moves the whole tensor through memory and computes nothing. With `data_format="channels_first"`
Keras 3 on TensorFlow wraps every pooling in two of them, as TensorFlow's pooling takes channels-last there.
On a GPU TensorFlow's layout optimizer picks a layout for the whole graph and cancels pairs, but not across
operations that it does not know, nor in eager code.

## How it looks
```python
images = tf.transpose(images, (0, 3, 1, 2))
for _ in range(4):
    images = keras.layers.Conv2D(64, 3, data_format="channels_first")(images)
    images = keras.layers.MaxPooling2D(data_format="channels_first")(images)   # two transposes each
```

## The cure
Stay with channels-last throughout; it is the default, the layout of decoded images, and what tensor cores
want in half precision:
```python
for _ in range(4):
    images = keras.layers.Conv2D(64, 3)(images)
    images = keras.layers.MaxPooling2D()(images)
```
- An edit of the source: reassociated. Saved weights of `Dense` layers after a `Flatten` see another order
  of inputs and must be permuted.
- `cancel-transposes` leaves out pairs that undo each other, with all that is computed between them:
  reassociated. It is injected; there is no edit for it.
- `xla` assigns layouts for the whole program: reassociated. On CPUs some convolutions are much slower under
  XLA.

## When it is not worth it
A single transpose at the entrance. float32 convolutions on a GPU may be faster channels-first, and
TensorFlow's own optimizer arranges that in graphs by itself.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from flatout.causes._spec import Cause
from flatout.model import queries
from flatout.model.case import Case, Finding, Fix, Op, Where
from flatout.source.analysis.patterns import Match, pattern
from flatout.source.analysis.scopes import Site
from flatout.source.analysis.syntax import constant, keyword


def in_run(case: Case) -> Iterator[Finding]:
    moves = _between_layouts(case)
    if not moves or sum(op.count for op in moves) < 2:
        return
    by_line: dict[Where | None, float] = defaultdict(float)
    for op in moves:
        by_line[op.where] += op.self_ms
    # Gradients of a transpose carry the line of the tape: look at those that the user wrote, if any ran long enough.
    written = {op.where for op in moves if "gradient" not in op.name} or set(by_line)
    whole = sum(op.self_ms for op in case.ops) or 1.0
    cost = queries.part_ms(case, "compute") * sum(by_line.values()) / whole
    yield from queries.finding(
        "layout-churn",
        case,
        f"{sum(op.count for op in moves):.0f} transposes a step turn tensors between layouts.",
        cost_ms=cost,
        where=_first_of_the_slowest({line: ms for line, ms in by_line.items() if line in written}),
        evidence=[queries.number("transposes", cost, "ms", "of a step goes into transposes", "trace")],
        fixes=[
            Fix(
                "Keep one layout (channels last on CPUs, and for mixed precision on GPUs) from input to output.",
                lever="cancel-transposes",
                equivalence="reassociated",
            )
        ],
        estimate="time of the Transpose ops in the trace",
    )


LAYOUTS = ("0,3,1,2", "0,2,3,1", "0,4,1,2,3", "0,2,3,4,1")
"""From channels-last to channels-first and back, for images and volumes."""
_OF_IMAGES = ("Conv", "Pool", "FusedBatchNorm", "Depthwise")


def _between_layouts(case: Case) -> list[Op]:
    """Transposes that turn images between layouts, and no others: attention, too, turns its axes, for its heads."""
    moves = [op for op in case.ops if op.type in ("Transpose", "_MklTranspose", "ConjugateTranspose")]
    found = [op for op in moves if op.axes in LAYOUTS or "LayoutOptimizer" in op.name]
    others = [op for op in moves if op.axes and op.axes not in LAYOUTS]
    unknown = [op for op in moves if not op.axes and op not in found and len(op.shape.split(",")) >= 4]
    # A gradient computes its order of axes: it is of the same kind as those that are known, where they are of one kind.
    images = bool(found) or any(mark in op.type for op in case.ops for mark in _OF_IMAGES)
    return [*found, *unknown] if images and not others else found


def _first_of_the_slowest(by_line: dict[Where | None, float]) -> Where | None:
    """There and back are two lines that cost about the same: the way begins with the first."""
    slowest = max(by_line, key=lambda line: by_line[line])
    if slowest is None:
        return None
    alike = [
        line for line, ms in by_line.items() if line and line.file == slowest.file and ms >= 0.5 * by_line[slowest]
    ]
    return min(alike, key=lambda line: line.line or 0)


# ── how it looks in source ───────────────────────────────────────────────────────────────────────────────────────


@pattern(
    "channels-first",
    calls=("MaxPooling2D", "MaxPool2D", "AveragePooling2D", "AvgPool2D"),
    words=("channels_first",),
    default=False,
)
def _channels_first(call: ast.Call, site: Site) -> Iterator[Match]:
    """Pooling with data_format="channels_first": Keras 3 wraps it in two transposes."""
    if constant(keyword(call, "data_format")) == "channels_first" and site.dotted(call.func).startswith(
        "keras.layers."
    ):
        yield Match(
            call,
            "Pooling of channels-first images is wrapped in two transposes.",
            "Stay with channels-last.",
            "reassociated",
            report_at=keyword(call, "data_format"),
        )


CAUSE = Cause(
    group="numerics",
    cures=("cancel-transposes", "xla"),
    in_run=in_run,
    patterns=(_channels_first,),
)
