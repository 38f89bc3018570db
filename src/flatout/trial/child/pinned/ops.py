"""TensorFlow's random ops, replaced by draws that depend on the place and the count.

All of `tf.random`, `tf.image.random_*`, `tf.nn.dropout` and the layers of tf_keras end in the functions of
`gen_random_ops`. A draw that cannot be pinned is made as ever.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from flatout.observe.observer import Observer
from flatout.observe.private_names import CANDIDATE_SAMPLERS, Missing, Wrap, patch
from flatout.trial.child.pinned import counters, numbers, places

Draw = Callable[..., Any]
"""Takes key, counter and the arguments of the op by name."""


def pin(observer: Observer) -> None:
    for name, draw in _DRAWS.items():
        _try(observer, f"draw-{name}", functools.partial(_pinned, draw, observer))
    for name in CANDIDATE_SAMPLERS:
        _try(observer, f"draw-{name}", functools.partial(_reseeded, observer))
    _try(observer, "op-seed", _op_seeds)


def _try(observer: Observer, key: str, wrap: Wrap) -> None:
    try:
        patch(key, wrap)
    except Missing as missing:
        observer.note(f"random numbers may differ: {missing}")


def _pinned(draw: Draw, observer: Observer, original: Any) -> Any:
    signature = inspect.signature(original)

    def function(*args: Any, **keywords: Any) -> Any:
        if not counters.possible():
            return original(*args, **keywords)
        place = places.here()
        try:
            bound = signature.bind(*args, **keywords)
            bound.apply_defaults()
            key, counter = counters.draw(place)
            result = draw(key, counter, bound.arguments)
        except Exception as error:
            _note(observer, place, error)
            return original(*args, **keywords)
        if counters.in_data():
            original(*args, **keywords)  # for levers, the function is still one that draws random numbers
        return result

    return function


def _note(observer: Observer, place: str, error: Exception) -> None:
    if place not in _noted:
        _noted.add(place)
        observer.note(f"random numbers of {places.shown(place)} are not pinned: {type(error).__name__}: {error}"[:300])


_noted: set[str] = set()


def _reseeded(observer: Observer, original: Any) -> Any:
    """An op that keeps its state to itself and has no stateless form runs eagerly, with a seed of its own each time."""
    signature = inspect.signature(original)

    def function(*args: Any, **keywords: Any) -> Any:
        if not counters.possible():
            return original(*args, **keywords)
        from tensorflow.python.framework import dtypes, ops
        from tensorflow.python.ops import script_ops

        place = places.here()
        bound = signature.bind(*args, **keywords).arguments
        classes = ops.convert_to_tensor(bound.pop("true_classes"), dtypes.int64)
        rest = {name: value for name, value in bound.items() if name not in ("seed", "seed2", "name")}

        def run(key: Any, counter: Any, classes: Any) -> Any:
            seeds = {"seed": int(key[0]) % (2**31 - 1) + 1, "seed2": int(counter[1]) % (2**31 - 1) + 1}
            return list(original(classes, **rest, **seeds))

        try:
            key, counter = counters.draw(place)
            types = [dtypes.int64, dtypes.float32, dtypes.float32]
            found = script_ops.eager_py_func(run, [key, counter, classes], types)
            found[0].set_shape([rest["num_sampled"]])
            found[1].set_shape([None, rest["num_true"]])
            found[2].set_shape([rest["num_sampled"]])
            return _samples(original)(*found)
        except Exception as error:
            _note(observer, place, error)
            return original(*args, **keywords)

    return function


def _samples(original: Any) -> Any:
    """Makes the tuple that the op returns, with its names."""
    name = "".join(part.title() for part in original.__name__.split("_"))
    return getattr(inspect.getmodule(original), f"_{name}Output")


def _op_seeds(original: Any) -> Any:
    """Ops that are not pinned, and the shuffles of tf.data: where the program gives no seed, the place does."""

    def get_seed(op_seed: Any) -> Any:
        return original(op_seed) if op_seed is not None else counters.op_seed(places.here())

    return get_seed


# ── the draws ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _uniform(key: Any, counter: Any, given: dict[str, Any]) -> Any:
    return numbers.uniform(given["shape"], key, counter, given["dtype"])


def _normal(key: Any, counter: Any, given: dict[str, Any]) -> Any:
    return numbers.normal(given["shape"], key, counter, given["dtype"])


def _truncated(key: Any, counter: Any, given: dict[str, Any]) -> Any:
    return numbers.truncated_normal(given["shape"], key, counter, given["dtype"])


def _integers(key: Any, counter: Any, given: dict[str, Any]) -> Any:
    return numbers.integers(given["shape"], key, counter, given["minval"], given["maxval"])


def _shuffle(key: Any, counter: Any, given: dict[str, Any]) -> Any:
    return numbers.shuffled(given["value"], key, counter)


def _categories(key: Any, counter: Any, given: dict[str, Any]) -> Any:
    return numbers.categories(given["logits"], given["num_samples"], key, counter, given["output_dtype"])


def _bounded(key: Any, counter: Any, given: dict[str, Any]) -> Any:
    from tensorflow.python.ops import gen_stateless_random_ops as stateless

    return stateless.stateless_parameterized_truncated_normal(
        given["shape"],
        _seed(key, counter),
        given["means"],
        given["stdevs"],
        given["minvals"],
        given["maxvals"],
    )


def _gamma(key: Any, counter: Any, given: dict[str, Any]) -> Any:
    from tensorflow.python.framework import ops
    from tensorflow.python.ops import gen_stateless_random_ops as stateless

    alpha = ops.convert_to_tensor(given["alpha"])
    return stateless.stateless_random_gamma_v2(_with_shape_of(given["shape"], alpha), _seed(key, counter), alpha)


def _poisson(key: Any, counter: Any, given: dict[str, Any]) -> Any:
    from tensorflow.python.framework import ops
    from tensorflow.python.ops import gen_stateless_random_ops as stateless

    rate = ops.convert_to_tensor(given["rate"])
    shape = _with_shape_of(given["shape"], rate)
    return stateless.stateless_random_poisson(shape, _seed(key, counter), rate, given["dtype"])


def _with_shape_of(shape: Any, parameter: Any) -> Any:
    """These ops draw `shape` numbers for each value of their parameter; their stateless forms are told the whole."""
    from tensorflow.python.ops import array_ops

    return array_ops.concat([shape, array_ops.shape(parameter)], 0)


def _seed(key: Any, counter: Any) -> Any:
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import array_ops

    return array_ops.bitcast(array_ops.concat([key, counter[1:]], 0), dtypes.int64)


_DRAWS: dict[str, Draw] = {
    "random_uniform": _uniform,
    "random_standard_normal": _normal,
    "truncated_normal": _truncated,
    "random_uniform_int": _integers,
    "random_shuffle": _shuffle,
    "multinomial": _categories,
    "parameterized_truncated_normal": _bounded,
    "random_gamma": _gamma,
    "random_poisson_v2": _poisson,
}
