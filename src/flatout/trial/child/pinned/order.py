"""The order of elements: what runs side by side in tf.data delivers in order, even where the program leaves it open."""

from __future__ import annotations

import inspect
from typing import Any

from flatout.observe.observer import Observer
from flatout.observe.private_names import UNORDERED_OPS, Missing, patch


def pin(observer: Observer) -> None:
    for name in UNORDERED_OPS:
        try:
            patch(f"order-{name}", _ordered)
        except Missing as missing:
            observer.note(f"elements may come in another order: {missing}")


def _ordered(original: Any) -> Any:
    signature = inspect.signature(original)

    def function(*args: Any, **keywords: Any) -> Any:
        bound = signature.bind(*args, **keywords)
        bound.arguments["deterministic"] = "true"
        return original(*bound.args, **bound.kwargs)

    return function
