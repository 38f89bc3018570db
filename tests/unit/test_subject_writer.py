"""Which models have answers that can be compared sample by sample. TensorFlow is planted: answers are plain arrays."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from flatout.model.errors import ModelUnusable
from flatout.subject import Subject, Tensor, writer

SAMPLES = np.arange(1, 81, dtype="float32").reshape(40, 2)


@pytest.fixture(autouse=True)
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorflow", SimpleNamespace(constant=lambda array: array))


def answers(shape: tuple[int | None, ...], serve: Callable[[Any], Any], **options: Any) -> Any:
    inputs, outputs = (Tensor("x", "float32", (None, 2), (2,)),), (Tensor("answer", "float32", shape),)
    subject = Subject(Path("."), "m", "keras", inputs, outputs, **options)
    return writer._answers(subject, lambda array: [serve(array)], [SAMPLES], needs_rows=True)[0]


@pytest.mark.parametrize(
    ("shape", "serve"),
    [
        ((), lambda x: x.sum()),
        ((3,), lambda x: x[0, 0] * np.ones(3, "float32")),
        ((1, 2), lambda x: x[:1]),
        ((None, 2), lambda x: x[x[:, 0] > 9]),
        ((None,), lambda x: x.sum()),
    ],
    ids=["a scalar", "a fixed length", "a fixed length of one", "rows that the data decides", "no known shape"],
)
def test_an_output_without_a_row_for_each_sample_is_refused_by_name(shape: Any, serve: Any) -> None:
    with pytest.raises(ModelUnusable, match=r"Output 'answer' of the model has .* no row for each sample"):
        answers(shape, serve)


@pytest.mark.parametrize(
    ("shape", "options"),
    [((None, 2), {}), ((None,), {}), ((8, 2), {"batching": "fixed", "batches": (8,)})],
    ids=["rows", "no known shape", "a fixed batch"],
)
def test_an_output_with_rows_is_taken(shape: Any, options: Any) -> None:
    np.testing.assert_array_equal(answers(shape, lambda x: x * 2, **options), SAMPLES * 2)


def test_a_model_that_takes_one_sample_may_answer_a_scalar() -> None:
    made = answers((), lambda x: x.sum(), batching="none", batches=(0,))
    np.testing.assert_array_equal(made, SAMPLES.sum(1))
