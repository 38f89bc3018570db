"""Traces the parts of an eager step one by one: calls of Keras models and losses, updates of optimizers.

For a step that is in no function of its own, or that does things which a graph cannot hold. The tape stays eager and
records each part as one operation.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType
from typing import Any, NamedTuple

from flatout.cures._fingerprint import PLAIN
from flatout.cures._free_variables import FreeVariables
from flatout.cures._function_replacement import is_data
from flatout.cures._tracing import Traced, Unfit, inside
from flatout.observe.injection import Injection
from flatout.observe.private_names import Missing, patch
from flatout.source import side_effects, users_code

MOST_KEPT = 32
_Bound = tuple[FunctionType, tuple[Any, ...]]
"""A function, and the object that it is a method of."""


class Parts:
    """All parts of one kind: the models, the losses, or the optimizers."""

    def __init__(self, injection: Injection, what: str) -> None:
        from tensorflow.python.eager import context

        self.injection = injection
        self.what = what
        self.thread = injection.observer.thread
        self.eager = context.executing_eagerly
        self.kept: dict[tuple[Any, ...], tuple[Traced | None, list[Any]]] = {}

    def eagerly(self) -> bool:
        """Whether a call now is an eager one of the program itself, and not part of another traced call."""
        return not inside.now and not self.thread.busy and self.eager()

    def call(self, name: str, part: Part, run: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        found = self.kept.get(part.key)
        if found is None:
            if len(self.kept) >= MOST_KEPT:
                return run(*args, **kwargs)
            made = Traced(
                run,
                "".join(c if c.isalnum() else "_" for c in name),
                changed=functools.partial(self.injection.changed, f"{self.what} are traced"),
                left=lambda why: self.injection.note(f"{name} is not traced: {why}"),
            )
            found = self.kept[part.key] = (made, part.objects)
        if found[0] is None:
            return run(*args, **kwargs)
        inside.now = True
        try:
            return found[0].call(args, kwargs)
        finally:
            inside.now = False

    def judged(self, name: str, part: Part, against: str) -> Part:
        """The part, which is left as it is where something speaks against a trace of it."""
        if against and part.key not in self.kept:
            self.kept[part.key] = (None, part.objects)
            self.injection.note(f"{name} is not traced: {against}")
        return part

    def described(self, name: str, part: Callable[[], Part]) -> Part | None:
        """None where it cannot be described: the program's objects may answer to anything in any way."""
        try:
            return part()
        except Exception as error:
            self.injection.note(f"{name} is not traced: {type(error).__name__}: {error}"[:300])
            return None


class Part(NamedTuple):
    """What one graph is made for: it is used again only where all of this is the same."""

    key: tuple[Any, ...]
    objects: list[Any]
    """Held, so that no other object gets one of the identities in `key`."""


class _Around:
    """What a graph of an object's call depends on besides its data: what the program's own functions in it read."""

    def __init__(
        self, holder: Any, functions: Iterable[tuple[FunctionType, tuple[Any, ...]]], against: str = ""
    ) -> None:
        self.holder = holder
        self.against = against
        self.free: list[tuple[FreeVariables, tuple[Any, ...]]] = []
        if not against:
            try:
                self.free = [(FreeVariables(function, given), given) for function, given in functions]
            except Unfit as error:
                self.against = str(error)

    def part(self, *more: Any) -> Part:
        """`more`: further values that it depends on."""
        values = [value for free, given in self.free for value in free.now(given)]
        held = [value for free, given in self.free for value in free.objects(given)]
        return Part((id(self.holder), *more, *values), [self.holder, *held])


class _Model(_Around):
    """Of a model also which layers are frozen, as batch normalization behaves otherwise then."""

    def __init__(self, model: Any) -> None:
        calls = ((call, (layer,)) for layer, call in _own_calls(model))
        super().__init__(model, calls, _against(model) or "")
        self.layers = list(model._flatten_layers())
        self.own = _own_layers(model)

    def is_current(self, model: Any) -> bool:
        """Whether it still has the same layers: `model.pop()`, `model.add(head)`."""
        return self.own == _own_layers(model)

    def part(self, *more: Any) -> Part:
        key, held = super().part(self.own, tuple(getattr(layer, "trainable", True) for layer in self.layers), *more)
        return Part(key, [*held, *self.layers])


def trace_models(injection: Injection, key: str) -> None:
    parts = Parts(injection, "calls of models")
    known: dict[int, _Model] = {}

    def wrap(original: Any) -> Any:
        def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
            fit = parts.eagerly() and getattr(self, "built", False) and is_data(args) and is_data(kwargs)
            if not fit or any(getattr(value, "_keras_mask", None) is not None for value in (*args, *kwargs.values())):
                return original(self, *args, **kwargs)
            name = f"the model {self.name}"
            part = parts.described(name, lambda: described(self, name))
            if part is None:
                return original(self, *args, **kwargs)
            return parts.call(name, part, functools.partial(original, self), *args, **kwargs)

        return __call__

    def described(model: Any, name: str) -> Part:
        around = known.get(id(model))
        if around is None or not around.is_current(model):
            around = known[id(model)] = _Model(model)
        return parts.judged(name, around.part(), around.against)

    _patch(injection, key, wrap)


def trace_losses(injection: Injection, key: str) -> None:
    parts = Parts(injection, "calls of losses")
    known: dict[int, _Around] = {}

    def wrap(original: Any) -> Any:
        def __call__(self: Any, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
            given = (y_true, y_pred, sample_weight)
            if not parts.eagerly() or not is_data(given) or getattr(y_pred, "_keras_mask", None) is not None:
                return original(self, *given)
            name = f"the loss {self.name}"
            part = parts.described(name, lambda: described(self, name))
            if part is None:
                return original(self, *given)
            return parts.call(name, part, functools.partial(original, self), *given)

        return __call__

    def described(loss: Any, name: str) -> Part:
        around = known.get(id(loss))
        if around is None:
            around = known[id(loss)] = _Around(loss, _own_functions(loss, ("call", "fn")))
        return parts.judged(name, around.part(), around.against)

    _patch(injection, key, wrap)


def trace_updates(injection: Injection, key: str) -> None:
    """Keras 3: `apply(gradients, variables)`."""
    parts = Parts(injection, "updates of optimizers")
    known: dict[int, _Around] = {}

    def wrap(original: Any) -> Any:
        def apply(self: Any, grads: Any, trainable_variables: Any = None) -> Any:
            gradients = list(grads)
            variables = None if trainable_variables is None else list(trainable_variables)
            if not parts.eagerly() or not self.built or not gradients:
                return original(self, gradients, variables)

            def update(*values: Any) -> None:
                original(self, list(values), variables)

            name = f"the optimizer {self.name}"
            part = parts.described(name, lambda: _update_part(parts, known, self, variables or []))
            if part is None:
                return original(self, gradients, variables)
            return parts.call(name, part, update, *gradients)

        return apply

    _patch(injection, key, wrap)


def trace_legacy_updates(injection: Injection, key: str) -> None:
    """tf_keras: `apply_gradients(pairs)`."""
    parts = Parts(injection, "updates of optimizers")
    known: dict[int, _Around] = {}

    def wrap(original: Any) -> Any:
        def apply_gradients(self: Any, grads_and_vars: Any, *args: Any, **kwargs: Any) -> Any:
            pairs = list(grads_and_vars)
            if not parts.eagerly() or not getattr(self, "_built", False) or args or kwargs or not pairs:
                return original(self, pairs, *args, **kwargs)
            variables = [variable for _, variable in pairs]

            def update(*values: Any) -> None:
                original(self, list(zip(values, variables, strict=True)))

            name = f"the optimizer {self.name}"
            part = parts.described(name, lambda: _update_part(parts, known, self, variables))
            if part is None:
                return original(self, pairs)
            parts.call(name, part, update, *(value for value, _ in pairs))
            return self.iterations

        return apply_gradients

    _patch(injection, key, wrap)


def _update_part(parts: Parts, known: dict[int, _Around], optimizer: Any, variables: list[Any]) -> Part:
    """An update depends on its variables, on the numbers that the optimizer keeps (`clipnorm`), and on what the
    program's own optimizer or schedule reads."""
    around = known.get(id(optimizer))
    if around is None:
        schedule = getattr(optimizer, "_learning_rate", None)
        functions = [*_own_functions(optimizer, ("update_step", "apply")), *_own_functions(schedule, ("__call__",))]
        around = known[id(optimizer)] = _Around(optimizer, functions)
    numbers = tuple((name, value) for name, value in vars(optimizer).items() if isinstance(value, PLAIN))
    key, held = around.part(numbers, *map(id, variables))
    return parts.judged(f"the optimizer {optimizer.name}", Part(key, [*held, *variables]), around.against)


def _own_functions(holder: Any, names: Iterable[str]) -> Iterator[_Bound]:
    """Methods of the program's own classes, and functions of the program that an object of Keras holds."""
    for name in names:
        method, held = (
            getattr(type(holder), name, None),
            vars(holder).get(name) if hasattr(holder, "__dict__") else None,
        )
        if isinstance(method, FunctionType) and users_code.is_users(method.__code__):
            yield method, (holder,)
        if isinstance(held, FunctionType) and users_code.is_users(held.__code__):
            yield held, ()


def _own_layers(model: Any) -> tuple[int, ...]:
    layers = getattr(model, "_layers", None)
    return tuple(map(id, layers)) if isinstance(layers, (list, tuple)) else ()


def _against(model: Any) -> str | None:
    """Why a model's call must not be traced: a layer has side effects, or adds a loss."""
    for layer in model._flatten_layers():
        if getattr(layer, "_losses", None):
            return f"{layer.name} adds a loss of its own"
    for _, call in _own_calls(model):
        code = call.__code__
        why = side_effects.reason_against(users_code.absolute(code.co_filename), code.co_firstlineno)
        if why:
            return f"in {call.__qualname__}, {why}"
    return None


def _own_calls(model: Any) -> Iterator[tuple[Any, FunctionType]]:
    """Layers of the program's own classes, with their `call`."""
    for layer in model._flatten_layers():
        call = getattr(type(layer), "call", None)
        if isinstance(call, FunctionType) and users_code.is_users(call.__code__):
            yield layer, call


def _patch(injection: Injection, key: str, wrap: Callable[[Any], Any]) -> None:
    try:
        patch(key, wrap)
    except Missing as missing:
        injection.note(f"this TensorFlow lacks {missing}")
