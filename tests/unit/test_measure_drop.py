"""The upper end of a drop: what few samples cannot show, and how many would."""

from __future__ import annotations

import pytest

from flatout.measure.drop import Drop, drop_of


def test_none_that_went_wrong_says_little_of_few_samples():
    none = Drop(0.0, 0.0, 100, counts=True)
    assert none.bound() == pytest.approx(0.034, abs=0.002), "about 3 / n"
    assert Drop(0.0, 0.0, 2000, counts=True).bound() < 0.002
    assert none.samples_to_show(0.01) == 350


def test_answers_that_are_the_same_up_to_rounding_need_no_allowance():
    assert Drop(0.0, 0.0, 20).bound() == 0.0


def test_what_seems_to_be_worse_than_allowed_is_shown_by_no_number_of_samples():
    assert Drop(0.02, 0.001, 100).samples_to_show(0.01) is None


def test_the_error_comes_from_leaving_out_groups():
    without = [0.010, 0.012, 0.008, 0.010]
    found = drop_of(0.01, without, 400, counts=False)
    assert found.error == pytest.approx((3 / 4 * 8e-6) ** 0.5)
    assert found.bound() > 0.01 + 2 * found.error, "four groups have three degrees of freedom"
    assert drop_of(0.0, [], 1, counts=False).bound() == float("inf")
