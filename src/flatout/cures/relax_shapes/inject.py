"""`relax-shapes` in a running program."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from flatout.cures._scalars import Scalars
from flatout.cures._spec import Hooks
from flatout.observe.injection import Injection
from flatout.observe.private_names import patch
from flatout.observe.traced import kept


def on_tensorflow(injection: Injection, module: ModuleType) -> None:
    from tensorflow.python.eager import context

    eager = context.executing_eagerly
    errors: Any = module.errors.OpError

    def wrap_init(original: Any) -> Any:
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            original(self, *args, **kwargs)
            # Read when the function is first called, so that it is in time here.
            self._flatout_relaxed = not self._reduce_retracing and self.input_signature is None
            if self._flatout_relaxed:
                self._reduce_retracing = True
            self._flatout_scalars = None if self.input_signature is not None else Scalars()

        return __init__

    def wrap_call(original: Any) -> Any:
        def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
            scalars = getattr(self, "_flatout_scalars", None)
            if scalars is None or not eager():
                return original(self, *args, **kwargs)
            instead = getattr(self, "_flatout_instead", None)
            given, named = scalars.replace(args, kwargs)
            if instead is not None:
                return original(instead, *given, **named)
            with_tensors = given is not args or named is not kwargs
            before = kept(self)
            try:
                result = original(self, *given, **named)
            except errors:
                raise  # from running the graph, not from tracing it
            except Exception as error:
                if not with_tensors and not (self._flatout_relaxed and before):
                    raise
                return go_back(self, error, with_tensors, args, kwargs)
            if with_tensors:
                injection.changed(f"changing numbers go into {self._name} as tensors")
            elif self._flatout_relaxed and kept(self) != before and before:
                injection.changed(f"{self._name} is traced for open shapes")
            return result

        def go_back(self: Any, error: Exception, with_tensors: bool, args: Any, kwargs: Any) -> Any:
            """Tracing failed: numbers as they were first, then shapes as they were."""
            if with_tensors:
                self._flatout_scalars.off = True
                injection.note(f"{self._name} needs its Python numbers ({type(error).__name__})")
                return __call__(self, *args, **kwargs)
            exact = self._clone(None)
            exact._reduce_retracing = False
            self._flatout_instead = exact
            injection.note(f"{self._name} needs its shapes known ({type(error).__name__})")
            return original(exact, *args, **kwargs)

        return __call__

    patch("function-init", wrap_init)
    patch("function-call", wrap_call)


HOOKS = Hooks(tensorflow=on_tensorflow)
