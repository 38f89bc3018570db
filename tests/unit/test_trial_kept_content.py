"""What a kept cell has made: what counts as plain data, and that it comes back as it was."""

from __future__ import annotations

import collections
import datetime
import pickle
import stat
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flatout.trial.child.kept import content, plain
from flatout.trial.child.kept.plain import NotPlain

ROOM = 1 << 24


def back(tmp_path: Path, values: dict[str, Any]) -> dict[str, Any]:
    """`values`: all that holds them."""
    plain.check(values, values)
    content.store(tmp_path / "kept", values, ROOM)
    return content.restore(tmp_path / "kept")


def refused(values: dict[str, Any]) -> str:
    with pytest.raises(NotPlain) as found:
        plain.check(values, values)
    return str(found.value)


def alike(before: Any, after: Any) -> None:
    """In everything by which a program could tell them apart."""
    assert type(after) is np.ndarray
    assert (after.dtype, after.shape) == (before.dtype, before.shape)
    if before.size:
        axes = [axis for axis, size in enumerate(before.shape) if size > 1]
        assert [after.strides[axis] for axis in axes] == [before.strides[axis] for axis in axes]
    for flag in ("C_CONTIGUOUS", "F_CONTIGUOUS", "WRITEABLE", "ALIGNED", "OWNDATA"):
        assert after.flags[flag] == before.flags[flag], flag
    np.testing.assert_array_equal(after, before)


def locked(array: Any) -> Any:
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    "make",
    [
        lambda: np.arange(24.0).reshape(2, 3, 4).copy(),
        lambda: np.asfortranarray(np.arange(24.0).reshape(2, 3, 4)),
        lambda: np.arange(24).reshape(2, 3, 4).transpose(1, 2, 0) * 1,  # has its own memory, in another order
        lambda: locked(np.arange(3, dtype="<i2").copy()),
        lambda: np.array(7.5),
        lambda: np.empty((0, 3)),
        lambda: np.array(["a", "bc"]),
        lambda: np.array(["2024-01-01"], "datetime64[D]"),
        lambda: np.array([(1, 2.5)], [("a", "i4"), ("b", "f8")]),
        lambda: np.array([True, False]),
        lambda: np.array([1 + 2j]),
        lambda: np.array([["x", None], [1.5, (2,)]], object),
        lambda: np.asfortranarray(np.array([["x", None], [1.5, (2,)]], object)),
    ],
)
def test_an_array_comes_back_as_it_was(tmp_path: Path, make: Any) -> None:
    values = {"array": make()}
    after = back(tmp_path, values)["array"]
    alike(values["array"], after)


@pytest.mark.parametrize("dtype", ["f4", "O"])
def test_what_shares_memory_shares_it_again(tmp_path: Path, dtype: str) -> None:
    whole = np.asfortranarray(np.arange(60).reshape(6, 10).astype(dtype))
    values = {
        "rows": whole[1:4], "back": whole[::-1, ::2], "turned": whole.T, "again": [whole, whole], "one": whole[2, 3:4],
        "still": locked(whole[:2]),
    }  # fmt: skip
    del whole
    after = back(tmp_path, values)
    for name in ("rows", "back", "turned", "one", "still"):
        alike(values[name], after[name])
    first, second = after["again"]
    assert first is second
    alike(values["again"][0], first)
    first[2, 3] = -1
    assert (after["rows"][1, 3], after["turned"][3, 2], after["one"][0]) == (-1, -1, -1)


def test_a_part_may_be_written_though_the_whole_may_not(tmp_path: Path) -> None:
    values = {"whole": np.arange(6)}
    values["part"] = values["whole"][2:]
    locked(values["whole"])
    after = back(tmp_path, values)
    alike(values["whole"], after["whole"])
    after["part"][0] = 9
    assert after["whole"][2] == 9


def test_memory_of_bytes(tmp_path: Path) -> None:
    values = {"array": np.frombuffer(bytes(range(12)), "u1").reshape(3, 4)}
    after = back(tmp_path, values)["array"]
    assert not after.flags.writeable
    np.testing.assert_array_equal(after, values["array"])


def test_containers_come_back_with_what_is_the_same_object(tmp_path: Path) -> None:
    row = [1.5, "text", None, b"bytes", 2 + 1j]
    loop: list[Any] = [row]
    loop.append(loop)
    values = {
        "row": row,
        "both": {"row": row, (1, 2): {3, 4}, "day": datetime.date(2024, 1, 2)},
        "loop": loop,
        "counts": collections.Counter("abca"),
        "lists": collections.defaultdict(list, a=[1]),
        "number": np.float32(1.25),
        "path": Path("x/y"),
        "size": 10**30,
        "kind": np.dtype("f4"),
        "queue": collections.deque([1, 2], 3),
    }
    del row, loop
    after = back(tmp_path, values)
    assert after["both"]["row"] is after["row"] is after["loop"][0]
    assert after["loop"][1] is after["loop"]
    for name in set(values) - {"loop"}:
        assert (type(after[name]), after[name]) == (type(values[name]), values[name])
    assert list(after["both"]) == list(values["both"])
    assert after["queue"].maxlen == 3


class Own:
    pass


def test_what_is_no_plain_data_is_refused(tmp_path: Path) -> None:
    assert refused({"x": [1, Own()]}) == "`x` is no plain data: it has a Own"
    assert "function" in refused({"x": print})
    assert "function" in refused({"x": {"f": lambda: 0}})
    assert "module" in refused({"x": sys})
    assert "Generator" in refused({"x": np.random.default_rng()})
    assert "TextIOWrapper" in refused({"x": open(__file__)})  # noqa: SIM115
    assert "type" in refused({"x": int})
    assert "MaskedArray" in refused({"x": np.ma.array([1])})
    assert "matrix" in refused({"x": np.matrix([1])})
    assert "void" in refused({"x": np.array([(1,)], [("a", "i4")])[0]})
    assert "objects in its fields" in refused({"x": np.zeros(2, [("a", "O")])})
    assert "Own" in refused({"x": np.array([Own()], object)})
    assert "has a function" in refused({"x": collections.defaultdict(lambda: 0)})
    file = np.memmap(tmp_path / "mapped", "u1", "w+", shape=(4,))
    assert "memmap" in refused({"x": file})
    assert "belongs to a memmap" in refused({"x": np.asarray(file)})
    assert "belongs to a memoryview" in refused({"x": np.frombuffer(bytearray(4), "u1")})


def test_what_something_else_holds_is_refused() -> None:
    outside = [1, 2]
    assert refused({"x": [1], "y": [outside]}) == "something else holds `y` as well, or a part of it"
    array = np.arange(5)
    assert "`y`" in refused({"x": [1], "y": array[1:]})
    values = {"x": [1, 2]}
    iterator = iter(values["x"])
    assert "`x`" in refused(values)
    del iterator
    plain.check(values, values)


def test_names_that_are_not_kept_may_hold_the_same() -> None:
    values: dict[str, Any] = {"raw": [np.arange(10), Own()]}
    values["x"] = values["raw"][0][2:]
    with pytest.raises(NotPlain):
        plain.check(values, ["x"])
    assert plain.check(values, ["x"], ["raw"]) == values["raw"][0].nbytes
    values["mixed"] = (Own(), values["x"])
    plain.check(values, ["x"], ["raw", "mixed"])


def test_a_set_that_would_come_back_in_another_order_is_refused() -> None:
    values = {"x": {7, 8}}
    plain.check(values, values)
    grown = set(range(1000))
    grown.difference_update(set(range(1000)) - {7, 8})  # its table stays large
    values = {"x": grown}
    del grown
    assert list(values["x"]) != list(pickle.loads(pickle.dumps(values["x"])))
    assert refused(values) == "the order of the set in `x` would be another one"


def test_there_is_no_file_where_it_was_too_large(tmp_path: Path) -> None:
    with pytest.raises(NotPlain, match="takes more than"):
        content.store(tmp_path / "kept", {"x": np.zeros(ROOM)}, ROOM)
    with pytest.raises(NotPlain, match="takes more than"):
        content.store(tmp_path / "kept", {"x": b"x" * (ROOM + 1)}, ROOM)
    with pytest.raises(NotPlain, match="takes more than"):
        content.store(tmp_path / "kept", {"x": b"x" * (ROOM // 2), "y": np.zeros(ROOM // 14)}, ROOM)
    with pytest.raises(NotPlain, match="it makes a Own"):
        content.store(tmp_path / "kept", {"x": Own()}, ROOM)
    with pytest.raises(NotPlain, match="cannot be written"):
        content.store(tmp_path / "gone" / "kept", {}, ROOM)
    assert not list(tmp_path.iterdir())


def test_only_the_user_may_read_it(tmp_path: Path) -> None:
    content.store(tmp_path / "kept", {"x": np.zeros(3)}, ROOM)
    for path in (tmp_path / "kept", *(tmp_path / "kept").iterdir()):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0


def test_frames_of_pandas(tmp_path: Path) -> None:
    pandas: Any = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, 2.0], "b": ["x", None], "c": [3, 4]}, index=["r", "s"])
    values = {
        "frame": frame,
        "numbers": frame[["a", "c"]].to_numpy(),
        "column": frame["a"].copy(),
        "other": frame.copy(),
    }
    del frame
    after = back(tmp_path, values)
    pandas.testing.assert_frame_equal(after["frame"], values["frame"])
    pandas.testing.assert_series_equal(after["column"], values["column"])
    alike(values["numbers"], after["numbers"])
    values["column"] = values["frame"]["a"]
    assert "share their memory" in refused(values)
    objects = {"frame": pandas.DataFrame({"a": [Own(), 1]})}
    assert "Own" in refused(objects)
