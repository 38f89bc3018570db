"""Which calls of `predict` one call for a batch can stand for, however their arguments are given."""

from __future__ import annotations

import numpy as np
import pytest

from flatout.observe import single_batches
from flatout.observe.single_batches import Signature


def predict(self, x, batch_size=None, verbose="auto", steps=None, callbacks=None):
    """As that of Keras."""


ROW, MANY = np.ones((1, 4)), np.ones((600, 4))
SINGLE = [
    ((ROW,), {}),
    ((ROW, None, 0, None, None), {}),
    ((), {"x": ROW, "verbose": 2, "callbacks": []}),
    ((ROW,), {"batch_size": np.int64(1), "steps": 1}),
    (([ROW, ROW],), {"callbacks": ()}),
    (((ROW, ROW),), {"verbose": False}),
    (({"state": ROW, "goal": ROW},), {"batch_size": len(ROW)}),
    ((MANY,), {"batch_size": len(MANY)}),
    ((MANY[:512],), {}),
]
OTHERS = [
    ((MANY,), {}),
    ((MANY,), {"batch_size": 1}),
    ((ROW,), {"steps": 3}),
    ((ROW,), {"callbacks": [print]}),
    ((ROW.tolist(),), {}),
    (([ROW, MANY],), {}),
    (((row for row in ROW),), {}),
    ((ROW,), {"mask": None, "unknown": 1}),
]


@pytest.mark.parametrize(("args", "kwargs"), SINGLE, ids=range(len(SINGLE)))
def test_rows_of_a_batch_are_one_batch_however_they_are_given(args, kwargs):
    found = Signature("predict", predict).single_batch(object(), args, kwargs)
    assert found is not None
    assert found.x is (args[0] if args else kwargs["x"])


@pytest.mark.parametrize(("args", "kwargs"), OTHERS, ids=range(len(OTHERS)))
def test_anything_else_is_left_to_keras(args, kwargs):
    assert Signature("predict", predict).single_batch(object(), args, kwargs) is None


class Long(list):
    def __iter__(self):
        yield [1.0]
        raise AssertionError("it is read on")


def test_a_long_list_of_numbers_is_not_read_to_its_end():
    assert not single_batches._rows([Long()])
    assert not single_batches.is_batch([None, Long()])
