"""Streams of candidate steps.

A program shows its steps in several ways at once: a batch of `fit`, the tf.function inside it, an optimizer update.
Each way is a stream of ticks. All are recorded, and `reading` decides afterwards which stream is the step. While the
program runs, the trace window and the gate follow the stream of the highest rank that is active.
"""

from __future__ import annotations

import itertools
import sys
from typing import Any

from flatout.model.vocabulary import StreamKind
from flatout.observe.recorder import Recorder
from flatout.source import users_code

RANK: dict[StreamKind, int] = {
    "fit": 100,
    "train-function": 90,
    "apply": 80,
    "session": 70,
    "tape": 60,
    "predict": 50,
    "evaluate": 45,
    "function": 40,
    "model": 30,
    "input": 10,
}
"""Which kind is the step when several cover the same time: the one nearest to what a user calls a step."""

TRAINING: frozenset[StreamKind] = frozenset(("fit", "train-function", "apply", "session", "tape"))
"""Kinds whose ticks are steps of training. All others rank lower."""

MOST_STREAMS = 2000


def rank_of(kind: str) -> int:
    """The rank of a kind that was read from a recording; 0 for one that this version does not know."""
    return next((rank for known, rank in RANK.items() if known == kind), 0)


class Stream:
    __slots__ = ("count", "first", "id", "kind", "last", "name", "rank", "seen")

    def __init__(self, number: int, kind: StreamKind, name: str = "") -> None:
        self.id = number
        self.kind = kind
        self.name = name
        self.rank = RANK[kind]
        self.count = 0
        """Steps, of which one tick may stand for several."""
        self.seen = 0
        """Ticks."""
        self.first = 0.0
        self.last = 0.0


class Streams(dict[object, Stream]):
    """All streams of the program, by a key that tells streams of one kind apart."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self._recorder = recorder
        self._numbers = itertools.count()

    def make(self, kind: StreamKind, key: object, name: str, **data: Any) -> Stream:
        """Make a stream. The user's stack at this moment is where its steps are in the source.

        A program that makes an optimizer or a function for every step makes a stream for each: those beyond the most
        share one of their kind.
        """
        if len(self) >= MOST_STREAMS:
            shared = ("further", kind)
            if shared not in self:
                self[shared] = Stream(next(self._numbers), kind)
                self._recorder.fact("stream", id=self[shared].id, of=kind, name=f"further {kind}", stack=[], **data)
            return self[shared]
        stream = self[key] = Stream(next(self._numbers), kind, name)
        try:
            stack = users_code.stack(sys._getframe(2))
        except Exception:  # a step without its line is still a step
            stack = []
        self._recorder.fact("stream", id=stream.id, of=kind, name=name, stack=stack, **data)
        return stream
