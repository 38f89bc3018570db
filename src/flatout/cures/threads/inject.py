"""`threads` in a running program."""

from __future__ import annotations

import os
from types import ModuleType

from flatout.cures._spec import Hooks
from flatout.observe.injection import Injection


def on_tensorflow(injection: Injection, module: ModuleType) -> None:
    if os.environ.get("TF_NUM_INTRAOP_THREADS") == injection.value:
        injection.changed(f"{injection.value} threads inside operations")


HOOKS = Hooks(tensorflow=on_tensorflow)
