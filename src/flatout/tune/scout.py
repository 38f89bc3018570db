"""One observed run of the program before anything is tried: what its steps are, where their time goes, and why."""

from __future__ import annotations

import contextlib
import datetime
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from flatout.model.case import Case, Program
from flatout.observe.observer import PRIORITY
from flatout.process.warden import Warden, kill_group
from flatout.trial.child_process import Launch, prepared

LONGEST_SECONDS = 240.0


def scout(
    launch: Launch, directory: Path, warden: Warden, deadline: float, tick: Callable[[], None] = lambda: None
) -> Case:
    """Runs until enough steps were seen. A program that ends by itself before has been seen whole."""
    from flatout.causes import diagnose
    from flatout.environment import summary
    from flatout.observe.reading import assemble

    (directory / "tmp").mkdir(parents=True, exist_ok=True)
    command, variables = prepared(launch, directory, {"scout": True})
    began = time.monotonic()
    started = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
    with open(directory / "output.txt", "wb") as output:
        process = subprocess.Popen(
            command,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    warden.watch(process.pid)
    latest = min(deadline, began + LONGEST_SECONDS)
    try:
        while process.poll() is None and time.monotonic() < latest:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=0.5)
            tick()
    finally:
        kill_group(process.pid)
        process.wait()
        warden.forget(process.pid)
    program = Program(
        command=launch.command,
        directory=str(Path.cwd()),
        started=started,
        seconds=round(time.monotonic() - began, 3),
        exit_code=process.returncode if process.returncode >= 0 else None,
    )
    case = diagnose(assemble(directory, program, summary))
    return replace(case, kind="tune")


def ended_by_itself(directory: Path) -> bool:
    """Whether the scouting run saw the program's own end, not ours."""
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
    """With what counts as a step in a trial of this program, as its scouting run has shown."""
    stack = case.evidence_of("step-stack")
    step = PRIORITY.get(str(stack[0].value), 0) if stack else 0
    if not step or step >= PRIORITY["tape"]:  # a lever may make one kind of training step of another
        return replace(launch, priority=step)
    seen = {PRIORITY.get(str(stream.value), 0) for stream in case.evidence_of("stream") if stream.data.get("count")}
    if PRIORITY["input"] in seen and any(finding.cause == "per-sample-loop" for finding in case.findings):
        # Calls for one sample each: a lever may make one call of many, but not one batch of two.
        return replace(launch, priority=PRIORITY["input"], passing=tuple(sorted(set(PRIORITY.values())))[1:])
    trainings = tuple(sorted(rank for rank in seen if rank >= PRIORITY["tape"]))
    return replace(launch, priority=min(step, PRIORITY["model"]), passing=trainings)
