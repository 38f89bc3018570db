"""`memory-growth` in a running program."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from flatout.cures._spec import Hooks
from flatout.observe.injection import Injection


def on_tensorflow(injection: Injection, module: ModuleType) -> None:
    tf: Any = module
    for gpu in tf.config.list_physical_devices("GPU"):
        try:
            tf.config.experimental.set_memory_growth(gpu, True)
        except RuntimeError as error:
            injection.note(f"{gpu.name}: {error}")
        else:
            injection.changed(f"memory of {gpu.name} grows as needed")


HOOKS = Hooks(tensorflow=on_tensorflow)
