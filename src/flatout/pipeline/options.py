"""Options of a dataset by their dotted names: `autotune.enabled`, `threading.private_threadpool_size`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def value(dataset: Any, name: str) -> Any:
    """The option of this name; None where it was never set, or where this TensorFlow does not have it."""
    found = dataset.options()
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def changed(dataset: Any, settings: Mapping[str, Any]) -> Any:
    """The dataset with these options; its others stay as they are."""
    import tensorflow as tf

    options = tf.data.Options()
    for name, setting in settings.items():
        *holders, last = name.split(".")
        holder: Any = options
        for part in holders:
            holder = getattr(holder, part)
        setattr(holder, last, setting)
    return dataset.with_options(options)
