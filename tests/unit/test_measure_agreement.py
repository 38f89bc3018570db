"""What tells answers from the original's: their form, what is no number, whole numbers, strings, and the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flatout.measure.agreement import agreement, difference, relative_error, unlike

SCORES = np.random.default_rng(1).normal(size=(12, 4)).astype("float32")
CLASSES = SCORES.argmax(1)
NAMES = np.array([b"a", b"", b"long", b"b"] * 3)


def with_values(**at: float) -> Any:
    made = SCORES.copy()
    for place, value in at.items():
        made[int(place[1:])] = value
    return made


@pytest.mark.parametrize(
    ("original", "given", "said"),
    [
        ([SCORES, CLASSES], [SCORES], "it has 1 outputs; the original has 2"),
        ([SCORES], [SCORES[:, :3]], "output 0 has the shape (12, 3); the original's is (12, 4)"),
        ([SCORES], [SCORES[:9]], "output 0 has the shape (9, 4)"),
        ([SCORES, CLASSES], [SCORES, CLASSES.astype("float32")], "output 1 is float32; the original's is int64"),
        ([CLASSES > 1], [(CLASSES > 1).astype("uint8")], "output 0 is uint8; the original's is bool"),
        ([NAMES], [CLASSES], "output 0 is int64; the original's is bytes"),
        ([SCORES], [with_values(_3=np.nan)], "output 0 has NaN or infinity in other places"),
        ([with_values(_3=np.nan)], [SCORES], "output 0 has NaN or infinity in other places"),
        ([with_values(_3=np.nan)], [with_values(_3=np.inf)], "output 0 has NaN or infinity in other places"),
        ([with_values(_3=np.inf)], [with_values(_3=-np.inf)], "output 0 has NaN or infinity in other places"),
    ],
)
def test_the_form_is_told_before_any_value(original: list[Any], given: list[Any], said: str) -> None:
    assert unlike(original, given).startswith(said)
    assert difference(original, given, 1e9).startswith(said)
    if len(original) == len(given) and original[0].shape == given[0].shape:
        assert min(agreement(original, given)) == float("-inf")


def test_widths_of_types_and_what_is_the_same_are_no_difference() -> None:
    broken = with_values(_2=np.nan, _3=-np.inf)
    original = [broken, CLASSES, NAMES, CLASSES > 1]
    given = [broken.astype("float64"), CLASSES.astype("int32"), NAMES.astype("S9"), CLASSES > 1]
    assert unlike(original, given) == difference(original, given, 0.0) == ""
    assert agreement(original, given) == [1.0] * 4


def test_whole_numbers_and_strings_are_equal_or_not() -> None:
    other = CLASSES.copy()
    other[:2] += 1
    assert difference([SCORES, CLASSES], [SCORES, other], 1.0) == "output 1 differs in 2 of 12 values"
    assert difference([NAMES], [np.where(NAMES == b"", b"[UNK]", NAMES)], 1.0) == "output 0 differs in 3 of 12 values"


def test_numbers_differ_by_more_than_is_allowed() -> None:
    assert difference([SCORES], [SCORES * 1.01], 0.02) == ""
    assert difference([SCORES], [SCORES * 1.01], 1e-3) == "its numbers are off by 1.0e-02"


def test_where_the_original_answers_zeros_alone_the_difference_itself_counts() -> None:
    assert relative_error([np.zeros(5)], [np.full(5, 3.0)]) == pytest.approx(3.0)
    assert relative_error([np.zeros(5)], [np.full(5, 1e-9)]) < 1e-8


def test_complex_numbers_may_differ_by_rounding() -> None:
    waves = (SCORES + 1j * SCORES[:, ::-1]).astype("complex64")
    assert difference([waves], [waves * (1 + 1e-6)], 1e-4) == ""
    assert agreement([waves], [waves * 1.01])[0] > 0.999
    assert "NaN" in unlike([waves], [np.where(waves == waves[0, 0], np.nan * 1j, waves)])


def test_single_numbers_are_compared() -> None:
    assert relative_error([np.float32(2.0)], [np.array(2.2)]) == pytest.approx(0.1, rel=1e-3)
