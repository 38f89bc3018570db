"""The fixed words of a Case, as types. A saved case may hold a word of a newer version: look words up with `get`."""

from __future__ import annotations

from typing import Literal

# ── steps ────────────────────────────────────────────────────────────────────────────────────────────────────────

StreamKind = Literal[
    "fit", "train-function", "apply", "session", "tape", "predict", "evaluate", "function", "model", "input"
]
"""What happens again and again in a program, and may be its step: batches of Keras fit, predict or evaluate; calls of a
tf.function that trains, or of any other; eager optimizer updates; Session.run; eager gradient tapes; eager calls of a
model; elements taken from a dataset."""

EagerKind = Literal["model", "get-weights", "set-weights", "assign"]
"""What a program does eagerly at one of its lines: it calls a model, reads or sets the weights of one, assigns one."""

StepKind = Literal["train", "inference", "session", "input", "call"]
"""What a step does. A run sees: train; inference (Keras predict or evaluate, calls of a model or a function); session
(Session.run); input (an element taken from a dataset, where nothing else was seen). An optimize makes calls of the
model itself: call."""

StepPart = Literal["input", "trace", "python", "compute", "copy", "idle"]
"""Where the time of a step goes."""

# ── pipelines and devices ────────────────────────────────────────────────────────────────────────────────────────

State = Literal["python", "random", "lookup table", "variable", "print", "resource"]
"""What keeps state in a stage's function, so that it cannot be run in parallel or cached as it is."""

DeviceKind = Literal["cpu", "gpu", "tpu"]
CopyKind = Literal["host-to-device", "device-to-host", "device-to-device", "device-to-peer", "host-to-host"]

# ── jobs of several processes ────────────────────────────────────────────────────────────────────────────────────

RankState = Literal["ended", "failed", "killed", "stopped", "running", "lost", "missing"]
"""How a rank of a job is, or ended. ended: with exit code 0. failed: with another one. killed: by a signal. stopped: by
the launcher, because the job was over. running: it still reports. lost: it has not reported for a while. missing: it
has never come."""

ShardPolicy = Literal["off", "auto", "file", "data", "hint"]
"""TensorFlow's auto-shard policy of a dataset."""

# ── findings and trials ──────────────────────────────────────────────────────────────────────────────────────────

Equivalence = Literal["exact", "reassociated", "precision", "semantic", "bound"]
"""What a change promises of the numbers. bound: nothing, the trial shows an upper limit."""

Confidence = Literal["high", "medium", "low"]
CostOf = Literal["step", "run"]
"""What the cost of a finding is a part of."""

TrialStatus = Literal["won", "lost", "noise", "failed", "timeout"]

TrialStage = Literal["bound", "at-once", "single", "combination", "patch", "run", "route", "setting", "claim"]
"""Of a tune: bound, single, combination, patch; at-once: the first cure of each finding, together; run: a cure of the
run, whose speedup is that of whole runs. Of an optimize: route, setting, claim."""

TuneOutcome = Literal["won", "done", "undecided", "not-the-same"]
"""What a tune has come to. won: a change was confirmed in fresh processes, keeps the numbers and ran the program to its
end. done: nothing is left to gain, and the reason says how that is known. undecided: something that could pay is
untried, or an interval is open; the command says how to go on. not-the-same: something was faster, but computed
something else, and is not claimed."""

ParityVerdict = Equivalence | Literal["", "multiset", "statistical", "failed", "unknown"]
"""How losses, weights or outputs agree with the baseline's; empty where they were not compared. multiset: the same
elements of a pipeline in another order. statistical: over several seeds, where random numbers cannot be made the same
or rounding alone soon leads a program elsewhere; the note says how small a fault would have been seen."""

# ── the environment ──────────────────────────────────────────────────────────────────────────────────────────────

ReadingStatus = Literal["ok", "info", "warning", "fault"]

# ── a tune that did not come to its end ──────────────────────────────────────────────────────────────────────────

INTERRUPTED = "it was interrupted"
WHILE_TUNED = "while it was tuned"
"""How the reason ends where the program was changed."""
