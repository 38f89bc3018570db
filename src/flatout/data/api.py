"""`flatout.inspect` and `flatout.tune_dataset`: the same as the commands, in the user's own process."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Collection, Iterator
from typing import Any

from flatout.data import inspection, tuning
from flatout.data.tuning import Tuned
from flatout.model.case import Case
from flatout.model.errors import InvalidOption


def inspect(dataset: Any, *, needs: float | None = None, show: bool = True) -> Case:
    """Measure every stage of a `tf.data.Dataset`, and find the one that limits it.

    `needs` is how many elements (batches) a second the trainer takes. Copies of the dataset are iterated, not itself.
    """
    with _without_option_warnings():
        case = inspection.inspect([_dataset(dataset)], needs, report=_reporter(show))
    _show(case, "stages", show)
    return case


def tune_dataset(
    dataset: Any,
    *,
    allow: Collection[str] = (),
    memory: int | None = None,
    disk: str | None = None,
    budget: float = 120.0,
    needs: float | None = None,
    show: bool = True,
) -> Tuned:
    """Rewrite a `tf.data.Dataset` so that it is faster and yields the same elements; `.dataset` is the new one.

    `allow` permits `semantic` changes (stateful calls, or elements, in another order) and `reassociated` ones (other
    rounding). `memory` is the limit of a cache in bytes, `disk` a directory for a cache that is larger than that,
    `budget` the time limit in seconds.
    """
    unknown = set(allow) - {"semantic", "reassociated"}
    if unknown:
        raise InvalidOption(f"allow takes semantic and reassociated, not {', '.join(sorted(unknown))}.")
    request = tuning.TuningRequest(frozenset(allow), memory, disk, budget, needs)
    with _without_option_warnings():
        tuned = tuning.tune(_dataset(dataset), request, _reporter(show))
    _show(tuned.case, "trials", show)
    return tuned


def _dataset(value: Any) -> Any:
    if not hasattr(value, "_variant_tensor"):
        raise InvalidOption(f"A tf.data.Dataset was expected, not {type(value).__name__}.")
    return value


@contextlib.contextmanager
def _without_option_warnings() -> Iterator[None]:
    """TensorFlow warns of each option that is changed. Copies of a pipeline have them changed on purpose."""

    def passes(record: logging.LogRecord) -> bool:
        return "Changing the value of option" not in record.getMessage()

    logger = logging.getLogger("absl")
    logger.addFilter(passes)
    try:
        yield
    finally:
        logger.removeFilter(passes)


def _reporter(show: bool) -> inspection.Report:
    def report(text: str) -> None:
        if show and sys.stderr.isatty():
            sys.stderr.write(f"\r\x1b[Kflatout: {text}")
            sys.stderr.flush()

    return report


def _show(case: Case, view: str, show: bool) -> None:
    if show:
        from flatout.report.terminal import render

        clear = "\r\x1b[K" if sys.stderr.isatty() else ""
        sys.stderr.write(f"{clear}{render(case, view)}")
        sys.stderr.flush()
