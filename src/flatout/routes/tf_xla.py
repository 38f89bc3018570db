"""The model compiled by XLA when it is first called, as a SavedModel.

Gains on matrix products with much around them; on a CPU, depthwise convolutions become many times slower.
"""

from __future__ import annotations

from flatout.environment.machine import has_gpu
from flatout.routes import _tensorflow
from flatout.routes._route import Setting
from flatout.routes.tf_function import Function
from flatout.subject.subject import Subject

UNCOMPILED = {"LookupTableFindV2", "StringSplitV2", "RegexReplace", "DecodeJpeg", "Unique", "Where", "PyFunc"}


class Xla(Function):
    name = "tf-xla"
    equivalence = "reassociated"
    turn = 1

    def hopeless(self, subject: Subject) -> str | None:
        if "DepthwiseConv2dNative" in subject.ops and not has_gpu():
            return "XLA runs depthwise convolutions on a CPU many times slower"
        stuck = sorted(UNCOMPILED & set(subject.ops))
        return f"XLA cannot compile {', '.join(stuck)}" if stuck else None

    def loader(self, setting: Setting, batch: int) -> str:
        return _tensorflow.source(options=", jit_compile=True")


ROUTES = (Xla(),)
