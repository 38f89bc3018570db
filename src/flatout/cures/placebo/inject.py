"""`placebo` in a running program."""

from __future__ import annotations

from types import ModuleType

from flatout.cures._spec import Hooks
from flatout.observe.injection import Injection


def on_tensorflow(injection: Injection, module: ModuleType) -> None:
    injection.changed()


HOOKS = Hooks(tensorflow=on_tensorflow)
