"""Generators that count for themselves: those of Keras and `tf.random.Generator`.

A state of their own makes them draw alike, traced or not. Two things are left: XLA makes other numbers of the same
bits, and in functions of tf.data that run side by side the order of the calls is left to chance.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from flatout.observe.observer import Observer
from flatout.observe.private_names import Missing, Wrap, patch
from flatout.trial.child.pinned import counters, numbers, places


def pin_tensorflow(observer: Observer) -> None:
    for name, make in _NUMBERS.items():
        _try(observer, f"draw-{name}", _by_formula(make))
    _try(observer, "draw-stateless_multinomial", _categories)
    _try(observer, "generator-skip", _skips)


def pin_keras(observer: Observer) -> None:
    _try(observer, "seed-generator", _seed_generators)


def _try(observer: Observer, key: str, wrap: Wrap) -> None:
    try:
        patch(key, wrap)
    except Missing as missing:
        observer.note(f"random numbers may differ: {missing}")


def _by_formula(make: Callable[[dict[str, Any]], Any]) -> Wrap:
    def wrap(original: Any) -> Any:
        signature = inspect.signature(original)

        def function(*args: Any, **keywords: Any) -> Any:
            try:
                bound = signature.bind(*args, **keywords)
                bound.apply_defaults()
                return make(bound.arguments)
            except Exception:
                return original(*args, **keywords)

        return function

    return wrap


def _categories(original: Any) -> Any:
    def stateless_multinomial(
        logits: Any, num_samples: Any, seed: Any, output_dtype: Any = None, name: Any = None
    ) -> Any:
        from tensorflow.python.framework import dtypes
        from tensorflow.python.ops import gen_stateless_random_ops_v2 as stateless

        key, counter = stateless.stateless_random_get_key_counter(seed)
        return numbers.categories(logits, num_samples, key, counter, output_dtype or dtypes.int64)

    return stateless_multinomial


def _skips(original: Any) -> Any:
    """The state of a `tf.random.Generator`: [counter, counter, key]."""

    def rng_read_and_skip(resource: Any, alg: Any, delta: Any, name: Any = None) -> Any:
        state = original(resource, alg, delta, name)
        if not counters.in_data():
            return state
        from tensorflow.python.framework import dtypes
        from tensorflow.python.ops import array_ops

        key, counter = counters.draw(f"generator in {places.here()}")
        return array_ops.bitcast(array_ops.concat([counter, key], 0), dtypes.int64)

    return rng_read_and_skip


def _seed_generators(original: Any) -> Any:
    def next(self: Any, *args: Any, **keywords: Any) -> Any:
        seed = original(self, *args, **keywords)
        from tensorflow.python.framework import dtypes, tensor
        from tensorflow.python.ops import array_ops, math_ops

        if not isinstance(seed, tensor.Tensor) or not counters.in_data():
            return seed  # of another backend, or counted by its own state
        key, counter = counters.draw(f"generator {self._initial_seed}")
        pair = array_ops.bitcast(array_ops.concat([key, counter[1:]], 0), dtypes.int64)
        return math_ops.cast(math_ops.floormod(pair, 2**31 - 1), seed.dtype)

    return next


_NUMBERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "stateless_random_uniform_v2": lambda given: numbers.uniform(
        given["shape"], given["key"], given["counter"], given["dtype"]
    ),
    "stateless_random_normal_v2": lambda given: numbers.normal(
        given["shape"], given["key"], given["counter"], given["dtype"]
    ),
    "stateless_truncated_normal_v2": lambda given: numbers.truncated_normal(
        given["shape"], given["key"], given["counter"], given["dtype"]
    ),
    "stateless_random_uniform_int_v2": lambda given: numbers.integers(
        given["shape"], given["key"], given["counter"], given["minval"], given["maxval"]
    ),
    "stateless_shuffle": lambda given: numbers.shuffled(given["value"], given["key"], given["counter"]),
}
