"""What XLA compiles is kept on disk, and read at the next start.

## What it does
XLA compiles anew in every process: some seconds for a small step, minutes for a large one on a GPU. TensorFlow can keep
what was compiled in a directory (`TF_XLA_FLAGS=--tf_xla_persistent_cache_directory=…`). This lever switches that on,
with a directory below `~/.cache/xla`, or below `XLA_CACHE_DIRECTORY` where that is set. A flag for it that is set
already stays as it is.

## When it pays
For whoever starts a program more than once, from the second start on: while it is being written, when it goes on after
a failure, when it runs every night. The first start takes as long as before. It is a cure of the run, not of the step:
a start that finds what an earlier one has kept is measured against one that finds nothing, both from start to end.
Functions are traced as before. Without XLA there is nothing to keep, and the lever is not tried.

## What it changes
Exact: the same compiled code. TensorFlow compares the whole computation before it takes what was kept, but not the
compiler and the machine, so there is one directory for each TensorFlow, kind of processor, model of GPU and content of
`XLA_FLAGS`. Not told apart are settings of the compiler that the program makes itself, as `enable_op_determinism`:
empty the directory when you change one. Nothing is ever deleted from it.

TensorFlow ends the program where it cannot write to the directory. So it is not used where it cannot be written or the
disk has less than a gigabyte left; a disk that becomes full during the run still ends it. TensorFlow 2.21 prints two
errors that are none at each start that reads from it: that the file is no text (it tries that first), and on CPUs that
the code was compiled for another machine (`+prefer-no-scatter is not supported`), which names preferences of the
compiler, not instructions. From TensorFlow 2.21 on: in some of the older ones a program that is killed leaves half a
file, with which the next start fails.

## In the source
```python
keep_compiled()         # a function that the patch adds, called before TensorFlow is imported
import tensorflow as tf
```
"""

from __future__ import annotations

import os

from flatout.cures import _trial_edit
from flatout.cures._spec import Cure
from flatout.model import queries
from flatout.model.case import Case
from flatout.source.editing import source_text

FLAGS = "TF_XLA_FLAGS"
FLAG = "persistent_cache"
LEAST_VERSION = (2, 21)


def skip(case: Case) -> str | None:
    flags = os.environ.get(FLAGS, "")
    if not queries.is_compiled_by_xla(case) and "auto_jit" not in flags:
        return "XLA compiles nothing in this program"
    if FLAG in flags or any(FLAG in text for _, text in _trial_edit.sources(case)):
        return "what XLA compiles is kept already"
    version = str((case.environment.get("tensorflow") or {}).get("version") or "")
    if version and _numbers(version) < LEAST_VERSION:
        return f"with TensorFlow {version} a killed program may leave half a file, with which the next one fails"
    return None


def by_hand(case: Case, value: str) -> str:
    """Where the program sets the flags itself."""
    for path, text in _trial_edit.sources(case):
        for number, line in enumerate(source_text.lines(text), 1):
            if FLAGS in line and not line.lstrip().startswith("#"):
                flag = "--tf_xla_persistent_cache_directory=DIRECTORY"
                return f"{path}:{number}: add {flag} to the value of {FLAGS}."
    return ""


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2] if part.isdigit())


CURE = Cure(
    does="keep on disk what XLA compiles",
    equivalence="exact",
    side="run",
    skip=skip,
    saves=("tracing",),
    next_start=True,
    by_hand=by_hand,
)
