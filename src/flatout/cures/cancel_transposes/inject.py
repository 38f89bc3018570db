"""`cancel-transposes` in a running program."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from flatout.cures._keras_arguments import caller_location
from flatout.cures._layouts import Layouts, constant
from flatout.cures._spec import Hooks
from flatout.observe.injection import Injection
from flatout.observe.private_names import patch

TAPES = ("tape-push", "tape-watch")
REDUCTIONS = ("reduce-mean", "reduce-sum", "reduce-max")


def on_tensorflow(injection: Injection, module: ModuleType) -> None:
    def wrap_transpose(original: Any) -> Any:
        layouts = Layouts(module, original)
        for key in TAPES:
            patch(key, lambda method: _watched(layouts, method))
        for key in REDUCTIONS:
            patch(key, lambda reduce: _reduction(injection, module, layouts, reduce))

        def transpose(x: Any, perm: Any, name: Any = None) -> Any:
            order = constant(module, perm) if not module.executing_eagerly() and hasattr(x, "op") else None
            if not order:
                return original(x, perm, name)
            turned = layouts.turned(x, order)
            if turned is None:
                turned = original(x, perm, name)
                layouts.remember(x, order, turned)
            else:
                injection.changed(f"a pair of transposes is left out{caller_location()}")
            return turned

        return transpose

    patch("transpose", wrap_transpose)


def _watched(layouts: Layouts, original: Any) -> Any:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not layouts.tf.executing_eagerly():
            layouts.begin_anew()
        return original(self, *args, **kwargs)

    return method


def _reduction(injection: Injection, module: ModuleType, layouts: Layouts, original: Any) -> Any:
    """A mean over axes of a turned tensor is one over other axes of the tensor before it was turned."""

    def reduce(input: Any, axis: Any, keep_dims: Any = False, name: Any = None) -> Any:
        order = layouts.way_back(input) if not module.executing_eagerly() else None
        found = constant(module, axis) if order else None
        if order and found:
            axes = sorted(number % len(order) for number in found)
            kept = [number for number in order if number not in axes]
            before = layouts.turned(input, order) if kept == sorted(kept) else None
            if before is not None:
                injection.changed(f"a transpose before a reduction is left out{caller_location()}")
                result = original(before, [order.index(number) for number in axes], False, name)
                for number in axes if keep_dims else ():
                    result = module.expand_dims(result, number)
                return result
        return original(input, axis, keep_dims, name)

    return reduce


HOOKS = Hooks(tensorflow=on_tensorflow)
