"""What gradient tapes record, under the name of this TensorFlow."""

from __future__ import annotations

from types import ModuleType


def tapes() -> ModuleType:
    """Where `stop_recording` and `could_possibly_record` are."""
    try:
        from tensorflow.python.eager import record
    except ImportError:  # TensorFlow 2.12
        from tensorflow.python.eager import tape as record
    found: ModuleType = record
    return found
