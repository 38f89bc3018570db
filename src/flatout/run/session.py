"""The story of `flatout run`: launch, wait, assemble, diagnose, keep, show. Whatever fails, the program comes first."""

from __future__ import annotations

import datetime
import os
import shlex
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from flatout import store
from flatout.model.case import Case, Note, Program
from flatout.model.errors import FlatoutError, InvalidOption, UnknownView
from flatout.observe.settings import ObserveSettings
from flatout.store import saving
from flatout.trial import launcher
from flatout.trial.settings import ChildSettings

MOST_EVENTS_BYTES = 60 * 2**20
"""Traces above this size are not turned into Perfetto's format unasked: `flatout trace --perfetto` does it."""


@dataclass(frozen=True)
class Options:
    module: bool = False
    trace: bool = True
    window_start: int | None = None
    window_steps: int | None = None
    flame: bool = False
    nsys: bool = False
    levers: tuple[str, ...] = ()
    json: str | None = None
    view: str = "overview"
    quiet: bool = False


def run(program: str, arguments: Sequence[str], options: Options) -> launcher.Ended:
    command = launcher.command_for(program, arguments, options.module)
    _refuse_early(options)
    levers = _levers(options, command)
    directory, kept, trouble = _directory(program)
    if directory is None:
        sys.stderr.write(f"flatout: {trouble}\n")
        return launcher.run(command, dict(os.environ))
    settings = ChildSettings(
        directory=str(directory),
        observe=ObserveSettings(
            trace=options.trace and not options.nsys,  # a GPU has one profiler, and Nsight holds it
            window_start=options.window_start,
            window_steps=options.window_steps,
            nvtx=options.nsys,
        ),
        module=program if options.module else None,
        flame=options.flame,
        levers=levers,
    )
    launched = command
    if options.nsys:
        from flatout.run import nsight

        launched = nsight.command(command, directory)
        _say(options, "Nsight Systems holds the profiler of the GPU in this run, so flatout takes no trace of its own")
    flame = None
    if options.flame:
        from flatout.run import flame as flame_graph

        flame = flame_graph.prepare(directory)
    injected = f" with {', '.join(levers)} injected" if levers else ""
    _say(options, f"observing {shlex.join(command)}{injected}")
    started = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
    working_directory = _here()
    environment = {**launcher.environment_for(settings), **_variables(levers)}
    ended = launcher.run(launched, environment, on_start=flame)
    told = Program(
        command=tuple(command),
        directory=working_directory,
        started=started,
        seconds=round(ended.seconds, 3),
        exit_code=ended.returncode if ended.returncode >= 0 else None,
        signal=ended.signal_name,
    )
    try:
        case = conclude(directory, told, options)
        if trouble:
            case = replace(case, notes=(Note("warning", trouble), *case.notes))
        _keep(case, directory, kept)
        _show(case, directory, options)
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
    return ended


def _refuse_early(options: Options) -> None:
    """What cannot work is said before the program has run for hours, not after."""
    if options.view != "overview":
        from flatout.report.terminal import VIEWS

        if options.view not in VIEWS:
            raise UnknownView(f"There is no view named {options.view!r}. The views are: {', '.join(VIEWS)}.")
    if options.json not in (None, "-") and not Path(options.json).absolute().parent.is_dir():
        raise InvalidOption(f"--json {options.json}: there is no directory {Path(options.json).absolute().parent}.")
    if options.flame and options.nsys:
        raise InvalidOption("--flame and --nsys both sample the program. Give one of them at a time.")


def _levers(options: Options, command: Sequence[str]) -> tuple[str, ...]:
    """The levers to inject, in their order; `@tuned` stands for those that won the last tune of this program."""
    if not options.levers:
        return ()
    from flatout.cures import find, in_order, is_injected
    from flatout.model.levers import parse

    found: list[str] = []
    for text in options.levers:
        found += store.latest_tune(command).tuned if text == "@tuned" else (text,)
    for text in found:
        if not is_injected(find(parse(text)[0])):
            raise InvalidOption(
                f"{text} is an edit of the source and cannot be injected. `flatout tune --lever {text} --patch FILE` "
                "writes it."
            )
    return in_order(found)


def _variables(levers: Sequence[str]) -> dict[str, str]:
    if not levers:
        return {}
    from flatout.cures import environment_of

    return environment_of(levers)


def conclude(directory: Path, program: Program, options: Options) -> Case:
    """Recording in, diagnosed Case out."""
    from flatout.causes import diagnose
    from flatout.environment import summary
    from flatout.observe.reading import assemble

    _say(options, "analysing what was seen")
    case = assemble(directory, program, summary)
    _export_timeline(case, directory)
    return diagnose(case)


def _directory(program: str) -> tuple[Path | None, bool, str]:
    """Where the recording goes: beside the program's work if possible, else somewhere temporary, else nowhere."""
    title = Path(program).stem or program
    try:
        return store.new_directory(title), True, ""
    except OSError as error:
        trouble = f"The case cannot be kept in {Path(_here()) / store.HOME} ({error.strerror or error})"
    try:
        directory = Path(tempfile.mkdtemp(prefix="flatout-"))
    except OSError as error:
        return None, False, f"{trouble}, nor in a temporary directory ({error.strerror}). Running unobserved."
    return directory, False, f"{trouble}. It is in {directory} instead."


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
        sys.stderr.write(f"flatout: the case could not be kept: {error}. What it says follows all the same.\n")


def _show(case: Case, directory: Path, options: Options) -> None:
    if options.json is not None:
        from flatout.report.json import write

        write(case, options.json)
    if options.quiet:
        sys.stderr.write(f"flatout: {case.verdict}\n")
        return
    from flatout.report.terminal import render

    terminal = sys.stderr.isatty()
    width = os.get_terminal_size(sys.stderr.fileno()).columns if terminal else None
    text = render(case, options.view, width, terminal and "NO_COLOR" not in os.environ, directory=directory)
    sys.stderr.write("\n" + text)


def _say(options: Options, text: str) -> None:
    if not options.quiet:
        sys.stderr.write(f"flatout: {text}\n")
        sys.stderr.flush()
