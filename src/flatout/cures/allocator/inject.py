"""`allocator` in a running program."""

from __future__ import annotations

import os
from types import ModuleType

from flatout.cures._spec import Hooks
from flatout.cures.allocator import KEEP, environment
from flatout.observe.injection import Injection


def on_tensorflow(injection: Injection, module: ModuleType) -> None:
    wanted = environment(injection.value)
    if injection.value == KEEP and "glibc.malloc.mmap_max" in os.environ.get("GLIBC_TUNABLES", ""):
        injection.changed("glibc keeps the memory it has")
    elif "LD_PRELOAD" in wanted and injection.value in os.environ.get("LD_PRELOAD", ""):
        injection.changed(f"memory comes from {injection.value}")


HOOKS = Hooks(tensorflow=on_tensorflow)
