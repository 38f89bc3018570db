"""What a source of elements offers, whatever its kind."""

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
        """Remarks for the user: files left out, columns stored as text."""

    @property
    def layout(self) -> dict[str, Any]:
        """What is needed to restore the elements as files, besides the features."""

    def __len__(self) -> int: ...

    def sizes(self) -> Numbers:
        """The largest record that each element can become, in bytes."""

    def fingerprint(self) -> str:
        """Changes when the source does."""

    def select(self, numbers: Numbers) -> Source:
        """Some of the elements, as a source of its own."""

    def name(self, number: int) -> str:
        """The name of an element in messages."""

    def read(self, number: int) -> Element:
        """One element. Raises Corrupt if it cannot be read."""
