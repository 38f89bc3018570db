"""One observed run of the program before anything is tried: what its steps are, where their time goes, and why."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from flatout.model.case import Case, Program
from flatout.model.evidence.program import KerasCall
from flatout.model.evidence.steps import Stream
from flatout.model.queries import step_kind
from flatout.observe.streams import RANK, TRAINING
from flatout.process.launch import run_until
from flatout.process.watchdog import Watchdog
from flatout.trial import temporary, whole_run
from flatout.trial.child_process import Launch, prepared
from flatout.trial.refusals import last_words
from flatout.trial.settings import ScoutSettings
from flatout.tune.conclusions import TOO_SHORT

LONGEST_SECONDS = 240.0


def scout(
    launch: Launch,
    directory: Path,
    watchdog: Watchdog,
    deadline: float,
    tick: Callable[[], None] = lambda: None,
    *,
    waits: bool = True,
    to_end: float = 0.0,
    keeps: bool = False,
) -> Case:
    """Runs the program until enough steps were seen, or until it ends by itself. `waits`: also for places of the source
    that train or predict and that it has not come to. `to_end`: seconds that it is given to come to its end: if it
    does, the case has the tree of the run. `keeps`: what marked cells of a notebook make is kept in `directory`."""
    from flatout.causes import diagnose
    from flatout.cures import name_offered
    from flatout.environment import summary
    from flatout.observe.reading import assemble

    directory.mkdir(parents=True, exist_ok=True)
    command = prepared(launch, directory, ScoutSettings(waits, to_end, keeps))
    began = time.monotonic()
    started = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
    latest = min(deadline, began + LONGEST_SECONDS)
    try:
        code = run_until(command, directory / "output.txt", watchdog, latest, tick)
    finally:
        temporary.remove_link(directory)
    ended = time.monotonic()
    if code is not None and to_end and ended_by_itself(directory):
        whole_run.write_times(directory, began, ended)
    program = Program(
        command=launch.command,
        directory=str(Path.cwd()),
        started=started,
        seconds=round(ended - began, 3),
        exit_code=code if code is not None and code >= 0 else None,
    )
    case = replace(name_offered(diagnose(assemble(directory, program, summary))), kind="tune")
    if code and case.steps is None and not case.program.error:  # `sys.exit(2)`, or no Python program
        said = last_words(directory / "output.txt") if code > 0 else ""
        how = f"exit code {code}" if code > 0 else f"signal {-code}"
        error = f"{how}: {said}" if said else how
        case = replace(case, program=replace(case.program, error=error))
    if code is None and case.steps is None:  # what it did not do yet says nothing about it
        return replace(case, program=replace(case.program, error=TOO_SHORT), notes=())
    return case


def ended_by_itself(directory: Path) -> bool:
    """Whether the program came to its end in the scouting run, rather than being stopped."""
    try:
        return '"kind":"scouted"' not in (directory / "facts.jsonl").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False


def imports_of(directory: Path) -> tuple[list[str], dict[str, str | None]]:
    """The packages around TensorFlow that the program imports, and the variables that it changes before it does."""
    from flatout.observe.reading.recording import load

    recording = load(directory)
    changed = next((dict(fact["changed"]) for fact in recording.all("variables")), {})
    return [str(fact["package"]) for fact in recording.all("import")], changed


def ranked(launch: Launch, case: Case) -> Launch:
    """The launch, with what counts as a step in a trial of this program according to its scouting run."""
    step = step_kind(case)
    if step == "fit" and any(item.single and max(item.single, item.epochs) > 1 for item in case.evidence_of(KerasCall)):
        # `train_on_batch` may stand for `fit` on one batch, or a function that trains for its epochs.
        return replace(launch, least_step="train-function")
    seen = {stream.of for stream in case.evidence_of(Stream) if stream.count}
    if step is None or step in TRAINING:  # a lever may make one kind of training step of another
        # A `fit` before a loop of the program's own is another phase.
        return replace(
            launch, least_step=step, not_steps=("fit",) if step not in (None, "fit") and "fit" in seen else ()
        )
    if "input" in seen and any(finding.cause == "per-sample-loop" for finding in case.findings):
        # Calls for one sample each: a lever may make one call of many, but not one batch of two.
        return replace(launch, least_step="input", not_steps=tuple(kind for kind in RANK if kind != "input"))
    # Neither is training that comes later, as an agent's: a faster trial would be in the midst of it, a slow one not.
    least = step if RANK[step] < RANK["model"] else "model"
    return replace(launch, least_step=least, not_steps=tuple(kind for kind in RANK if kind in TRAINING))
