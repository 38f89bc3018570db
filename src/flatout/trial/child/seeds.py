"""Makes two runs of a program alike that sets no seed: seeds every source of random numbers that can be seeded.

A program's own seeds come later and win. Where it requests fresh entropy (`np.random.default_rng()`,
`random.Random()`), it gets a number that depends on the calling function and on how often that has called: a lever that
makes TensorFlow draw one more number shifts nothing. What is drawn from the clock or from `os.urandom` stays different.
"""

from __future__ import annotations

import functools
import importlib
import pickle
import random
import sys
import zlib
from collections import Counter
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any

from flatout.observe.after_import import after_import
from flatout.observe.observer import Probe
from flatout.observe.private_names import Missing, patch

if TYPE_CHECKING:
    from flatout.observe.observer import Observer

_seed = 0
_requests: Counter[str] = Counter()


def install(seed: int) -> None:
    global _seed
    _seed = seed
    random.seed(seed)
    plain_seed = random.Random.seed

    @functools.wraps(plain_seed)
    def seeded(self: random.Random, a: Any = None, version: int = 2) -> None:
        plain_seed(self, _entropy(64) if a is None else a, version)

    random.Random.seed = seeded  # type: ignore[method-assign]
    random.seed = random._inst.seed
    after_import("numpy.random", _seed_numpy)


def state() -> bytes:
    """Where `random`, `numpy.random` and the requests for entropy are."""
    numpy = sys.modules.get("numpy.random")
    return pickle.dumps((random.getstate(), numpy.get_state() if numpy is not None else None, dict(_requests)))


def restore(state: bytes) -> None:
    of_python, of_numpy, requests = pickle.loads(state)
    random.setstate(of_python)
    if of_numpy is not None:
        importlib.import_module("numpy.random").set_state(of_numpy)
    _requests.clear()
    _requests.update(requests)


def on_tensorflow(observer: Observer, module: ModuleType) -> None:
    module.random.set_seed(_seed)

    def wrap(original: Any) -> Any:
        def non_deterministic_ints(shape: Any, dtype: Any = module.int64) -> Any:
            from tensorflow.python.ops import stateless_random_ops

            state = stateless_random_ops.stateless_random_uniform(
                shape, seed=[_entropy(31), _seed], minval=None, maxval=None, dtype=module.int64
            )
            return module.bitcast(state, dtype) if dtype == module.uint64 else module.cast(state, dtype)

        return non_deterministic_ints

    def wrap_graph(original: Any) -> Any:
        def __init__(self: Any, *args: Any, **keywords: Any) -> None:
            original(self, *args, **keywords)
            self.seed = _seed  # a graph of TF1 has a seed of its own; one of a tf.function sets it anew

        return __init__

    for key, change in (("random-state", wrap), ("graph-seed", wrap_graph)):
        try:
            patch(key, change)
        except Missing as missing:
            observer.note(f"two runs may differ: {missing}")


def _seed_numpy(module: Any) -> None:
    """All of numpy's generators take their entropy from one function; only the global one has a way of its own."""
    plain_seed = module.seed

    @functools.wraps(plain_seed)
    def seed(seed: Any = None) -> None:
        plain_seed(_entropy(32) if seed is None else seed)

    module.seed = module.mtrand.seed = seed
    module.bit_generator.randbits = _entropy
    plain_seed(_seed)


def _entropy(bits: int) -> int:
    caller = _caller(sys._getframe(1))
    _requests[caller] += 1
    words = (f"{_seed}:{caller}:{_requests[caller]}:{word}" for word in range(-(-bits // 32)))
    number = functools.reduce(lambda total, text: total << 32 | zlib.crc32(text.encode()), words, 0)
    return number % (1 << bits)


def _caller(frame: FrameType | None) -> str:
    """The calling function. Its line would not do: an edited copy of the program has other lines."""
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("random", "numpy", "flatout"):
        frame = frame.f_back
    return "" if frame is None else f"{frame.f_globals.get('__name__')}.{frame.f_code.co_name}"


PROBE = Probe("seeds", tensorflow=on_tensorflow)
