"""`traced-calls` in a running program."""

from __future__ import annotations

from types import ModuleType

from flatout.cures import _traced_calls
from flatout.cures._spec import Hooks
from flatout.observe.injection import Injection


def on_keras(injection: Injection, module: ModuleType) -> None:
    _traced_calls.trace_models(injection, "model-call")


def on_tf_keras(injection: Injection, module: ModuleType) -> None:
    _traced_calls.trace_models(injection, "legacy-model-call")


HOOKS = Hooks(keras=on_keras, tf_keras=on_tf_keras)
