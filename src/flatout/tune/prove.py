"""What surrounds a proof: which cure of which tune is proved, its runs, the case that is kept."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from flatout import store
from flatout.cures import find, is_injected
from flatout.model.case import Case
from flatout.model.errors import CaseNotFound, InvalidOption
from flatout.model.levers import parse
from flatout.process.watchdog import Watchdog
from flatout.report.progress import Progress
from flatout.report.proof_text import told
from flatout.store import saving
from flatout.trial import launcher, patch
from flatout.trial.child_process import Launch
from flatout.tune import journal
from flatout.tune.proof import Proving
from flatout.tune.request import TuneRequest
from flatout.tune.scout import ranked
from flatout.tune.variants import patched, with_levers

EXIT = {"same": 0, "differs": 1, "not-shown": 3}
INTERRUPTED = 130


def exit_code(case: Case) -> int:
    if case.proof is None:
        return EXIT["not-shown"]
    return INTERRUPTED if case.proof.interrupted else EXIT[case.proof.outcome]


def prove(request: TuneRequest, tune: Callable[[TuneRequest], Case]) -> Case:
    """The case with its proof. `tune` is called where the program has no tune yet, or has changed since."""
    case = _case(request, tune)
    levers = request.levers or case.tuned
    if not levers:
        sys.stderr.write("flatout: there is nothing to prove: no lever has won\n")
        return case
    directory = store.new_directory(f"proof-{Path(request.program).stem or request.program}")
    command = tuple(launcher.command_for(request.program, request.arguments, request.module))
    launch = Launch(command, module=request.program if request.module else None, leave=request.leave)
    launch = ranked(launch, case) if case.steps is not None else launch
    watchdog = Watchdog()
    try:
        with Progress(float("inf"), request.quiet) as progress:
            trial = _changed(launch, case, levers, directory)
            steps = case.whole_run.steps if case.whole_run is not None and case.whole_run.complete else None
            proof = Proving(launch, trial, levers, directory / "runs", watchdog, progress, steps).run()
    finally:
        watchdog.close()
    case = replace(case, proof=proof)
    saving.save(case, directory)
    if request.json is not None:
        from flatout.report.json import write

        write(case, request.json)
    for line in told(proof) if not request.silent else ():
        sys.stderr.write(f"flatout: {line}\n")
    return case


def _case(request: TuneRequest, tune: Callable[[TuneRequest], Case]) -> Case:
    """The tune whose claim is proved. Levers that are named need none, unless they are edits."""
    command = launcher.command_for(request.program, request.arguments, request.module)
    try:
        case, directory = store.latest_tune_in(command)
    except CaseNotFound:
        case, directory = None, None
    changed = journal.changes_since(directory) if directory is not None else []
    if case is not None and not changed:
        return case
    if request.levers:
        written = [text for text in request.levers if not is_injected(find(parse(text)[0]))]
        if written:
            raise InvalidOption(f"{written[0]} is an edit of the source: tune the program first, then prove it.")
        return Case("tune")
    if changed:
        sys.stderr.write(f"flatout: the last tune is not proved: {'; '.join(changed[:3])}. Tuning again\n")
    return tune(replace(request, prove=False))


def _changed(launch: Launch, case: Case, levers: tuple[str, ...], directory: Path) -> Launch:
    """The program with the cure: as the patch leaves it where it is that of the tune, else with levers injected."""
    if case.patch and levers == case.tuned:
        one = patched(launch, patch.raced(case), levers, directory / "patched")
        if one is not None:
            return one.launch
    one = with_levers(launch, case, levers, directory / "edited")
    if not one.active:
        raise InvalidOption(f"{', '.join(levers)} cannot be proved: {one.note or one.why_idle()}.")
    return one.launch
