"""Writes the artefact of a finalist and tries it as its user would. What is wrong with it is a sentence.

The loader runs in fresh processes, from its file: it has to give the answers that were checked, for the batch that was
measured and for every batch size that the user named. What the artefact is not made for (NaN, other lengths, other
numbers of samples at once) has to be answered as the original does, or refused: where a runtime would answer otherwise,
the loader is written again with a line that refuses it. An artefact that still answers wrongly, or whose process dies,
is not handed over.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from flatout.measure.agreement import difference
from flatout.optimize import artefact, checks, odd_samples
from flatout.optimize.builder import Builder, needs_tensorflow
from flatout.optimize.contestant import Contestant, feeds
from flatout.optimize.layouts import Layout, handover
from flatout.process.worker import Worker, WorkFailed
from flatout.subject import Array, Subject, any_length, for_size, written_arrays
from flatout.subject.writer import has_row_per_sample

SECONDS = 120.0
ALIKE = 1e-5
"""Largest relative difference between the answers of an artefact and of its own loader."""
OTHER_SIZES = (1, 3)
"""Samples that a loader is given at once, besides the batch that was measured: a single one, and a short last batch."""


def deliver(
    one: Contestant, answers: Sequence[Array], builder: Builder, made: Path, *, with_any_length: bool = True
) -> str:
    """Write the artefact into `made`, and try it. Returns the problem; empty if there is none.

    `answers`: those to the held-out samples that were checked.
    """
    subject = builder.subject
    try:
        artefact.assemble(one, subject, made, with_any_length)
        count = artefact.write_check(subject, list(answers), made)
        with _away(one.candidate.directory):
            problem = "" if one.candidate.is_model_itself else _try_odd_samples(one, builder, made)
            problem = problem or _try_loader(one, [array[:count] for array in answers], builder, made)
            if not problem and (subject.directory / any_length.FOLDER).exists():
                problem = _try_other_lengths(one, builder, made)
    except Exception as error:  # a route is a plugin: whatever its loader raises, it has none that works
        problem = str(error) or type(error).__name__
    return f"loader: {problem}" if problem else ""


@contextlib.contextmanager
def _away(directory: Path) -> Iterator[None]:
    """What was converted is at another place meanwhile: the artefact has to stand alone."""
    elsewhere = directory.with_name(f"{directory.name}.away")
    directory.rename(elsewhere)
    try:
        yield
    finally:
        elsewhere.rename(directory)


def deliver_layout(layout: Layout, one: Contestant, builder: Builder, target: Path) -> tuple[str, str]:
    """How the server is started with what was written for it; or why there is nothing, and nothing is left."""
    candidate, made = one.candidate, artefact.unfinished(target)
    worker = _worker(one, builder, "layout")
    handed = handover.Handed(candidate.route, one.setting, one.batch, builder.subject, builder.accuracy.budget)
    try:
        return handover.write(layout, handed, made, target, worker), ""
    except handover.NotWritten as error:
        shutil.rmtree(made / layout.name, ignore_errors=True)
        return "", str(error)
    finally:
        worker.end()


def other_sizes(subject: Subject, batch: int) -> list[int]:
    """Numbers of samples at once that the loader is tried with; none where the model itself takes one alone."""
    if subject.batching != "dynamic" or not has_row_per_sample(subject):
        return []
    longer = [batch + OTHER_SIZES[-1]] if batch > 1 else []
    return sorted({*subject.batches, *OTHER_SIZES, *longer} - {batch})


# ── the loader, on samples ───────────────────────────────────────────────────────────────────────────────────────────


def _try_loader(one: Contestant, answers: list[Array], builder: Builder, made: Path) -> str:
    """Its answers to the samples of the check, and to other numbers of them at once.

    A number that the user named has to be answered. Any other may be refused, and is refused where it is wrong.
    """
    refused, wrong = run_loader(one, answers, builder, made)
    if "" in wrong:
        return wrong[""]
    named = {str(size) for size in builder.subject.batches}
    failed = {**refused, **wrong}
    if lost := next((size for size in failed if size in named), None):
        return f"batches of {lost}: {failed[lost]}"
    taken = [one.batch, *(size for size in other_sizes(builder.subject, one.batch) if str(size) not in failed)]
    if wrong:
        one.candidate.sizes = tuple(taken)
        artefact.write_loader(one, builder.subject, made)
        refused, still = run_loader(one, answers, builder, made)
        if still or not wrong.keys() <= refused.keys():
            return f"batches of {next(iter(wrong))}: {next(iter(wrong.values()))}"
    if failed:
        one.candidate.fixed_batch = _said(failed, taken, closed=bool(wrong) or len(taken) == 1)
    return ""


def try_for_batch(one: Contestant, builder: Builder, made: Path, name: str) -> str:
    """What is wrong with a further loader, for another batch. It may refuse any other number of samples."""
    answers, subject = artefact.checked_answers(made), builder.subject
    if not one.candidate.is_model_itself and (found := _odd_of_batch(one, builder, made, name)):
        return found
    refused, wrong = run_loader(one, answers, builder, made, name)
    if "" in wrong or not wrong:
        return wrong.get("", "")
    failed = {**refused, **wrong}
    taken = [one.batch, *(size for size in other_sizes(subject, one.batch) if str(size) not in failed)]
    artefact.write_loader(one, subject, made, name, taken)
    refused, still = run_loader(one, answers, builder, made, name)
    if still or not wrong.keys() <= refused.keys():
        return f"batches of {next(iter(wrong))}: {next(iter(wrong.values()))}"
    return ""


def run_loader(
    one: Contestant, answers: list[Array], builder: Builder, made: Path, name: str = artefact.LOADER
) -> tuple[dict[str, str], dict[str, str]]:
    """Which numbers of samples at once the loader refuses, and which it answers wrongly, with the reasons; under ""
    what is wrong with its answers to the batch that was measured. Raises WorkFailed."""
    sizes = other_sizes(builder.subject, one.batch)
    refused, given = _answers(one, builder, made / name, sizes)
    original = [array[: len(answers[0])] for array in builder.subject.answers("held_out")]
    route, budget = one.candidate.route, builder.accuracy.budget
    wrong: dict[str, str] = {}
    if name != artefact.LOADER:
        wrong[""] = checks.check_few(route, original, answers, given[0], budget)
    elif found := difference(answers, given[0], ALIKE):
        wrong[""] = f"it does not answer as the artefact did when it was checked: {found}"
    for size in (size for size in sizes if size in given):
        rows = np.arange(size) % len(answers[0])
        few, own = ([array[rows] for array in arrays] for arrays in (original, answers))
        wrong[str(size)] = checks.check_few(route, few, own, given[size], budget)
    return refused, {size: problem for size, problem in wrong.items() if problem}


def _answers(
    one: Contestant, builder: Builder, loader: Path, sizes: list[int]
) -> tuple[dict[str, str], dict[int, list[Array]]]:
    """Of the loader, by the number of samples at once, and why some are refused; under 0 those to all samples of the
    check, in batches as measured."""
    worker = _worker(one, builder, "loader")
    with tempfile.TemporaryDirectory(dir=builder.directory) as scratch:
        output = Path(scratch) / "loaded.npz"
        try:
            told = worker.ask(
                "run_loader",
                SECONDS * max(1, len(sizes)),  # some runtimes compile for each
                builder.memory_limit,
                path=str(loader),
                directory=str(loader.parent),
                batch=one.batch,
                feeds=[str(loader.parent / artefact.CHECK), *feeds(builder.subject)[1:]],
                output=str(output),
                sizes=sizes,
            )
        finally:
            worker.end()
        refused = dict(told["refused"])
        files = {0: output} | {size: for_size(output, size) for size in sizes if str(size) not in refused}
        return refused, {size: written_arrays(file, "out") for size, file in files.items()}


def _said(failed: dict[str, str], taken: list[int], closed: bool) -> str:
    """As a sentence of the verdict."""
    reason = next(iter(failed.values()))
    if closed:
        return f"It takes batches of {' or '.join(map(str, sorted(taken)))} alone ({reason})."
    return f"It refuses batches of {' and '.join(failed)} ({reason})."


# ── what no data has ─────────────────────────────────────────────────────────────────────────────────────────────────


def _try_odd_samples(one: Contestant, builder: Builder, made: Path) -> str:
    """Where NaN and infinity become something else, the loader refuses them; of integers out of range it is told;
    strings have to be read as the original reads them."""
    candidate = one.candidate
    for kind in odd_samples.kinds(builder.subject):
        found = _odd(one, kind, builder, made)
        if kind == "strings" and found:
            return f"strings that are empty, long or no UTF-8: {found}"
        if kind == "integers":
            candidate.integers = found
        elif kind == "numbers" and found:
            candidate.finite_only = True
            artefact.write_loader(one, builder.subject, made)
    return ""


def _odd_of_batch(one: Contestant, builder: Builder, made: Path, name: str) -> str:
    """What a further loader makes of them otherwise, where it is not what is told of the artefact."""
    for kind in odd_samples.kinds(builder.subject):
        if kind == "integers" and one.candidate.integers:
            continue
        if found := _odd(one, kind, builder, made, name):
            return f"odd {kind}: {found}"
    return ""


def _odd(one: Contestant, kind: str, builder: Builder, made: Path, name: str = artefact.LOADER) -> str:
    worker = builder.processes.worker(builder.directory / "logs" / "odd.txt")
    try:
        answer = worker.ask(
            "run_odd",
            SECONDS,
            builder.memory_limit,
            path=str(made / name),
            directory=str(made),
            subject=str(builder.subject.directory),
            batch=one.batch,
            kind=kind,
        )
        return str(answer["differs"])
    except WorkFailed as error:
        return f"not answered ({error})"
    finally:
        worker.end()


def _try_other_lengths(one: Contestant, builder: Builder, made: Path) -> str:
    """What is wrong with its answers to samples of other lengths: it has to answer as the original, or to refuse."""
    worker = builder.processes.worker(builder.directory / "logs" / "lengths.txt")
    try:
        answer = worker.ask(
            "run_other_lengths",
            SECONDS,
            builder.memory_limit,
            path=str(made / artefact.LOADER),
            directory=str(made),
            subject=str(builder.subject.directory),
            batch=one.batch,
        )
    finally:
        worker.end()
    one.candidate.any_length = bool(answer["answered"])
    return str(answer["problem"])


def _worker(one: Contestant, builder: Builder, purpose: str) -> Worker:
    preloaded = needs_tensorflow(builder.subject, one.candidate.route)
    return builder.processes.worker(builder.directory / "logs" / f"{purpose}.txt", preloaded)
