"""Where elements come from: one file per kind of source.

A source knows how many elements it has, how large each will be at most, and reads any of them by its number. `select`
cuts out some of them as a source of their own, which is small and can travel to another process or machine. A
pipeline (`pipeline.py`) gives its elements one after the other only, and takes its own way (`stream.py`).
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from flatout.data.shards.example import Element
from flatout.data.shards.schema import Feature
from flatout.model.errors import Internal

Numbers = NDArray[np.int64]


class Corrupt(Internal):
    """An element that cannot be read. The message says why."""


class Source(Protocol):
    kind: ClassVar[str]

    @property
    def features(self) -> tuple[Feature, ...]: ...

    @property
    def classes(self) -> tuple[str, ...]: ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know: files left out, columns taken as text."""

    @property
    def layout(self) -> dict[str, Any]:
        """What giving the elements back as files needs to know besides the features."""

    def __len__(self) -> int: ...

    def sizes(self) -> Numbers:
        """The largest record that each element can become, in bytes."""

    def fingerprint(self) -> str:
        """Changes when the source does."""

    def select(self, numbers: Numbers) -> Source:
        """Some of the elements, as a source of their own."""

    def name(self, number: int) -> str:
        """How to call an element in a message."""

    def read(self, number: int) -> Element:
        """One element. Raises Corrupt where it is not to be had."""
