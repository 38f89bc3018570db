"""The words for the vocabularies of a case, shared by all views: parts and kinds of steps, trials, devices."""

from __future__ import annotations

import re

from flatout.model.vocabulary import StepKind, TuneOutcome
from flatout.report.formatting import clean

_CALLS = re.compile(r"^(?:(?:Stateful)?PartitionedCall(?:_\d+)?/)+(?=.)")

STEP_PARTS = {
    "input": "waiting for input",
    "trace": "tracing functions",
    "python": "Python between TensorFlow calls",
    "compute": "computing",
    "copy": "copying between devices",
    "idle": "TensorFlow's runtime, or waiting",
}
"""The parts of a step in the order of the bar, and what they mean."""
STEP_NAMES: dict[StepKind, str] = {
    "train": "training steps",
    "inference": "inference steps",
    "session": "session runs",
    "input": "dataset elements",
    "call": "model calls",
}
NO_VERDICT = "No verdict: the case does not contain enough to judge."
NO_FINDINGS = "Nothing worth changing was found."
TRIAL_STAGES = {
    "bound": ("Bounds", "what a side would give if it cost nothing"),
    "at-once": ("At once", "the first cure of each finding, where there is no time to try each lever alone"),
    "single": ("Levers", "one at a time, against two baselines in the same rounds"),
    "combination": ("Together", "in fresh processes: this is the claim"),
    "patch": ("Patch", "the edited source, run as one more trial"),
    "run": ("Whole runs", "from start to end, in turns with the program as it is: what lies outside of the steps"),
    "route": ("Routes", "ways to serve the model, in the same rounds against tf-function"),
    "setting": ("Settings", "the same artefacts with other settings of their runtime"),
    "claim": ("Measured again", "in fresh processes, against two baselines: this is the claim"),
}
"""Title and note of the trials of each stage."""
REWRITE_STAGES = {
    "single": ("Rewrites", "one at a time, against the pipeline as written, alternating"),
    "combination": ("Together", "raced once more against the pipeline as written: this is the claim"),
}
"""The same for the rewrites of a pipeline (`flatout data tune`)."""
TRIAL_OUTCOMES = {
    "won": "faster",
    "lost": "slower",
    "noise": "no measurable difference",
    "failed": "failed",
    "timeout": "given up",
}
NOT_THE_SAME = "faster, not the same"
"""The outcome of a trial that was faster beyond the noise, but computed something else, or failed later on."""
NOT_COMPARED = "faster, not compared"
TUNE_OUTCOMES: dict[TuneOutcome, str] = {
    "won": "won",
    "done": "done",
    "undecided": "undecided",
    "not-the-same": "faster but not the same",
}


def device_name(device: str) -> str:
    """`/job:localhost/replica:0/task:0/device:GPU:0` → `GPU:0`"""
    return clean(device, 60).rsplit("device:", 1)[-1].lstrip("/")


def op_name(name: str) -> str:
    """`StatefulPartitionedCall/model/conv/Relu` → `model/conv/Relu`: where the call stands tells nothing of the op."""
    return _CALLS.sub("", name)


def name_of_steps(kind: StepKind) -> str:
    """`training steps`; `steps` for a kind that a newer version wrote."""
    return STEP_NAMES.get(kind, "steps")
