"""Traces the parts of an eager step one by one: calls of Keras models and losses, updates of optimizers.

For a step that is in no function of its own, or that does things which a graph cannot hold. The tape stays eager and
records each part as one operation.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any

from flatout.cures._function_replacement import is_data
from flatout.cures._tracing import Traced, Unfit, inside
from flatout.observe.injection import Injection
from flatout.observe.private_names import Missing, patch
from flatout.source import side_effects, users_code

MOST_KEPT = 16


class Parts:
    """All parts of one kind: the models, the losses, or the optimizers."""

    def __init__(self, injection: Injection, what: str) -> None:
        from tensorflow.python.eager import context

        self.injection = injection
        self.what = what
        self.thread = injection.observer.thread
        self.eager = context.executing_eagerly
        self.kept: dict[tuple[int, ...], tuple[Traced | None, list[Any]]] = {}

    def eagerly(self) -> bool:
        """Whether a call now is an eager one of the program itself, and not part of another traced call."""
        return not inside.now and not self.thread.busy and self.eager()

    def call(self, name: str, objects: list[Any], run: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        key = tuple(map(id, objects))
        found = self.kept.get(key)
        inside.now = True
        try:
            if found is None:
                if len(self.kept) >= MOST_KEPT:
                    return run(*args, **kwargs)
                made = Traced(run, "".join(c if c.isalnum() else "_" for c in name))
                self.kept[key] = (made, objects)
                return made.watch(args, kwargs)
            if found[0] is not None:
                result = found[0].call(args, kwargs)
                self.injection.changed(f"{self.what} are traced")
                return result
        except Unfit as error:
            self.leave(name, objects, str(error))
        finally:
            inside.now = False
        return run(*args, **kwargs)

    def leave(self, name: str, objects: list[Any], why: str) -> None:
        self.kept[tuple(map(id, objects))] = (None, objects)
        self.injection.note(f"{name} is not traced: {why}")


def trace_models(injection: Injection, key: str) -> None:
    parts = Parts(injection, "calls of models")

    def wrap(original: Any) -> Any:
        def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
            fit = parts.eagerly() and getattr(self, "built", False) and is_data(args) and is_data(kwargs)
            if not fit or any(getattr(value, "_keras_mask", None) is not None for value in args):
                return original(self, *args, **kwargs)
            if (id(self),) not in parts.kept:
                against = _against(self)
                if against:
                    parts.leave(f"the model {self.name}", [self], against)
            return parts.call(f"the model {self.name}", [self], functools.partial(original, self), *args, **kwargs)

        return __call__

    _patch(injection, key, wrap)


def trace_losses(injection: Injection, key: str) -> None:
    parts = Parts(injection, "calls of losses")

    def wrap(original: Any) -> Any:
        def __call__(self: Any, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
            given = (y_true, y_pred, sample_weight)
            if not parts.eagerly() or not is_data(given) or getattr(y_pred, "_keras_mask", None) is not None:
                return original(self, *given)
            return parts.call(f"the loss {self.name}", [self], functools.partial(original, self), *given)

        return __call__

    _patch(injection, key, wrap)


def trace_updates(injection: Injection, key: str) -> None:
    """Keras 3: `apply(gradients, variables)`."""
    parts = Parts(injection, "updates of optimizers")

    def wrap(original: Any) -> Any:
        def apply(self: Any, grads: Any, trainable_variables: Any = None) -> Any:
            gradients = list(grads)
            variables = None if trainable_variables is None else list(trainable_variables)
            if not parts.eagerly() or not self.built or not gradients:
                return original(self, gradients, variables)

            def update(*values: Any) -> None:
                original(self, list(values), variables)

            return parts.call(f"the optimizer {self.name}", [self, *(variables or ())], update, *gradients)

        return apply

    _patch(injection, key, wrap)


def trace_legacy_updates(injection: Injection, key: str) -> None:
    """tf_keras: `apply_gradients(pairs)`."""
    parts = Parts(injection, "updates of optimizers")

    def wrap(original: Any) -> Any:
        def apply_gradients(self: Any, grads_and_vars: Any, *args: Any, **kwargs: Any) -> Any:
            pairs = list(grads_and_vars)
            if not parts.eagerly() or not getattr(self, "_built", False) or args or kwargs or not pairs:
                return original(self, pairs, *args, **kwargs)
            variables = [variable for _, variable in pairs]

            def update(*values: Any) -> None:
                original(self, list(zip(values, variables, strict=True)))

            parts.call(f"the optimizer {self.name}", [self, *variables], update, *(value for value, _ in pairs))
            return self.iterations

        return apply_gradients

    _patch(injection, key, wrap)


def _against(model: Any) -> str | None:
    """Why a model's call must not be traced: a layer has side effects, or adds a loss."""
    for layer in model._flatten_layers():
        if getattr(layer, "_losses", None):
            return f"{layer.name} adds a loss of its own"
        call = getattr(type(layer), "call", None)
        if isinstance(call, FunctionType) and users_code.is_users(call.__code__):
            code = call.__code__
            why = side_effects.reason_against(users_code.absolute(code.co_filename), code.co_firstlineno)
            if why:
                return f"in {call.__qualname__}, {why}"
    return None


def _patch(injection: Injection, key: str, wrap: Callable[[Any], Any]) -> None:
    try:
        patch(key, wrap)
    except Missing as missing:
        injection.note(f"this TensorFlow lacks {missing}")
