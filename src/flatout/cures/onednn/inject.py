"""`onednn` in a running program."""

from __future__ import annotations

import os
from types import ModuleType

from flatout.cures._spec import Hooks
from flatout.cures.onednn import VARIABLE, environment
from flatout.observe.injection import Injection


def on_tensorflow(injection: Injection, module: ModuleType) -> None:
    wanted = environment(injection.value)[VARIABLE]
    if os.environ.get(VARIABLE) == wanted:
        injection.changed("with oneDNN kernels" if wanted == "1" else "without oneDNN kernels")


HOOKS = Hooks(tensorflow=on_tensorflow)
