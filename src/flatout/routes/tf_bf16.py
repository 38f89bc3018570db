"""The frozen graph with its matrix products and convolutions in bfloat16, rewritten by TensorFlow at load.

Pays where the processor multiplies bfloat16 (AMX, AVX512-BF16); elsewhere it is emulated. The weights on disk stay
float32.
"""

from __future__ import annotations

from pathlib import Path

from flatout.environment.machine import cpu_flags, has_gpu
from flatout.routes import _tensorflow
from flatout.routes._route import Inside, Setting
from flatout.routes.tf_frozen import Frozen
from flatout.subject.subject import Subject

SWITCH = 'tf.config.optimizer.set_experimental_options({"auto_mixed_precision_onednn_bfloat16": True})'


class Bfloat16(Frozen):
    name = "tf-bf16"
    precision = "bfloat16"
    equivalence = "precision"

    def hopeless(self, subject: Subject) -> str | None:
        if has_gpu():
            return "TensorFlow's rewrite to bfloat16 is for CPUs"
        if not cpu_flags() & {"amx_bf16", "avx512_bf16", "bf16"}:
            return "this processor has no bfloat16 arithmetic: it would be emulated"
        return super().hopeless(subject)

    def inspect(self, directory: Path) -> Inside:
        return _tensorflow.inspect_saved(directory, precision_known=False)

    def loader(self, setting: Setting, batch: int) -> str:
        return _tensorflow.source(before=SWITCH)


ROUTES = (Bfloat16(),)
