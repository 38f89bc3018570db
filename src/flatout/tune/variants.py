"""The program with levers, ready to race: injected where that can be, written into a copy of its source where not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from flatout.cures import find, is_injected
from flatout.measure.race import Exit
from flatout.model.case import Case
from flatout.model.errors import FlatoutError
from flatout.model.levers import parse, shown
from flatout.trial import patch, patched_run
from flatout.trial.child_process import Launch
from flatout.tune.contestant import Contestant


def with_levers(
    launch: Launch, case: Case, levers: tuple[str, ...], directory: Path, *, edited: Sequence[str] = ()
) -> Contestant:
    """`directory`: where edited sources are written; `edited`: levers to write into the source though they could be
    injected."""
    edits = [text for text in levers if text in edited or not is_injected(find(parse(text)[0]))]
    injected = tuple(text for text in levers if text not in edits)
    one = Contestant(replace(launch, levers=injected), shown(levers), levers)
    if not edits:
        return one
    try:
        made = patch.make(case, edits)
    except FlatoutError as error:
        one.leave(Exit("failed", str(error)))
        return one
    sources = patched_run.lay_out(made, directory / "-".join(edits))
    if made.unwritten or patched_run.command(launch.command, sources) == list(launch.command):
        one.unchanged = True
        one.leave(Exit("ended", "the source could not be edited in this way"))
        return one
    one.launch = replace(one.launch, sources=tuple(sources.items()))
    return one


def patched(launch: Launch, made: patch.Patch, levers: tuple[str, ...], directory: Path) -> Contestant | None:
    """The program as the patch leaves it, and nothing else: what the patch could not write is not in its claim. None
    where it cannot be started."""
    sources = patched_run.lay_out(made, directory)
    if patched_run.command(launch.command, sources) == list(launch.command):
        return None
    fills = any(find(parse(text)[0]).spec.fills for text in levers)
    run = replace(launch, sources=tuple(sources.items()), levers=(), fills_cache=fills)
    return Contestant(run, "the patched program", levers)
