"""What is added to the loader of an artefact: samples that it is not made for get the model itself, or one sentence.

Before the runtime is asked, only the number of the inputs and their types are looked at, which costs a fraction of a
microsecond: some runtimes leave an input that is missing as it was in the call before, and cast or misread other types.
Shapes are looked at only where the runtime refuses them.
"""

from __future__ import annotations

from collections.abc import Sequence

from flatout.optimize.odd_samples import FINITE
from flatout.subject import Subject, any_length
from flatout.subject.input_matching import numpy_type

GUARD = '''

# ── what the artefact is not made for ────────────────────────────────────────────────────────────────────────────────

import math
from pathlib import Path

import numpy

TAKES = {takes}
"""For each input its name and type, the shape of a sample that this artefact is made for, and that which the original
takes."""
KINDS = [None if kind == "str" else numpy.dtype(kind) for _, kind, _, _ in TAKES]
load_made = load


def load(directory, *arguments, **options):
    """As above. Samples of other lengths are answered by the model itself, in any_length/, where that is there."""
    directory = Path(directory).absolute()  # some files are opened later, when the program may be in another directory
    version, sizes = version_of(directory), set()
    made, others = load_made(directory, *arguments, **options), []

    def require_same():
        if version_of(directory) != version:
            raise ValueError(f"the artefact in {{directory}} was replaced after it had been loaded: load it again")

    def run(inputs):
        if len(inputs) != len(KINDS):
            raise ValueError(unfit(inputs))
        for array, kind in zip(inputs, KINDS):
            if kind is not None and getattr(array, "dtype", kind) != kind and (problem := unfit(inputs)):
                raise ValueError(problem)
{refuse}{same}        try:
            return made(inputs)
        except Exception as error:
            if problem := unfit(inputs):
                raise ValueError(problem) from error
            given = [list(numpy.shape(array)[{first}:]) for array in inputs]
            if given == [lengths for _, _, lengths, _ in TAKES]:
                raise
        if not others:
            require_same()
            others.append(load_any_length(directory))
        return others[0](inputs)

    return run


def version_of(directory):
    """Its manifest, which is that of no other artefact; empty while it is being made."""
    path = directory / "{manifest}"
    return path.read_bytes() if path.exists() else b""


def unfit(inputs):
    """Why neither the artefact nor the original takes these; empty if one of them should."""
    if len(inputs) != len(TAKES):
        names = ", ".join(name for name, *_ in TAKES)
        return f"the model takes a list of {{len(TAKES)}} arrays ({{names}}), not of {{len(inputs)}}"
    for (name, kind, _, lengths), array in zip(TAKES, inputs):
        array = numpy.asarray(array)
        given = array.shape[{first}:]
        fits = len(given) == len(lengths) and all(one in (None, here) for one, here in zip(lengths, given))
        if not (array.dtype.kind in "SUO" if kind == "str" else array.dtype == kind):
            return f"input {{name}} takes {{kind}}, not {{array.dtype}}"
        if not fits or array.ndim < {first}:
            shape = ", ".join("any" if one is None else str(one) for one in lengths)
            return f"input {{name}} takes samples of shape ({{shape}}), {batched}not {{array.shape}}"
    return ""


{finite}
def load_any_length(directory):
    folder = Path(directory) / "any_length"
    takes = ", ".join(f"{{name}} {{tuple(lengths)}}" for name, _, lengths, _ in TAKES)
    if not folder.exists():
        raise ValueError(f"this artefact takes samples of {{takes}} alone: pad or cut them, or make one with --shape")
    try:
        import tensorflow as tf
    except ImportError:
        raise ValueError(f"samples of other lengths than {{takes}} need TensorFlow, which is not installed") from None
    model = tf.saved_model.load(str(folder))
    return lambda inputs: [output.numpy() for output in model.serve(*[tf.constant(array) for array in inputs])]
'''


MANIFEST = "manifest.json"

REFUSE = """\
        if not all(finite(array) for array in inputs):
            raise ValueError("NaN and infinity are refused: the artefact would answer otherwise than the original")
"""

SAME = """\
        shape = getattr(inputs[0], "shape", ())
        size = shape[0] if len(shape) else 0
        if size not in sizes:  # for another number of samples, this runtime opens its file again
            require_same()
            sizes.add(size)
"""

REFUSE_SIZES = """\
        if any(len(array) not in {sizes} for array in inputs):
            raise ValueError("this artefact takes batches of {listed} alone: it would answer others otherwise")
"""


def guard(subject: Subject, finite_only: bool = False, sizes: Sequence[int] = (), *, opens_later: bool = False) -> str:
    """`finite_only`: with a check that no input holds NaN or infinity. `sizes`: with one of the number of samples.
    `opens_later`: with one that the files are still those of this artefact."""
    takes = [
        (one.name, numpy_type(one.dtype), list(one.sample), list(any_length.lengths(subject, one.shape)))
        for one in subject.inputs
    ]
    batched = subject.batching != "none"
    refuse = REFUSE if finite_only else ""
    if sizes:
        refuse += REFUSE_SIZES.format(sizes=tuple(sorted(sizes)), listed=" or ".join(map(str, sorted(sizes))))
    return GUARD.format(
        takes=repr(takes),
        first=int(batched),
        batched="one to a row, " if batched else "",
        refuse=refuse,
        same=SAME if opens_later else "",
        manifest=MANIFEST,
        finite=f"{FINITE}\n" if finite_only else "",
    )
