"""`mutation=NAME` in a running program."""

import builtins
from types import ModuleType

from flatout.cures import Hooks
from flatout.observe.injection import Injection


def on_tensorflow(injection: Injection, module: ModuleType) -> None:
    builtins.flatout_planted = injection.value  # type: ignore[attr-defined]
    injection.changed(f"{injection.value} is planted")


HOOKS = Hooks(tensorflow=on_tensorflow)
