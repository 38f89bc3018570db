"""What a program puts out over a whole run, kept as sums over stretches: which faults show in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flatout.measure.parity import Numbers, whole
from flatout.measure.parity.numbers import Digest, Weights
from flatout.trial.child.values import Values

ROWS, CLASSES = 60_000, 5
Array = np.ndarray[Any, Any]


def made() -> Array:
    return np.random.default_rng(0).normal(size=(ROWS, CLASSES)).astype(np.float32)


def seen(directory: Path, rows: Array, batch: int = 64, name: str = "predict") -> Numbers:
    """As a run that is only compared writes it down."""
    directory.mkdir(parents=True)
    values = Values(str(directory), dense=True)
    values.wanted = True
    for number, begin in enumerate(range(0, len(rows), batch), 1):
        values.keep_results(name, rows[begin : begin + batch], number)
        values.tick(number, (3, False))
    values.finish()
    return Numbers.load(directory / "numbers.npz")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Numbers:
    return seen(tmp_path_factory.mktemp("base") / "run", made())


def row(rows: Array) -> Array:
    rows[-20] = rows[-21]
    return rows


def swapped(rows: Array) -> Array:
    rows[[ROWS - 7, ROWS - 900]] = rows[[ROWS - 900, ROWS - 7]]
    return rows


FAULTS: dict[str, Callable[[Array], Array]] = {
    "one row of the last": row,
    "two rows that changed places": swapped,
    "one row in a hundred": lambda rows: np.where(np.arange(ROWS)[:, None] % 100 == 99, 0.9 * rows, rows),
    "another precision": lambda rows: rows.astype(np.float16).astype(np.float32),
    "scaled": lambda rows: rows * np.float32(1.001),
    "the last batch dropped": lambda rows: rows[: ROWS - ROWS % 64],
    "a row too many": lambda rows: np.concatenate([rows, rows[-1:]]),
    "not a number": lambda rows: np.where(np.arange(ROWS)[:, None] == ROWS - 3, np.nan, rows),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_shows_however_late_it_comes(fault: str, base: Numbers, tmp_path: Path) -> None:
    """All of them lie behind the first elements that are kept as they are."""
    found = whole.compare(base, seen(tmp_path / "run", FAULTS[fault](made()).astype(np.float32)))
    assert found.verdict in ("precision", "failed"), found


def test_batches_and_names_may_be_others(base: Numbers, tmp_path: Path) -> None:
    found = whole.compare(base, replace(seen(tmp_path / "run", made(), 250, "model"), made=base.made))
    assert found.verdict == "exact", found
    assert found.extent is not None
    assert found.extent.outputs == ROWS * CLASSES
    again = whole.compare(base, seen(tmp_path / "again", made()))
    assert again.verdict == "exact"
    assert f"{ROWS * CLASSES:,} elements of outputs, to the end of the program, are the same" in again.sentence


def test_elements_that_are_no_numbers_in_both_hide_nothing(base: Numbers, tmp_path: Path) -> None:
    rows = made()
    rows[7, 2], rows[-3, 1] = np.nan, np.inf
    blown = seen(tmp_path / "run", rows)
    again = replace(seen(tmp_path / "again", rows, 250), made=blown.made)
    assert whole.compare(blown, again).verdict == "exact"
    for place, value in (((-3, 1), -np.inf), ((-3, 1), np.nan), ((-3, 0), np.inf), ((-4, 1), 0.5)):
        other = rows.copy()
        other[place] = value
        found = whole.compare(blown, seen(tmp_path / f"{place}{value}", other))
        assert found.verdict in ("precision", "failed"), (place, value, found)
    assert whole.compare(blown, base).verdict == "failed"


def test_what_one_run_has_not_put_out_as_a_whole_does_not_count_as_compared(tmp_path: Path) -> None:
    rows = made()[:200]
    first, longer = (replace(seen(tmp_path / f"{n}", rows[:n]), made=4, ended=False) for n in (120, 200))
    found = whole.compare(longer, first)
    assert found.extent is not None
    assert found.sentence.startswith("512 elements of outputs"), "of 600, in stretches of 256"
    short = whole.compare(longer, replace(seen(tmp_path / "50", rows[:50]), made=4, ended=False))
    assert short.verdict == "unknown"


def test_variables_that_never_move_do_not_stand_for_outputs_that_were_not_compared() -> None:
    def predicts(**outputs: float) -> Numbers:
        still = {count: {0: Weights("float32 (3,)", 7, np.ones(3, np.float32))} for count in (1, 2, 4)}
        digests = {name: Digest(256, 9, np.array([[value, 9.0, 0.0]])) for name, value in outputs.items()}
        return Numbers(still, digests=digests, made=4, ended=True)

    found = whole.compare(predicts(one=1.0, two=2.0), predicts(three=5.0, four=6.0))
    assert (found.verdict, found.sentence) == ("unknown", "no number was seen in both")
    assert whole.compare(predicts(one=1.0, two=2.0), predicts(one=1.0, two=2.0)).verdict == "exact"


def test_rounding_is_no_fault(base: Numbers, tmp_path: Path) -> None:
    shaken = made() * (1 + 1e-6 * np.random.default_rng(1).normal(size=(ROWS, CLASSES))).astype(np.float32)
    assert whole.compare(base, seen(tmp_path / "run", shaken)).verdict == "reassociated"


def test_what_is_kept_is_bounded(base: Numbers, tmp_path: Path) -> None:
    digest = base.digests["predict[0]"]
    assert digest.length == ROWS * CLASSES
    long = seen(tmp_path / "run", np.ones((3_000_000, 1), np.float32), 100_000).digests["predict[0]"]
    assert (long.length, len(long.rows) <= 4096) == (3_000_000, True)
    assert np.isclose(long.rows[:, 1].sum(), 3e6)
