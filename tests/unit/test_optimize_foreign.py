"""Files made elsewhere, given to --compare: their inputs and outputs are put into the model's order."""

from __future__ import annotations

import numpy as np

from flatout.optimize.foreign import Orders, in_original_order, orders
from flatout.routes._route import End
from flatout.subject import Tensor

RNG = np.random.default_rng(5)
BOXES, SCORES = RNG.normal(size=(20, 4)), RNG.normal(size=(20, 4))
KIND = RNG.normal(size=(20, 3))


def tensor(name: str, *sample: int, dtype: str = "float32") -> Tensor:
    return Tensor(name, dtype, (None, *sample), sample)


def end(name: str, *shape: int | None, dtype: str = "float32") -> End:
    return End(name, dtype, shape)


def test_names_decide() -> None:
    found = orders(
        [tensor("b", 4), tensor("a", 4)],
        [tensor("late", 2), tensor("early", 2)],
        ([end("serving_default_a:0", 1, 4), end("serving_default_b:0", 1, 4)], [end("early", 1, 2), end("late", 1, 2)]),
    )
    assert found == Orders((1, 0), (1, 0))


def test_inputs_without_names_are_matched_by_their_form() -> None:
    wanted = [tensor("words", 7, dtype="int32"), tensor("picture", 8, 8, 3)]
    ends = [end("arg0", None, None, None, 3), end("arg1", 1, 7, dtype="int32")]
    assert orders(wanted, [], (ends, [])).inputs == (1, 0)


def test_what_cannot_be_told_apart_stays_as_it_is() -> None:
    wanted = [tensor("a", 4), tensor("b", 4)]
    assert orders(wanted, wanted, ([end("x", 1, 4), end("y", 1, 4)], [end("x", 1, 4), end("y", 1, 4)])) == Orders()


def test_outputs_are_matched_by_value() -> None:
    noisy = [array + RNG.normal(scale=0.01, size=array.shape) for array in (KIND, SCORES, BOXES)]
    answers, order = in_original_order([BOXES, SCORES, KIND], noisy, ())
    assert order == (2, 1, 0)
    assert [one.shape for one in answers] == [(20, 4), (20, 4), (20, 3)]
    assert np.allclose(answers[0], BOXES, atol=0.1)


def test_values_stand_over_misleading_names() -> None:
    answers, order = in_original_order([BOXES, SCORES], [BOXES, SCORES], (1, 0))
    assert order == ()
    assert np.array_equal(answers[0], BOXES)


def test_wrong_answers_are_matched_by_name_and_not_made_to_fit() -> None:
    wrong = [RNG.normal(size=(20, 4)), RNG.normal(size=(20, 4))]
    assert in_original_order([BOXES, SCORES], wrong, (1, 0))[1] == (1, 0)
    assert in_original_order([BOXES, SCORES], wrong, ())[1] == ()


def test_names_do_not_join_outputs_of_different_forms() -> None:
    assert in_original_order([BOXES, KIND], [SCORES, RNG.normal(size=(20, 3))], (1, 0))[1] == ()


def test_another_number_of_outputs_is_left_to_the_check() -> None:
    answers, order = in_original_order([BOXES, SCORES], [BOXES], ())
    assert (len(answers), order) == (1, ())


def test_fewer_answers_than_samples_are_matched_as_well() -> None:
    assert in_original_order([BOXES, SCORES], [SCORES[:9], BOXES[:9]], ())[1] == (1, 0)
