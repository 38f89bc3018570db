"""Names of TensorFlow and Keras that mean the same: `tensorflow.keras.Model`, `tf_keras.Model` and `keras.Model`."""

from __future__ import annotations

_PACKAGES = (
    ("tensorflow.compat.v2", "tensorflow", True),
    ("tensorflow.compat.v1", "tensorflow", False),
    ("tensorflow._api.v2", "tensorflow", False),
    ("tensorflow.python.keras", "keras", False),
    ("tensorflow.python.eager.def_function", "tensorflow", False),
    ("tensorflow.python.eager.backprop", "tensorflow", False),
    ("tensorflow.python.data.ops.dataset_ops.DatasetV2", "tensorflow.data.Dataset", False),
    ("tensorflow.python.data.ops.dataset_ops", "tensorflow.data", False),
    ("tensorflow.keras", "keras", True),
    ("keras.api", "keras", True),
    ("keras.src", "keras", False),
    ("tf_keras", "keras", True),
    ("tf_slim", "tensorflow.contrib.slim", False),
)
"""(package, the package it corresponds to, whether it has the whole public API). Applied from top to bottom.

Where the last value is False, a name found there has the same meaning, but a new name cannot be assumed to exist: the
analysis reads such names, an edit does not write them.
"""
_COMPLETE = tuple(row for row in _PACKAGES if row[2])
KNOWN_PACKAGES = ("tensorflow", "keras", "tf_keras", "tensorflow_datasets", "tf_slim")
"""Top-level packages whose names the analysis knows."""


def canonical(dotted: str) -> str:
    """The one name for everything that means the same, private and old packages included."""
    return _renamed(dotted, _PACKAGES)


def canonical_public(dotted: str) -> str:
    """The same for packages with the whole public API only: what an edit may rely on."""
    return _renamed(dotted, _COMPLETE)


def _renamed(dotted: str, packages: tuple[tuple[str, str, bool], ...]) -> str:
    for package, same, _ in packages:
        if dotted.startswith(package) and (len(dotted) == len(package) or dotted[len(package)] == "."):
            dotted = same + dotted[len(package) :]
    return dotted
