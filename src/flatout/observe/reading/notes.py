"""What the reader of a case should know of the observation itself: what is missing in it, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from flatout.measure.processors import STARVED, others_in
from flatout.model.case import Evidence, Note, Program
from flatout.observe.reading.recording import Recording
from flatout.observe.reading.steps import Measured
from flatout.trace.host_steps import StepSplit

OLDEST = (2, 12)
"""The oldest TensorFlow whose every view is supported."""
FEW_STEPS = 5
MOST_LOST = 3
"""Views that may be lost each for a reason of its own; more have one reason: a TensorFlow that is not known."""


def read(recording: Recording, measured: Measured | None, split: StepSplit | None, program: Program) -> list[Note]:
    return [
        *_on_the_program(recording, measured, program),
        *_on_lost_views(recording),
        *_on_left_out(recording),
        *_on_the_end(recording, program),
        *_on_the_trace(measured, split),
    ]


def _on_left_out(recording: Recording) -> Iterator[Note]:
    """A run of millions of steps is recorded in part: what came first, and counts of all."""
    for fact in recording.all("left-out"):
        facts = fact.get("facts")
        if isinstance(facts, dict) and facts:
            counts = ", ".join(
                f"{count:,} of {kind}" for kind, count in sorted(facts.items()) if isinstance(count, int)
            )
            text = f"The recording is bounded: further facts were counted but not kept ({counts})."
            yield Note("info", text)


def _on_the_program(recording: Recording, measured: Measured | None, program: Program) -> Iterator[Note]:
    tensorflow = recording.imported("tensorflow")
    if not recording.started:
        yield Note(
            "warning",
            "The program was not observed: no Python of this environment came up in it.",
            "Give a Python file, or `-m` and a module. A Python started with -I, -E or -S cannot be observed.",
        )
    elif tensorflow is None:
        yield _without_tensorflow(recording, program)
    elif measured is None and program.exit_code:
        yield Note("warning", f"No step was seen: the program ended with exit code {program.exit_code} before it.")
    elif measured is None:
        yield Note(
            "warning",
            "No step was seen: the program neither trained, nor called a model or tf.function, nor read a dataset.",
            "If it does so later in its run, give it the arguments that get it there.",
        )
    elif measured.count < FEW_STEPS:
        yield Note(
            "warning",
            f"Only {measured.count} step{'s were' if measured.count != 1 else ' was'} seen: too few for a verdict.",
            "Let it run longer.",
        )
    if tensorflow is not None and _is_old(str(tensorflow.get("version"))):
        yield Note(
            "warning",
            f"TensorFlow {tensorflow['version']} is older than flatout was made for (2.12 and later).",
            "What could be observed is here; update TensorFlow for the rest.",
        )


def _on_lost_views(recording: Recording) -> Iterator[Note]:
    lost = recording.all("lost")
    if len(lost) > MOST_LOST:
        names = ", ".join(fact["probe"].replace("_", " ") for fact in lost)
        yield Note("warning", f"{len(lost)} views are lost ({names}), the first for this: {lost[0]['text']}")
    else:
        for fact in lost:
            yield Note("warning", f"A view is lost, {fact['probe'].replace('_', ' ')}: {fact['text']}")
    failed = {fact["lever"]: fact["text"] for fact in recording.all("lever-failed")}
    for lever, text in failed.items():
        yield Note("warning", f"{lever} could not be installed: {text}", "The program ran without it.")
    for fact in recording.all("note"):
        yield Note("info", fact["text"])


def _on_the_end(recording: Recording, program: Program) -> Iterator[Note]:
    if program.signal == "SIGKILL":
        yield Note(
            "warning",
            "The program was killed (SIGKILL): by someone, or by the kernel for want of memory.",
            "Look into `dmesg` or the container's log for the reason.",
        )
    stopped = program.exit_code is None and program.signal is None  # by flatout, which has seen enough
    if recording.started and not recording.ended and not stopped:
        yield (
            Note("info", "The program ended abruptly; what was seen until then is kept.")
            if program.signal
            else Note(
                "warning",
                "The recording breaks off before the program's end: a full disk, or an exit past Python (os.exec, "
                "C code). What was seen until then is kept.",
            )
        )


def _on_the_trace(measured: Measured | None, split: StepSplit | None) -> Iterator[Note]:
    if measured is not None and split is None and measured.count >= FEW_STEPS:
        yield Note("info", "There is no trace of steps, so the split and the ops are missing or coarse.")


def on_other_processes(found: Iterable[Evidence]) -> list[Note]:
    """A warning where others had the processors while the steps ran."""
    taken = others_in(found) or 0.0
    if taken < STARVED:
        return []
    text = f"Other programs used {100 * taken:.0f} % of the processors while the steps ran, which made them slower."
    return [Note("warning", text, "Run it again on a quieter machine before you trust small shares.")]


def _without_tensorflow(recording: Recording, program: Program) -> Note:
    failure = next((fact for fact in recording.all("import-failed") if fact["package"] == "tensorflow"), None)
    if failure is not None:
        return Note(
            "warning",
            f"TensorFlow is installed but could not be imported: {failure['type']}: {failure['text']}",
            "`flatout env` looks for the reason.",
        )
    if "No module named 'tensorflow'" in (program.error or ""):
        return Note(
            "warning",
            "TensorFlow is not installed for this Python.",
            'Install it with `pip install "flatout[cpu]"` or `pip install "flatout[gpu]"`.',
        )
    if program.error:
        return Note(
            "warning",
            f"The program failed before it imported TensorFlow: {program.error}",
            "Once it runs by itself, flatout can observe it.",
        )
    return Note(
        "warning",
        "The program did not import TensorFlow.",
        "flatout observes TensorFlow programs; there is nothing to see in this one. If a process that it starts "
        "uses TensorFlow, run that one with flatout.",
    )


def _is_old(version: str) -> bool:
    try:
        return tuple(int(part) for part in version.split(".")[:2]) < OLDEST
    except ValueError:
        return False
