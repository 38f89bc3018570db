"""`flatout run` from beginning to end: run the program observed, analyse the recording, keep the case, print it.

The program comes first: whatever fails here, it runs, and its exit code is passed on.
"""

from __future__ import annotations

import datetime
import os
import shlex
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from flatout import plugins, store
from flatout.model.case import Case, Note, Program
from flatout.model.errors import FlatoutError, InvalidOption, PatchFailed
from flatout.observe.settings import ObserveSettings
from flatout.report import standard_error
from flatout.run import membership
from flatout.run.part import ObservedPart
from flatout.run.request import RunRequest
from flatout.store import saving
from flatout.trial import launcher, whole_run
from flatout.trial.settings import ChildSettings

MOST_EVENTS_BYTES = 60 * 2**20
"""Traces above this size are turned into Perfetto's format only by `flatout trace --perfetto`."""


@dataclass(frozen=True)
class Recording:
    """Where the recording of a run goes."""

    directory: Path | None
    """None where no directory can be written: then the program runs unobserved."""
    kept: bool
    """Whether that is among the kept cases."""
    trouble: str = ""


@dataclass(frozen=True)
class Levers:
    """What the program is run with."""

    injected: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    """Edits of the source: the files stay as they are, the program runs from edited copies."""
    tuned: Case | None = None
    """The tune that has found those."""


def window_of(window: str | None, steps: int | None) -> tuple[int | None, int | None]:
    """`20:40` → the first step to trace, and how many."""
    if window is None:
        return None, steps
    try:
        first, _, last = window.partition(":")
        begin, end = int(first), int(last) if last else int(first) + (steps or 10)
        if begin < 0 or end <= begin:
            raise ValueError
    except ValueError:
        raise InvalidOption(
            f"--window takes FIRST:LAST with FIRST < LAST (for example 20:40), not {window!r}."
        ) from None
    return begin, end - begin


def run(request: RunRequest) -> launcher.Ended:
    """Run the program, then print and keep the case. Returns how the program ended."""
    return run_for_case(request)[0]


def run_for_case(request: RunRequest) -> tuple[launcher.Ended, Case | None]:
    """The same with the case; None where there is none, which has been told."""
    command = launcher.command_for(request.program, request.arguments, request.module)
    _refuse_early(request)
    levers = _levers(request, command)
    member = membership.find(request.job)
    if member is not None:
        return membership.run(member, request, lambda: _run_rank(request, command, levers, member.folder))
    recording = _recording(request.program)
    if recording.directory is None:
        sys.stderr.write(f"flatout: {recording.trouble}\n")
        return launcher.run(command, dict(os.environ)), None
    return _observe(request, command, levers, recording)


def _run_rank(
    request: RunRequest, command: list[str], levers: Levers, directory: Path
) -> tuple[launcher.Ended, Case | None]:
    """One rank of a job: its case is kept in the directory of the job, and its verdict alone is printed."""
    quiet = replace(request, quiet=True, json=None, view="overview")
    return _observe(quiet, command, levers, Recording(directory, kept=False))


def _observe(
    request: RunRequest, command: list[str], levers: Levers, recording: Recording
) -> tuple[launcher.Ended, Case | None]:
    """Run the program to its end, observed, with the tools that were requested; and make its case."""
    directory = recording.directory
    assert directory is not None
    launched, flame = _edited(command, levers, directory), None
    if request.nsys:
        from flatout.run import nsight

        launched = nsight.command(launched, directory)
        _say(request, "Nsight Systems holds the profiler of the GPU in this run, so flatout takes no trace of its own")
    if request.flame:
        from flatout.run import flame as flame_graph

        flame = flame_graph.prepare(directory)
    names = ", ".join((*levers.injected, *levers.written))
    _say(request, f"observing {shlex.join(command)}{f' with {names}' if names else ''}")
    started = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
    working_directory = _here()
    settings = _settings(request, levers.injected, directory)
    environment = {**launcher.environment_for(settings), **_variables(levers.injected)}
    program = Program(command=tuple(command), directory=working_directory, started=started)
    part = _part(request, recording, program)
    ended = launcher.run(launched, environment, on_start=flame or (part.start if part is not None else None))
    if part is not None and part.over:
        return ended, part.case
    whole_run.write_times(directory, ended.began, ended.began + ended.seconds)
    program = replace(
        program,
        seconds=round(ended.seconds, 3),
        exit_code=ended.returncode if ended.returncode >= 0 else None,
        signal=ended.signal_name,
    )
    return ended, _analyse(request, directory, recording, program)


def _part(request: RunRequest, recording: Recording, program: Program) -> ObservedPart | None:
    """For a program that is observed for a time only."""
    directory, seconds = recording.directory, request.observe_for
    if seconds is None or directory is None:
        return None

    def made(passed: float) -> Case | None:
        now = time.perf_counter()
        whole_run.write_times(directory, now - passed, now)
        text = f"Observed for {passed:.0f} s (--for); the program went on after that, and is not part of this case."
        return _analyse(request, directory, recording, replace(program, seconds=round(passed, 3)), Note("info", text))

    return ObservedPart(directory, seconds, made)


def _traces(request: RunRequest) -> bool:
    return request.trace if request.trace is not None else not membership.is_rank()


def _settings(request: RunRequest, levers: tuple[str, ...], directory: Path) -> ChildSettings:
    observe = ObserveSettings(
        trace=_traces(request) and not request.nsys,  # a GPU has one profiler, and Nsight holds it
        window_start=request.window_start,
        window_steps=request.window_steps,
        seconds=request.observe_for,
        nvtx=request.nsys,
    )
    module = request.program if request.module else None
    return ChildSettings(str(directory), observe, module, request.flame, levers)


def _analyse(request: RunRequest, directory: Path, recording: Recording, program: Program, *notes: Note) -> Case | None:
    """Make the case, keep it and print it. An error here is printed, and the exit code stays the program's."""
    try:
        case = conclude(directory, program, request.quiet)
        if case.steps is None:  # then it matters for how long it was observed
            notes = tuple(replace(note, level="warning") for note in notes)
        case = replace(case, notes=(*notes, *case.notes))
        if recording.trouble:
            case = replace(case, notes=(Note("warning", recording.trouble), *case.notes))
        _keep(case, directory, recording.kept)
        if not request.silent:
            standard_error.show(case, request.view, directory, request.json, request.quiet)
        return case
    except KeyboardInterrupt:
        sys.stderr.write(f"flatout: interrupted while analysing; the recording is in {directory}\n")
    except FlatoutError as error:
        sys.stderr.write(f"flatout: {error}\n")
    except BrokenPipeError:
        raise
    except Exception as error:
        # Not the user's fault, and not to be hidden behind their exit code.
        sys.stderr.write(
            f"flatout: the recording in {directory} could not be analysed: {type(error).__name__}: {error}\n"
        )
        if os.environ.get("FLATOUT_DEBUG"):
            raise
    return None


def _refuse_early(request: RunRequest) -> None:
    """Raise for options that cannot work now, not after the program has run for hours."""
    if request.view != "overview":
        from flatout.report.terminal import VIEWS, unknown_view

        if request.view not in VIEWS:
            raise unknown_view(request.view)
    if request.json not in (None, "-") and not Path(request.json).absolute().parent.is_dir():
        raise InvalidOption(f"--json {request.json}: there is no directory {Path(request.json).absolute().parent}.")
    if request.flame and request.nsys:
        raise InvalidOption("--flame and --nsys both sample the program. Give one of them at a time.")
    if request.observe_for is not None and (request.flame or request.nsys):
        raise InvalidOption("--for ends observing before the program ends; --flame and --nsys follow it to its end.")
    if os.environ.get(plugins.VARIABLE):  # a broken plugin would spoil the diagnosis
        from flatout import causes
        from flatout.environment import checks

        causes.catalogue()
        checks.catalogue()


def _levers(request: RunRequest, command: Sequence[str]) -> Levers:
    """In their order."""
    if not request.levers:
        return Levers()
    from flatout.cures import find, in_order, is_injected
    from flatout.model.levers import parse

    tuned = store.latest_tune(command) if "@tuned" in request.levers else None
    won = tuned.tuned if tuned is not None else ()
    found = [one for text in request.levers for one in (won if text == "@tuned" else (text,))]
    edits = tuple(text for text in found if not is_injected(find(parse(text)[0])))
    if asked := [text for text in edits if text not in won]:
        raise InvalidOption(
            f"{asked[0]} is an edit of the source and cannot be injected. `flatout tune --lever {asked[0]} --patch "
            "FILE` writes it."
        )
    return Levers(in_order([text for text in found if text not in edits]), edits, tuned)


def _edited(command: list[str], levers: Levers, directory: Path) -> list[str]:
    """The command that runs the program from edited copies of its files, where a lever is an edit."""
    if levers.tuned is None or not levers.written:
        return command
    from flatout.trial import patch, patched_run

    made = patch.make(levers.tuned, levers.written)
    if made.unwritten:
        raise PatchFailed(
            f"{', '.join(made.unwritten)} cannot be written into the program as it stands now. Tune it again."
        )
    return patched_run.command(command, patched_run.lay_out(made, directory / "edited"))


def _variables(levers: Sequence[str]) -> dict[str, str]:
    if not levers:
        return {}
    from flatout.cures import environment_of

    return environment_of(levers)


def conclude(directory: Path, program: Program, quiet: bool = False) -> Case:
    """Recording in, diagnosed Case out."""
    from flatout.causes import diagnose
    from flatout.cures import name_offered
    from flatout.environment import summary
    from flatout.observe.reading import assemble

    if not quiet:
        _print("analysing what was recorded")
    case = assemble(directory, program, summary)
    case = replace(case, evidence=(*case.evidence, *membership.evidence()))
    _export_timeline(case, directory)
    return name_offered(diagnose(case))


def _recording(program: str) -> Recording:
    """Among the kept cases of the working directory if possible, else in a temporary directory, else nowhere."""
    title = Path(program).stem or program
    try:
        return Recording(store.new_directory(title), kept=True)
    except OSError as error:
        trouble = f"The case cannot be kept in {Path(_here()) / store.HOME} ({error.strerror or error})"
    try:
        directory = Path(tempfile.mkdtemp(prefix="flatout-"))
    except OSError as error:
        return Recording(
            None, False, f"{trouble}, nor in a temporary directory ({error.strerror}). Running unobserved."
        )
    return Recording(directory, False, f"{trouble}. It is in {directory} instead.")


def _here() -> str:
    try:
        return os.getcwd()
    except OSError:
        return os.environ.get("PWD", ".")  # the directory is gone


def _export_timeline(case: Case, directory: Path) -> None:
    files = [path for path in (directory / "trace").rglob("*.xplane.pb") if path.stat().st_size <= MOST_EVENTS_BYTES]
    if not files or case.logdir is None:
        return
    from flatout.report.perfetto import to_chrome_json

    try:
        to_chrome_json(files, directory / "perfetto.json.gz")
    except (OSError, FlatoutError) as error:
        sys.stderr.write(f"flatout: the timeline for Perfetto was not written: {error}\n")


def _keep(case: Case, directory: Path, kept: bool) -> None:
    try:
        saving.save(case, directory) if kept else store.write_case(case, directory)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"flatout: the case could not be kept: {error}. Its report follows.\n")


def _say(request: RunRequest, text: str) -> None:
    if not request.quiet:
        _print(text)


def _print(text: str) -> None:
    sys.stderr.write(f"flatout: {text}\n")
    sys.stderr.flush()
