"""Preprocessing in plain Python, and where a graph is cut for it."""

from __future__ import annotations

import numpy as np
import pytest

from flatout.subject import steps
from flatout.subject.fingerprint import fingerprint
from flatout.subject.numpy_steps import CHARACTERS
from flatout.subject.stages import Node, cut


def test_texts_become_bytes_whatever_their_form() -> None:
    for given in (np.array(["Köln"]), np.array(["Köln".encode()]), np.array(["Köln"], object), ["Köln"]):
        assert steps.texts_of(given).tolist() == ["Köln".encode()]
    assert steps.texts_of(np.array([b"\xff\x00a"], object)).tolist() == [b"\xff\x00a"]


def test_a_count_refuses_negative_numbers() -> None:
    count = steps.bincount({}, binary=True)
    empty = np.zeros(0, "float32")
    assert count(np.array([[1, 1, 5]]), np.int64(3), empty).tolist() == [[0, 1, 0]]
    with pytest.raises(ValueError, match="negative"):
        count(np.array([[-1]]), np.int64(3), empty)


def test_rows_are_cut_and_filled() -> None:
    indices, words, shape = steps.split_words({})(steps.texts_of(["a b c", "", "d"]), b"")
    assert words.tolist() == [b"a", b"b", b"c", b"d"]
    assert shape.tolist() == [3, 3]
    numbers = np.arange(1, 5)
    rows = steps.rows_to_array({})(np.array([-1, 2]), numbers, np.int64(0), shape[0], indices[:, 0])
    assert rows.tolist() == [[1, 2], [0, 0], [4, 0]]


@pytest.mark.parametrize(
    "pattern", [r"""[!"#$%&()\*\+,-\./:;<=>?@\[\\\]^_`{|}~\']""", "[a-z]", r"[\d ]", "[[(]", r"[\^a]"]
)
def test_a_set_of_characters_is_known(pattern: str) -> None:
    assert CHARACTERS.fullmatch(pattern)


@pytest.mark.parametrize(
    "pattern",
    ["[a][^b]", "[a]|[^b]", "[a].[b]", "[^a]", "[[:alpha:]]", r"[\s]", r"[\pL]", "[a]+", "[ä]", "[a\n]", "[]"],
)
def test_what_may_mean_something_else_in_python_is_left_to_tensorflow(pattern: str) -> None:
    assert not CHARACTERS.fullmatch(pattern)


def test_the_hash_of_each_length() -> None:
    """Known values of FarmHash's fingerprint."""
    assert fingerprint(b"") == 0x9AE16A3B2F90404F
    assert len({fingerprint(b"x" * size) for size in range(200)}) == 200


def graph(*nodes: Node) -> dict[str, Node]:
    return {node.name: node for node in nodes}


def test_strings_before_the_core_and_after_it() -> None:
    nodes = graph(
        Node("text", "Placeholder", (), types=("string",)),
        Node("hash", "StringToHashBucketFast", ("text:0",), types=("string", "int64")),
        Node("table", "Const", ()),
        Node("embed", "GatherV2", ("table:0", "hash:0"), types=("float32", "int64")),
        Node("product", "MatMul", ("embed:0", "table:0"), types=("float32",)),
        Node("best", "ArgMax", ("product:0",), types=("float32", "int64")),
        Node("label", "AsString", ("best:0",), types=("int64", "string")),
    )
    found = cut(nodes, ["product:0", "label:0"])
    assert found is not None
    assert found.before == {"text", "hash"}
    assert found.core == {"embed", "product"}
    assert {"best", "label"} <= found.after  # nothing else reads the first
    assert found.into_core == ("hash:0",)
    assert found.from_core == ("product:0",)


def test_a_loop_is_not_cut() -> None:
    nodes = graph(
        Node("text", "Placeholder", (), types=("string",)),
        Node("enter", "Enter", ("text:0",), types=("string",), frame="loop"),
        Node("merge", "Merge", ("enter:0", "next:0"), types=("string",)),
        Node("length", "StringLength", ("merge:0",), types=("string", "int32")),
        Node("double", "Mul", ("length:0", "length:0"), types=("int32",)),
        Node("next", "NextIteration", ("merge:0",), types=("string",)),
        Node("exit", "Exit", ("double:0",), types=("int32",)),
        Node("product", "MatMul", ("exit:0", "exit:0"), types=("float32",)),
    )
    found = cut(nodes, ["product:0"])
    assert found is not None
    assert {"enter", "merge", "next", "double", "exit"} <= found.before
    assert found.core == {"product"}


def test_nothing_to_part_where_there_are_no_strings() -> None:
    nodes = graph(Node("x", "Placeholder", ()), Node("y", "MatMul", ("x:0", "x:0"), types=("float32",)))
    assert cut(nodes, ["y:0"]) is None
