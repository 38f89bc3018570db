"""`function` in a running program."""

from __future__ import annotations

import sys
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from flatout.cures import _function_replacement, _traced_calls
from flatout.cures._spec import Hooks
from flatout.cures._tracing import inside
from flatout.cures.function import PARTS
from flatout.observe.injection import Injection
from flatout.observe.private_names import Missing, patch
from flatout.source import side_effects, users_code

MOST_SEARCHES = 8


def on_tensorflow(injection: Injection, module: ModuleType) -> None:
    if injection.value != PARTS:
        _watch(injection, "tape-gradient")


def on_keras(injection: Injection, module: ModuleType) -> None:
    if injection.value == PARTS:
        _traced_calls.trace_models(injection, "model-call")
        _traced_calls.trace_losses(injection, "loss-call")
        _traced_calls.trace_updates(injection, "apply")
        return
    for key in ("apply", "model-call", "keras-assign"):
        _watch(injection, key)


def on_tf_keras(injection: Injection, module: ModuleType) -> None:
    if injection.value == PARTS:
        _traced_calls.trace_models(injection, "legacy-model-call")
        _traced_calls.trace_legacy_updates(injection, "legacy-apply")
        return
    for key in ("legacy-apply", "legacy-model-call"):
        _watch(injection, key)


class _Search:
    """Looks for the function to trace among the callers of an eager tape, optimizer or model."""

    def __init__(self, injection: Injection) -> None:
        from tensorflow.python.eager import context

        file, _, line = injection.value.rpartition(":")
        self.injection = injection
        self.file = str(Path(file).resolve())
        node = side_effects.definition_at(self.file, int(line)) if line.isdigit() else None
        self.name = node.name if node else ""
        self.line = side_effects.first_line(node) if node else 0
        self.known: dict[CodeType, bool] = {}
        self.left = MOST_SEARCHES if node else 0
        self.eager = context.executing_eagerly
        if node is None:
            injection.note(f"there is no function at {injection.value}")

    def look(self, frame: Any) -> None:
        if not self.left or inside.now or not self.eager():
            return
        while frame is not None:
            code = frame.f_code
            target = self.known.get(code)
            if target is None:
                target = self.known[code] = self._is_target(code)
            if target:
                self._take(code)
                return
            frame = frame.f_back

    def _is_target(self, code: CodeType) -> bool:
        if code.co_name != self.name or code.co_firstlineno != self.line:
            return False
        return str(Path(users_code.absolute(code.co_filename)).resolve()) == self.file

    def _take(self, code: CodeType) -> None:
        self.left -= 1
        for function in _function_replacement.functions_of(code):
            _function_replacement.Step(self.injection, function, f"{self.name} ({self.file}:{self.line})")


def _watch(injection: Injection, key: str) -> None:
    search: _Search = injection.__dict__.setdefault("search", _Search(injection))

    def wrap(original: Any) -> Any:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            search.look(sys._getframe(1))
            return original(self, *args, **kwargs)

        return call

    try:
        patch(key, wrap)
    except Missing as missing:
        injection.note(f"this TensorFlow lacks {missing}")


HOOKS = Hooks(tensorflow=on_tensorflow, keras=on_keras, tf_keras=on_tf_keras)
