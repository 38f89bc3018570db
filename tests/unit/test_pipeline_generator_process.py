"""A generator in a process of its own gives the same elements, in order, and its errors."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from flatout.pipeline import generator_process


def flatten(element: Any) -> tuple[Any, ...]:
    return tuple(np.asarray(part) for part in element)


def rows(generator: Any) -> list[tuple[Any, ...]]:
    return [
        row
        for chunk in generator_process.chunks(generator, flatten)
        for row in zip(*(a.tolist() for a in chunk), strict=True)
    ]


def test_elements_come_in_order_whatever_their_shapes():
    def generator() -> Iterator[Any]:
        for number in range(300):
            yield number, [number] * (1 + number // 100)

    assert rows(generator) == [(n, [n] * (1 + n // 100)) for n in range(300)]


def test_it_runs_in_another_process():
    assert rows(lambda: iter([(os.getpid(), 0)]))[0][0] != os.getpid()


def test_an_empty_generator_has_no_chunks():
    assert rows(lambda: iter(())) == []


def test_an_error_comes_through_behind_what_was_sent():
    def generator() -> Iterator[Any]:
        for number in range(generator_process.CHUNK + 2):
            yield number, 2
        raise KeyError("lost")

    found: list[int] = []

    def read() -> None:
        for numbers, _ in generator_process.chunks(generator, flatten):
            found.extend(numbers.tolist())

    with pytest.raises(KeyError, match="lost"):
        read()
    assert found == list(range(generator_process.CHUNK + 2))


def test_a_process_that_dies_is_an_error_and_no_end():
    def generator() -> Iterator[Any]:
        yield 1, 2
        os._exit(3)

    with pytest.raises(RuntimeError, match="code 3"):
        rows(generator)


def test_a_reader_that_leaves_ends_the_process():
    def generator() -> Iterator[Any]:
        while True:
            yield os.getpid(), 0

    chunks = generator_process.chunks(generator, flatten)
    process = int(next(chunks)[0][0])
    chunks.close()  # type: ignore[attr-defined]
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
