"""Waiting for something to happen: by looking, with a deadline, and never by hoping that a pause was long enough."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")


def until(look: Callable[[], Found], seconds: float = 120.0) -> Found:
    """What `look` gives as soon as it is true. Fails where it does not become so in time."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < deadline, f"not true within {seconds:.0f} s"
        time.sleep(0.005)  # between two looks
    return found
