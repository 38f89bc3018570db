"""`compile-cache` in a running program. XLA reads its flags when it compiles for the first time."""

from __future__ import annotations

import os
from types import ModuleType

from flatout.cures._spec import Hooks
from flatout.cures.compile_cache import FLAG, FLAGS
from flatout.observe.injection import Injection


def on_tensorflow(injection: Injection, module: ModuleType) -> None:
    from flatout.cures.compile_cache.keeping import keep_compiled

    before = os.environ.get(FLAGS, "")
    if FLAG in before:
        injection.note("TF_XLA_FLAGS has a directory for it already")
        return
    keep_compiled()  # type: ignore[no-untyped-call]
    if os.environ.get(FLAGS, "") == before:
        injection.note("its directory cannot be written, or the disk is nearly full")
    else:
        injection.changed("what XLA compiles is kept for the next start")


HOOKS = Hooks(tensorflow=on_tensorflow)
