"""Runs a Python function that was written to run eagerly through a tf.function, or leaves it alone for good.

A function is called in several ways: with other keywords after training (`training=False`), with None for a state that
does not exist yet, with data of another rank. Each way has a tf.function of its own: one for all of them would relax
the signature across them, which TensorFlow answers with an `IndexError` once the keywords differ in number.

The first call in each way runs as written: it creates variables and shows what the function returns. Later calls go
through a tf.function made of the same code, and its results are converted to the types that the eager call returned (a
Python float stays one). When tracing fails, nothing has been computed yet: that call and all later ones in the same way
run as written.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from types import FunctionType
from typing import Any

from flatout.cures._scalars import Scalars
from flatout.model.errors import Internal


class Unfit(Internal):
    """The function must not or cannot be traced; the text says why."""


class Inside(threading.local):
    """Whether this thread is inside a call that is handled here; calls within it are part of it."""

    now = False


inside = Inside()

_VARIANTS = ((True, False), (True, True), (False, False), (False, True))
"""What is tried in turn until a trace succeeds: whether shapes may be relaxed (some steps need them known), whether
NumPy's doubles go in as float32 (eagerly they take the type of the tensor beside them; a tensor would not)."""

_BEFORE = (TypeError, ValueError, LookupError, AttributeError, AssertionError, NotImplementedError)
"""Errors of Python that TensorFlow raises while it looks for the graph of a call: nothing has been computed then."""


MOST_WAYS = 8
"""Ways of calling one function that are traced; in any further one it runs as written."""
MOST_TRACES = 12
"""Traces of one way. More of them mean that each call brings a new Python value, and cost more than they save."""


class Traced:
    """One callable with one set of Python objects around it, in every way that it is called."""

    def __init__(
        self, run: Callable[..., Any], name: str, changed: Callable[[], None], left: Callable[[str], None]
    ) -> None:
        """`changed` is called after each call that went through a graph, `left` with the reason where none can be."""
        self.run = run
        self.name = name
        self.changed = changed
        self.left = left
        self.ways: dict[Any, _Way] = {}

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            key = (tuple(map(_kind, args)), tuple((name, _kind(value)) for name, value in kwargs.items()))
            way = self.ways.get(key)
        except Exception:  # the program's objects may answer to anything in any way, to `hash` and `==` as well
            return self.run(*args, **kwargs)
        if way is None:
            if len(self.ways) >= MOST_WAYS:
                return self.run(*args, **kwargs)
            way = self.ways[key] = _Way(self.run, self.name)
            return way.watch(args, kwargs)
        if way.off:
            return self.run(*args, **kwargs)
        try:
            result = way.call(args, kwargs)
        except Unfit as error:
            way.off = True
            self.left(str(error))
            return self.run(*args, **kwargs)
        self.changed()
        return result


def _kind(value: Any) -> Any:
    """What makes another way of calling: a flag or a text itself, data by type and rank, a structure by its parts."""
    import numpy as np

    if value is None or isinstance(value, (bool, str, bytes)):
        return (type(value), value)
    if isinstance(value, (int, float, complex)):
        return type(value)
    if isinstance(value, (np.ndarray, np.generic)):
        return ("array", value.dtype.str, value.ndim)
    if isinstance(value, (list, tuple)):
        return (type(value), tuple(map(_kind, value)))
    if isinstance(value, dict):
        return (dict, tuple((name, _kind(part)) for name, part in value.items()))
    dtype = getattr(value, "dtype", None)
    if dtype is not None and hasattr(value, "shape"):
        return (type(value), dtype, getattr(value.shape, "rank", None))
    return (type(value), id(value))


class _Way:
    """One way of calling it."""

    def __init__(self, run: Callable[..., Any], name: str) -> None:
        self.run = run
        self.name = name
        self.off = False
        self.calls = 0
        self.traces = 0
        self.scalars = Scalars()
        self.structure: Any = None
        self.leaves: list[Callable[[Any], Any] | None] = []
        """What to make of each tensor that the graph gives back; None where it stays as it is."""
        self.nones: list[bool] = []
        self.adapts = False
        self.tracing = False
        self.failure = ""
        self.variants = iter(_VARIANTS)
        self.single = False
        self.function: Any = None

    def watch(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """One more eager call, to see what it gives back."""
        import tensorflow as tf

        result = self.run(*args, **kwargs)
        try:
            flat = tf.nest.flatten(result)
            self.structure = tf.nest.map_structure(lambda leaf: 0, result)
            self.leaves = [_maker(leaf) for leaf in flat]
        except Unfit as error:
            self.failure = str(error)
            return result
        except Exception as error:  # a dictionary whose keys have no order, an object that nothing flattens
            self.failure = f"what it gives back is no structure of tensors: {_told(error)}"
            return result
        self.nones = [leaf is None for leaf in flat]
        self.adapts = any(make is not None for make in self.leaves)
        self._next_variant()
        return result

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of the graph. Raises `Unfit` where none can be had; nothing has been computed then."""
        import tensorflow as tf

        if self.function is None:
            raise Unfit(self.failure)
        self.calls += 1
        if self.traces > MOST_TRACES and self.traces > self.calls / 4:
            raise Unfit(f"each call brings other Python values: {self.traces} traces in {self.calls} calls")
        while True:
            given, named = self.scalars.replace(args, kwargs)
            if self.single:
                given, named = tf.nest.map_structure(_as_single, (given, named))
            self.tracing = False
            try:
                result = self.function(*given, **named)
            except tf.errors.OutOfRangeError:
                return self.run(*args, **kwargs)  # the data has ended: eagerly that is a StopIteration
            except Exception as error:
                if not self.tracing and (isinstance(error, tf.errors.OpError) or not isinstance(error, _BEFORE)):
                    raise  # the program's own error, from the graph instead of from an eager op
                self._failed(error, _has_doubles((args, kwargs)))
                continue
            if not self.adapts:
                return result
            flat = zip(self.leaves, tf.nest.flatten(result), strict=True)
            leaves = [leaf if make is None else make(leaf) for make, leaf in flat]
            return tf.nest.pack_sequence_as(self.structure, leaves)

    def _next_variant(self, has_doubles: bool = False) -> bool:
        import tensorflow as tf

        variant = next((v for v in self.variants if has_doubles or not v[1]), None)
        if variant is None:
            return False
        relaxed, self.single = variant
        run = self.run
        began = tf.autograph.experimental.do_not_convert(self._began)
        finished = tf.autograph.experimental.do_not_convert(self._finished)

        def step(*args, **kwargs):  # type: ignore[no-untyped-def]  # AutoGraph reads this source
            began()
            return finished(run(*args, **kwargs))

        if isinstance(run, FunctionType):
            functools.update_wrapper(step, run)  # its signature; AutoGraph takes no other callable for a wrapped one
        step.__name__ = self.name
        self.function = tf.function(step, reduce_retracing=relaxed)
        return True

    def _began(self) -> None:
        self.tracing = True
        self.traces += 1

    def _finished(self, result: Any) -> Any:
        """The end of each trace: does the graph give back what the eager call did?"""
        import tensorflow as tf

        tf.nest.assert_same_structure(self.structure, result, check_types=False)
        flat = tf.nest.flatten(result)
        for leaf in flat:
            _maker(leaf)
        if [leaf is None for leaf in flat] != self.nones:
            raise Unfit("it gives back another structure when it is traced")
        self.tracing = False
        return result

    def _failed(self, error: Exception, has_doubles: bool) -> None:
        self.failure = _told(error)
        if self.scalars.as_tensors and not self.scalars.off:
            self.scalars.off = True
        elif not self._next_variant(has_doubles):
            raise Unfit(self.failure) from None


def _told(error: Exception) -> str:
    said = (str(error).strip().splitlines() or [""])[-1].strip()[:200]
    return said if type(error).__name__ in said else f"{type(error).__name__}: {said}"


def _maker(leaf: Any) -> Callable[[Any], Any] | None:
    """How to make what the eager call gave back from the tensor that stands for it in a graph's result."""
    import numpy as np
    import tensorflow as tf

    if leaf is None:
        return None
    if isinstance(leaf, tf.Variable) or (hasattr(leaf, "assign") and hasattr(leaf, "trainable")):
        raise Unfit("it gives back a variable")
    if getattr(leaf, "_keras_mask", None) is not None:
        raise Unfit("Keras fastens a mask to what it gives back, and a graph would lose it")
    if tf.is_tensor(leaf) or isinstance(leaf, tf.IndexedSlices):
        return None
    if isinstance(leaf, (bool, int, float)):
        return type(leaf)
    if isinstance(leaf, str):
        return lambda tensor: tensor.numpy().decode()
    if isinstance(leaf, (np.ndarray, np.generic)):
        return lambda tensor: tensor.numpy()
    raise Unfit(f"it gives back a {type(leaf).__name__}")


def _has_doubles(given: Any) -> bool:
    import tensorflow as tf

    try:
        return any(map(_is_double, tf.nest.flatten(given)))
    except Exception:  # no structure that TensorFlow can flatten
        return False


def _is_double(value: Any) -> bool:
    import numpy as np

    return isinstance(value, (np.ndarray, np.generic)) and value.dtype == np.float64


def _as_single(value: Any) -> Any:
    return value.astype("float32") if _is_double(value) else value
