"""What surrounds a tune: its directory, its display, the case that is kept, the patch that is written."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from flatout.cures._catalogue import find
from flatout.model.case import Case
from flatout.model.errors import InvalidOption
from flatout.model.levers import parse
from flatout.store import saving
from flatout.trial import launcher
from flatout.tune import journal
from flatout.tune.progress import Progress
from flatout.tune.tuner import Options, Tuner, new_directory


@dataclass(frozen=True)
class Wishes:
    """What to do with the result."""

    json: str | None = None
    quiet: bool = False
    patch: Path | None = None
    apply: bool = False


def tune(program: str, arguments: Sequence[str], options: Options, wishes: Wishes) -> int:
    for name in (*options.levers, *options.without):
        find(parse(name)[0])  # a name that is not there is said before anything is run
    unknown = set(options.allow) - {"precision", "semantic"}
    if unknown:
        raise InvalidOption(f"--allow takes precision or semantic, not {', '.join(sorted(unknown))}.")
    command = launcher.command_for(program, arguments, options.module)
    directory = journal.unfinished(command) if options.resume else None
    if options.resume and directory is None:
        sys.stderr.write("flatout: no unfinished tune of this command is here; starting a new one\n")
    directory = directory or new_directory(program)
    with Progress(options.budget, wishes.quiet) as progress:
        case = Tuner(program, arguments, options, directory, progress).run()
    saving.save(case, directory)
    _show(case, directory, wishes)
    return 0 if case.steps is not None else 1


def _show(case: Case, directory: Path, wishes: Wishes) -> None:
    if wishes.json is not None:
        from flatout.report.json import write

        write(case, wishes.json)
    if wishes.quiet:
        sys.stderr.write(f"flatout: {case.verdict}\n")
    else:
        from flatout.report.terminal import render

        terminal = sys.stderr.isatty()
        width = os.get_terminal_size(sys.stderr.fileno()).columns if terminal else None
        text = render(case, "trials", width, terminal and "NO_COLOR" not in os.environ, directory=directory)
        sys.stderr.write("\n" + text)
    if wishes.patch is not None:
        if case.patch:
            from flatout.source.editing import unified_diff

            wishes.patch.write_bytes(unified_diff.to_bytes(case.patch))
            sys.stderr.write(f"flatout: wrote {wishes.patch}\n")
        else:
            sys.stderr.write("flatout: no patch was written: nothing that can be written as an edit has won\n")
    if wishes.apply and case.patch:
        from flatout.trial import patch

        for path in patch.apply(patch.make(case, case.tuned)):
            sys.stderr.write(f"flatout: edited {path}\n")
