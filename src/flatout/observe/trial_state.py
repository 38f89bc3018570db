"""What a trial adds to the observer: where its steps end, and what was counted there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flatout.model.vocabulary import StreamKind
from flatout.observe.streams import Stream


class TrialState:
    """The trial's part; a run without one leaves it as it is."""

    def __init__(self) -> None:
        self.at_step: Callable[[Stream, float, int], None] | None = None
        """Called as (stream, end, n) when a step has ended and all else was recorded; it may hold the program."""
        self.not_steps: frozenset[StreamKind] = frozenset()
        """Kinds of streams that are no step of this program, as is known from an earlier run of it."""
        self.compiled = False
        """Whether a Keras model was compiled: then the program is likely to train it."""
        self.held = 0
        """How often the program has been held at its gate."""
        self.epochs = 0
        """Iterators over datasets made so far: an epoch begins with each."""
        self.ran_kept = ""
        """Why a cell of a notebook ran though it is kept."""
        self.optimizers: dict[int, Any] = {}
        """Those that have made an update, by their identity."""
