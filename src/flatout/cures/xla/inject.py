"""`xla` in a running program."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from flatout.cures._keras_arguments import Arguments, caller_location, change_arguments, stays_eager
from flatout.cures._spec import Hooks
from flatout.cures.xla import ALL
from flatout.observe.injection import Injection
from flatout.observe.private_names import patch
from flatout.observe.ticks import KERAS, TRACE
from flatout.observe.traced import any_in
from flatout.source import users_code


def on_keras(injection: Injection, module: ModuleType) -> None:
    _compile(injection, "compile")
    _refused(injection, "make-train-function")


def on_tf_keras(injection: Injection, module: ModuleType) -> None:
    _compile(injection, "legacy-compile")
    _refused(injection, "legacy-make-train-function")


def _compile(injection: Injection, key: str) -> None:
    def in_compile(model: Any, arguments: Arguments) -> None:
        if stays_eager(injection, arguments) or arguments.get("jit_compile", "auto") is True:
            return
        arguments["jit_compile"] = True
        model.__dict__["_flatout_jit"] = caller_location()

    change_arguments(key, in_compile)


def _refused(injection: Injection, key: str) -> None:
    """A model whose step XLA cannot compile is trained as before, from the batch after the one that failed."""
    refusals = _refusals()

    def wrap(original: Any) -> Any:
        def make_train_function(self: Any, force: bool = False) -> Any:
            before = self.train_function
            result = original(self, force)
            real = self.train_function
            where = self.__dict__.get("_flatout_jit")
            if real is before or where is None or not self.jit_compile:
                return result
            done = False

            def train_function(iterator: Any) -> Any:
                nonlocal done, real
                if done:
                    return real(iterator)
                done = True
                try:
                    logs = real(iterator)
                except refusals as error:
                    text = " ".join(str(error).split())[:200]
                    injection.note(f"XLA does not compile the step, and the first batch is lost: {text}")
                    self.jit_compile = False
                    original(self, True)
                    real = self.train_function
                    return real(iterator)
                injection.changed(f"compiled with jit_compile=True{where}")
                return logs

            self.train_function = train_function
            return result if result is None else train_function

        return make_train_function

    patch(key, wrap)


def _refusals() -> Any:
    """What XLA refuses, it refuses before anything has run."""
    import tensorflow as tf

    errors = tf.errors
    return (
        errors.InvalidArgumentError,
        errors.UnimplementedError,
        errors.InternalError,
        errors.NotFoundError,
        ValueError,
        TypeError,
    )


def on_tensorflow(injection: Injection, module: ModuleType) -> None:
    from tensorflow.python.eager import context

    eager = context.executing_eagerly
    observer = injection.observer
    refusals = _refusals()

    def wrap_call(original: Any) -> Any:
        def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
            compiled = getattr(self, "_flatout_compiled", None)
            if compiled is False or not eager() or observer.thread.busy & (TRACE | KERAS):
                return original(self, *args, **kwargs)
            if compiled is None:
                result = original(self, *args, **kwargs)
                # Once traced it is known whether the function trains.
                self._flatout_compiled = _compiled(self) if _wanted(self) else False
                return result
            try:
                result = original(compiled, *args, **kwargs)
            except refusals as error:
                self._flatout_compiled = False
                injection.note(f"XLA does not compile {self._name}: {' '.join(str(error).split())[:200]}")
                return original(self, *args, **kwargs)
            injection.changed(f"{self._name} is compiled by XLA")
            return result

        return __call__

    def _wanted(function: Any) -> bool:
        if function._jit_compile or not _users(function):
            return False
        trains = getattr(observer.shared.functions, "trains", {})
        return injection.value == ALL or any_in(function, trains) is not None

    patch("function-call", wrap_call)


def _compiled(function: Any) -> Any:
    made = function._clone(None)
    made._jit_compile = True
    made._flatout_compiled = False
    return made


def _users(function: Any) -> bool:
    python = function._python_function
    for _ in range(10):
        code = getattr(python, "__code__", None)
        if code is not None and users_code.is_users(code):
            return True
        python = getattr(python, "__wrapped__", None) or getattr(python, "__func__", None)
        if python is None:
            return False
    return False


HOOKS = Hooks(tensorflow=on_tensorflow, keras=on_keras, tf_keras=on_tf_keras)
