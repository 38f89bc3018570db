"""What a trial at its gate and its parent say to each other, one line each."""

from __future__ import annotations

from dataclasses import dataclass, field

from flatout.observe.levers import LeverReport

# ── to the gate ──────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Go:
    """Run about this many steps and report them."""

    steps: int
    calls: int = 3
    """At least so many calls, however many steps each of them makes."""


# ── from the gate ────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Warm:
    """The program has warmed up and is held for the first time."""

    steps: int
    seconds: float
    """What these steps took."""
    levers: dict[str, LeverReport] = field(default_factory=dict)
    ran_kept: str = ""
    """Why a cell that is kept ran all the same; empty where none did."""


@dataclass(frozen=True)
class BlockDone:
    times: tuple[float, ...]
    """Seconds of each call, from the end of the one before."""
    counts: tuple[int, ...]
    """Steps of each call."""
    steps: int
    """Steps of the block: updates of the optimizers where there are any."""
    cpu: float
    epoch_steps: int
    """Steps from one start of a dataset to the next; 0 while unknown."""
    epoch_starts: tuple[int, ...]
    """Calls before which a dataset was begun anew."""
    queued: bool = False
    """Calls only queue their work: the first and the last time include the wait until all of it was done."""
    levers: dict[str, LeverReport] = field(default_factory=dict)


@dataclass(frozen=True)
class ProgramEnded:
    """The program has come to its end."""

    steps: int
    """That it has made in all."""
    levers: dict[str, LeverReport] = field(default_factory=dict)


# ── from a run that is not held ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class StepsSeen:
    """What a whole run of the program has done so far; a file, as it is held nowhere."""

    steps: int
    seconds: float
    """From the end of the first step to the end of the last."""
    importing: float = 0.0
    """Seconds from the start of the program to the end of its imports of TensorFlow and Keras."""
    rank: int = 0
    """Of what was counted as a step (`observe.streams.RANK`)."""
    own: float = 0.0
    """Seconds that flatout itself has taken of the run."""
    failed: str = ""
    """Which levers could not be installed, or have given up, and why."""


# ── from the scouting run ────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class CellSeen:
    """What became of a cell that is marked to be kept."""

    number: int
    why_not: str = ""
    """Why it runs in each trial; empty where it is kept."""
    size: int = 0
    """Bytes of what it has made."""
    history: tuple[str, ...] = ()
    """Digests of the program up to its end."""
    begins_with: dict[str, str] = field(default_factory=dict)
    """Digests of the values that its code can come to, before it runs."""
    deleted: tuple[str, ...] = ()
    """Names that it deletes."""
    left_out: tuple[str, ...] = ()
    """Names of its values that nothing else reads."""


@dataclass(frozen=True)
class CellsSeen:
    cells: tuple[CellSeen, ...] = ()
