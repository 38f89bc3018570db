"""Sets the precision in which Keras layers compute, for every layer that is built afterwards."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from flatout.cures._spec import Hooks
from flatout.observe.imports import loaded
from flatout.observe.injection import Injection
from flatout.observe.private_names import package_of, patch, replace, resolve


def hooks(policy: str) -> Hooks:
    """Layers of Keras 3 and Keras 2 compute under this policy."""
    return Hooks(
        keras=lambda injection, module: compute_in(injection, policy),
        tf_keras=lambda injection, module: compute_in_legacy(injection, policy),
    )


def compute_in(injection: Injection, policy: str) -> None:
    """Keras 3: a global policy, set again whenever the session is cleared."""
    import keras

    keras.config.set_dtype_policy(policy)
    _after("clear-session", lambda: keras.config.set_dtype_policy(policy))
    _tell(injection, "layer-init", policy)
    _hand_back_single("model-call", policy)


def compute_in_legacy(injection: Injection, policy: str) -> None:
    _, _, set_policy = resolve("legacy-dtype-policy")
    set_policy(policy)
    _after("legacy-clear-session", lambda: set_policy(policy))
    _tell(injection, "legacy-layer-init", policy)
    _hand_back_single("legacy-model-call", policy)


def replace_everywhere(package: str, original: Any, wrapper: Any) -> None:
    """Replace a function in all modules of a package that import it, under whatever name."""
    for holder in loaded():
        if holder.__name__.split(".")[0] == package:
            for alias, value in list(vars(holder).items()):
                if value is original:
                    replace(holder, alias, wrapper)


def _after(key: str, then: Callable[[], None]) -> None:
    _, _, original = resolve(key)

    def clear_session(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        then()
        return result

    clear_session.__doc__ = original.__doc__
    clear_session.__wrapped__ = original  # type: ignore[attr-defined]
    replace_everywhere(package_of(key), original, clear_session)


def _tell(injection: Injection, key: str, policy: str) -> None:
    """Count a change for each layer that is built under the policy."""

    def wrap(original: Any) -> Any:
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            original(self, *args, **kwargs)
            if getattr(getattr(self, "dtype_policy", None), "name", "") == policy:
                injection.changed(f"layers compute in {policy}")

        __init__.__signature__ = inspect.signature(original)  # type: ignore[attr-defined]  # Keras asks for it
        return __init__

    patch(key, wrap)


def _hand_back_single(key: str, policy: str) -> None:
    """Losses and metrics around a model expect float32: its outermost call returns that."""
    half = policy.removeprefix("mixed_")
    depth = 0

    def wrap(original: Any) -> Any:
        def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
            nonlocal depth
            depth += 1
            try:
                result = original(self, *args, **kwargs)
            finally:
                depth -= 1
            return result if depth else _single(result, half)

        return __call__

    patch(key, wrap)


def _single(result: Any, half: str) -> Any:
    import tensorflow as tf

    def cast(leaf: Any) -> Any:
        if not tf.is_tensor(leaf) or leaf.dtype != half or type(leaf).__name__ == "KerasTensor":
            return leaf
        single = tf.cast(leaf, tf.float32)
        mask = getattr(leaf, "_keras_mask", None)
        if mask is not None:
            single._keras_mask = mask
        return single

    return tf.nest.map_structure(cast, result)
