"""Elements of pipelines by their fingerprints: what one pass has given, to hold against another."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from flatout.observe import stages


def fingerprints(dataset: Any) -> Iterator[bytes]:
    """A fingerprint of each element: types, shapes and every bit."""
    for element in dataset:
        yield fingerprint(element)


def fingerprint(element: Any) -> bytes:
    import numpy as np
    import tensorflow as tf

    digest = hashlib.blake2b(digest_size=16)
    for tensor in tf.nest.flatten(element, expand_composites=True):
        values = np.asarray(tensor)
        digest.update(f"{values.dtype}{values.shape}".encode())
        if values.dtype == object:
            for text in values.reshape(-1):
                digest.update(len(text).to_bytes(8, "little") + text)
        else:
            digest.update(np.ascontiguousarray(values).tobytes())
    return digest.digest()


def any_order_allowed(dataset: Any) -> bool:
    """Whether the program allows any order."""
    if dataset.options().deterministic is False:
        return True
    chain = [stage for stage, _ in stages.chain(dataset)]
    return any(stages.kind(stage) == "Shuffle" or getattr(stage, "_deterministic", "") == "false" for stage in chain)
