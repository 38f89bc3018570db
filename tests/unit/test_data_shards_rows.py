"""Tables, JSON and arrays as shards: types that every row allows, values that come back, text that is kept."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from shards_made import converted, tree

from flatout.data.shards import elements as pipeline_elements
from flatout.data.shards import example, extract, formats, verify, workers
from flatout.data.shards.convert import Outcome
from flatout.data.shards.schema import Feature
from flatout.data.shards.sources import csv_rows, detection, json_rows
from flatout.model.errors import FlatoutError


def elements(done: Outcome) -> list[example.Decoded]:
    found = done.schema
    return [
        example.decode(record)
        for one in found.shards
        for record in formats.read(done.path.parent / one.file, found.format, found.compression)
    ]


def features(done: Outcome) -> dict[str, tuple[str, Any]]:
    return {one.name: (one.dtype, one.shape) for one in done.schema.features}


def opened(path: Path, **wishes: bool) -> Any:
    return detection.open_source(str(path), "auto", detection.RowOptions(**wishes))


def test_columns_have_the_type_that_every_row_allows(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(
        "id,size,zip,word,gap,large,mixed\n"
        '1,1.5,00123,"a, ""b""\nc",1,12345678901,1\n'
        "-7,2,10115,,,2,x\n"
        "\n"
        "9223372036854775807, 3e2 ,99999,ü,2,,2.5\n"
    )
    done = converted(path, tmp_path / "out", name="t")
    assert {name: dtype for name, (dtype, _) in features(done).items()} == {
        "id": "int64",
        "size": "float32",
        "zip": "string",  # a leading zero makes it a name
        "word": "string",
        "gap": "float32",  # one is missing: not a number
        "large": "string",  # one is missing, and float32 would round the others
        "mixed": "string",
    }
    rows = elements(done)
    assert [int(row["id"][0]) for row in rows] == [1, -7, 2**63 - 1]
    assert [float(row["size"][0]) for row in rows] == [1.5, 2.0, 300.0]
    assert [row["zip"][0] for row in rows] == [b"00123", b"10115", b"99999"]
    assert [row["word"][0] for row in rows] == [b'a, "b"\nc', b"", "ü".encode()]
    assert np.isnan(rows[1]["gap"][0])
    assert [row["large"][0] for row in rows] == [b"12345678901", b"2", b""]
    assert [row["mixed"][0] for row in rows] == [b"1", b"x", b"2.5"]
    verify.verify(done.schema, tmp_path / "out", opened(path), 1, quiet=True)


def test_long_numbers_are_not_rounded(tmp_path: Path) -> None:
    rows = ["key,phone,small", "12345678901234567890,+4915112345678,+5", "12345678901234567891,+4915112345679,-0"]
    (tmp_path / "t.csv").write_text("\n".join(rows))
    done = converted(tmp_path / "t.csv", tmp_path / "out", name="t")
    assert {name: kind for name, (kind, _) in features(done).items()} == {
        "key": "string",
        "phone": "string",
        "small": "float32",
    }
    assert [bytes(row["key"][0]) for row in elements(done)] == [b"12345678901234567890", b"12345678901234567891"]


def test_a_number_too_large_for_its_type_is_corrupt_and_not_infinite(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a\n1e300\ninf\n0.5\n")
    with pytest.raises(FlatoutError, match=r"1e300 in 'a' is larger .* --float64 keeps it"):
        converted(tmp_path / "t.csv", tmp_path / "no", name="t")
    done = converted(opened(tmp_path / "t.csv", float64=True), tmp_path / "out", name="t")
    assert [np.frombuffer(bytes(row["a"][0]), "<f8")[0] for row in elements(done)] == [1e300, float("inf"), 0.5]
    (tmp_path / "t.jsonl").write_text('{"a": [1e300, 0.5]}\n{"a": [0.5, 1]}\n')
    with pytest.raises(FlatoutError, match="larger than any number"):
        converted(tmp_path / "t.jsonl", tmp_path / "lists", name="t")


def test_rows_that_do_not_fit_are_corrupt(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n3\n4,5,6\n7,8\n")
    with pytest.raises(FlatoutError, match=r"t\.csv, byte 8.*it has 1 fields; 2 were expected"):
        converted(path, tmp_path / "no", name="t")
    done = converted(path, tmp_path / "out", name="t", skip=True)
    assert [int(row["a"][0]) for row in elements(done)] == [1, 7]
    assert features(done)["a"][0] == "int64", "a row that is left out says nothing of the types"
    assert len(done.schema.skipped) == 2


@pytest.mark.parametrize("shuffle", [None, 3])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_kept_text_comes_back_byte_for_byte(tmp_path: Path, shuffle: int | None, ending: str) -> None:
    root = tmp_path / "tables"
    root.mkdir()
    for name, rows in {"a.csv": 50, "b.csv": 30}.items():
        lines = [f'{n},{n / 3},"row, ""{n}""{ending}second line"' for n in range(rows)]
        text = ending.join(["\ufeffn,third,words", *lines, "", lines[0]])
        (root / name).write_bytes(text.encode() + (b"" if name == "b.csv" else ending.encode()))
    done = converted(opened(root, keep_text=True), tmp_path / "out", name="t", shuffle=shuffle, shard_size=4000)
    assert done.schema.elements == 82
    assert features(done)["n"][0] == "int64", "the byte order mark is no part of the name"
    assert len(done.schema.shards) > 1
    assert extract.extract(done.schema, tmp_path / "out", tmp_path / "back", 1, quiet=True) == 82
    assert tree(tmp_path / "back") == tree(root)


def test_empty_lines_before_the_first_row_come_back(tmp_path: Path) -> None:
    root = tmp_path / "rows"
    root.mkdir()
    (root / "a.jsonl").write_text('\n\r\n{"a": 1}\n\n{"a": 2}')
    (root / "b.jsonl").write_text('{"a": 3}\n')
    done = converted(opened(root, keep_text=True), tmp_path / "out", name="t")
    assert extract.extract(done.schema, tmp_path / "out", tmp_path / "back", 1, quiet=True) == 3
    assert tree(tmp_path / "back") == tree(root)


def test_without_its_text_a_table_is_not_given_back_in_another_form(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a\n1\n")
    done = converted(tmp_path / "t.csv", tmp_path / "out", name="t")
    with pytest.raises(FlatoutError, match="--keep-text"):
        extract.extract(done.schema, tmp_path / "out", tmp_path / "back", 1, quiet=True)


def test_doubles_are_kept_where_asked(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("x\n0.1\n1700000000.123\n")
    done = converted(opened(tmp_path / "t.csv", float64=True), tmp_path / "out", name="t")
    assert features(done)["x"][0] == "float64"
    assert [np.frombuffer(row["x"][0], "<f8")[0] for row in elements(done)] == [0.1, 1700000000.123]


def test_a_table_without_names_of_columns(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text("1\t2.5\n3\t4\n")
    done = converted(opened(tmp_path / "t.tsv", header=False), tmp_path / "out", name="t")
    assert features(done) == {"column_0": ("int64", ()), "column_1": ("float32", ())}
    (tmp_path / "u.csv").write_text("1,1\n2,3\n")
    with pytest.raises(FlatoutError, match="--no-header"):
        converted(tmp_path / "u.csv", tmp_path / "no", name="u")


def test_rows_are_what_python_s_own_reader_makes_of_them(tmp_path: Path) -> None:
    """A quote inside a field that is not quoted, a field of many lines, one beyond any form's length."""
    path = tmp_path / "t.csv"
    long = "x" * 300_000
    path.write_text(f'size,word\n5" pipe,a\n"6"" pipe\n\n,",b\n{long},c\n')
    done = converted(path, tmp_path / "out", name="t")
    assert [row["size"][0] for row in elements(done)] == [b'5" pipe', b'6" pipe\n\n,', long.encode()]
    assert [row["word"][0] for row in elements(done)] == [b"a", b"b", b"c"]


def test_tables_of_other_columns_are_not_thrown_together(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "a.csv").write_text("x,y\n1,2\n")
    (tmp_path / "t" / "b.csv").write_text("y,x\n1,2\n")
    with pytest.raises(FlatoutError, match=r"a\.csv and b\.csv do not have the same columns"):
        detection.open_source(str(tmp_path / "t"))


def test_text_that_is_none_is_told(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"a": "\\ud83d"}\n{"a": "\\ud83d\\ude00"}\n')
    with pytest.raises(FlatoutError, match="half of a surrogate pair"):
        converted(tmp_path / "t.jsonl", tmp_path / "no", name="t")
    done = converted(tmp_path / "t.jsonl", tmp_path / "out", name="t", skip=True)
    assert elements(done)[0]["a"] == ["😀".encode()]
    (tmp_path / "t.csv").write_bytes(b"caf\xe9\n1\n")
    with pytest.raises(FlatoutError, match="UTF-8"):
        converted(tmp_path / "t.csv", tmp_path / "no", name="t")
    (tmp_path / "u.csv").write_bytes(b"a\ncaf\xe9\n")
    assert elements(converted(tmp_path / "u.csv", tmp_path / "u", name="u"))[0]["a"] == [b"caf\xe9"]


def test_json_keeps_lists_and_nested_objects(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    rows = [
        {"n": 1, "x": 1, "ok": True, "tags": ["a", "b"], "box": {"at": [1, 2], "m": [[1, 2], [3, 4]]}, "any": 1},
        {"n": -2, "x": 0.5, "ok": False, "tags": [], "box": {"at": [-3, 4], "m": [[5, 6], [7, 8]]}, "any": {"k": [1]}},
        {"n": 3, "x": None, "ok": True, "tags": ["☃"], "box": {"at": [5, 6], "m": [[9, 1], [2, 3]]}},
    ]
    path.write_text("\n".join(map(json.dumps, rows)) + "\n\n")
    done = converted(path, tmp_path / "out", name="t")
    found = features(done)
    assert found["n"] == ("int64", ())
    assert found["x"] == ("float32", ())
    assert found["ok"] == ("bool", ())
    assert found["tags"] == ("string", (None,))
    assert found["box/at"] == ("int64", (2,))
    assert found["box/m"] == ("int64", (2, 2))
    values = elements(done)
    assert [row["tags"] for row in values] == [[b"a", b"b"], [], ["☃".encode()]]
    assert values[1]["box/m"].tolist() == [5, 6, 7, 8]  # type: ignore[union-attr]
    assert np.isnan(values[2]["x"][0])
    assert "any/k" in found, "an object in some rows, a number in others"
    verify.verify(done.schema, tmp_path / "out", opened(path), 1, quiet=True)


def test_json_that_is_none_is_corrupt(tmp_path: Path) -> None:
    path = tmp_path / "t.ndjson"
    path.write_text('{"a": 1}\n{"a": \n[1]\n{"a": 2}\n')
    with pytest.raises(FlatoutError, match="it is not JSON"):
        converted(path, tmp_path / "no", name="t")
    done = converted(path, tmp_path / "out", name="t", skip=True)
    assert [int(row["a"][0]) for row in elements(done)] == [1, 2]


@pytest.mark.parametrize(
    ("rows", "stored"),
    [
        ([5, []], [b"5", b"[]"]),
        ([[], None, "x"], [b"[]", b"null", b'"x"']),
        ([None, []], [b"null", b"[]"]),
        ([[[]], [[1]]], [b"[[]]", b"[[1]]"]),
    ],
)
def test_an_empty_list_among_other_values_is_kept_as_json(tmp_path: Path, rows: list[Any], stored: list[bytes]) -> None:
    (tmp_path / "t.jsonl").write_text("\n".join(json.dumps({"a": value}) for value in rows))
    done = converted(tmp_path / "t.jsonl", tmp_path / "out", name="t")
    assert done.schema.features[0].encoding == "json"
    assert [row["a"] for row in elements(done)] == [[one] for one in stored]


@pytest.mark.parametrize("rows", [[[], [1], [1, 2]], [[1], [], [1, 2]], [None, [], [1]]])
def test_an_empty_list_among_lists_is_one_of_them(tmp_path: Path, rows: list[Any]) -> None:
    (tmp_path / "t.jsonl").write_text("\n".join(json.dumps({"a": value}) for value in rows))
    done = converted(tmp_path / "t.jsonl", tmp_path / "out", name="t")
    assert [list(map(int, row["a"])) for row in elements(done)] == [value or [] for value in rows]


def test_no_value_of_json_takes_the_place_of_another(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"a/b": 1}\n{"a": {"b": 1}, "a/b": 2}\n')
    with pytest.raises(FlatoutError, match="two of its values have the name 'a/b'"):
        converted(tmp_path / "t.jsonl", tmp_path / "out", name="t")


def test_many_small_json_files_are_an_element_each(tmp_path: Path) -> None:
    root = tmp_path / "notes"
    root.mkdir()
    for number in range(30):
        (root / f"{number:02d}.json").write_text(json.dumps({"n": number, "t": "x" * number}, indent=2))
    done = converted(opened(root, keep_text=True), tmp_path / "out", name="notes", shuffle=1)
    assert sorted(int(row["n"][0]) for row in elements(done)) == list(range(30))
    extract.extract(done.schema, tmp_path / "out", tmp_path / "back", 1, quiet=True)
    assert tree(tmp_path / "back") == tree(root)


def test_a_survey_on_all_cores_sees_the_same_as_on_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "".join(f"{n},{n if n != 777 else 'x'}\n" for n in range(1000)))
    alone = csv_rows.Csv.open([path]).features
    monkeypatch.setattr(workers, "FEW_ELEMENTS", 10)
    assert csv_rows.Csv.open([path]).features == alone
    assert {one.name: one.dtype for one in alone} == {"a": "int64", "b": "string"}


@pytest.mark.parametrize("seed", range(6))
def test_no_record_is_larger_than_was_planned(tmp_path: Path, seed: int) -> None:
    random = np.random.default_rng(seed)
    rows = [
        {"i": int(random.integers(-5, 5)), "l": [-1] * int(random.integers(0, 30)), "t": "é" * int(random.integers(9))}
        for _ in range(50)
    ]
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(json.dumps(row, separators=(",", ":"), ensure_ascii=bool(seed % 2)) for row in rows))
    source = json_rows.Json.open([path], keep_text=bool(seed % 3))
    sizes = source.sizes()
    for number in range(50):
        assert len(example.encode(source.read(number))) <= sizes[number]


# ── arrays ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "dtype", ["float16", "float32", "float64", "int8", "uint64", "int64", "bool", "complex64", ">i4"]
)
def test_rows_of_an_array_come_back(tmp_path: Path, dtype: str) -> None:
    array = np.random.default_rng(0).integers(0, 2, (50, 3, 4)).astype(dtype)
    np.save(tmp_path / "a.npy", array)
    done = converted(tmp_path / "a.npy", tmp_path / "out", name="a", shuffle=2, shard_size=2000)
    extract.extract(done.schema, tmp_path / "out", tmp_path / "back", 1, quiet=True)
    assert np.array_equal(np.load(tmp_path / "back" / "a.npy"), array)
    if dtype != ">i4":
        assert tree(tmp_path / "back")["a.npy"] == tree(tmp_path)["a.npy"]
    verify.verify(done.schema, tmp_path / "out", detection.open_source(str(tmp_path / "a.npy")), 1, quiet=True)


def test_arrays_of_one_length_are_the_features_of_an_element(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", image=np.zeros((20, 2, 2), np.uint8), label=np.arange(20), name=np.array(["é"] * 20))
    done = converted(tmp_path / "a.npz", tmp_path / "out", name="a")
    assert done.schema.features == (
        Feature("image", "raw", "uint8", (2, 2)),
        Feature("label", "int64", "int64"),
        Feature("name", "bytes", "string"),
    )
    assert [int(row["label"][0]) for row in elements(done)] == list(range(20))
    assert elements(done)[0]["name"] == ["é".encode()]
    np.savez(tmp_path / "b.npz", a=np.zeros(3), b=np.zeros(4))
    with pytest.raises(FlatoutError, match="first axis"):
        converted(tmp_path / "b.npz", tmp_path / "no")
    np.save(tmp_path / "c.npy", np.array([{}, 1], object), allow_pickle=True)
    with pytest.raises(FlatoutError, match="cannot be read"):
        converted(tmp_path / "c.npy", tmp_path / "no")


def test_a_folder_of_arrays(tmp_path: Path) -> None:
    for number in range(20):
        folder = tmp_path / "arrays" / f"class-{number % 2}"
        folder.mkdir(parents=True, exist_ok=True)
        np.save(folder / f"{number:02d}.npy", np.full((number % 3 + 1, 4), number, np.float32))
    (tmp_path / "arrays" / "class-0" / "99.npy").write_bytes(b"\x93NUMPY\x01\x00")
    np.save(tmp_path / "arrays" / "class-1" / "98.npy", np.zeros((2, 4), np.int32))
    done = converted(tmp_path / "arrays", tmp_path / "out", skip=True, shuffle=1, shard_size=1000)
    assert done.schema.features[0] == Feature("value", "raw", "float32", (None, 4))
    assert {one.name for one in done.schema.skipped} == {"class-0/99.npy", "class-1/98.npy"}
    extract.extract(done.schema, tmp_path / "out", tmp_path / "back", 1, quiet=True)
    for one in done.schema.skipped:
        (tmp_path / "arrays" / one.name).unlink()
    assert tree(tmp_path / "back") == tree(tmp_path / "arrays")


def test_tensors_of_a_pipeline_have_one_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline_elements, "_parts", iter)
    for dtype, first, other in (
        ("float32", np.zeros(2, np.float32), np.zeros((2, 2), np.float32)),
        ("string", b"text", np.array([b"text"], object)),
    ):
        layout = pipeline_elements.Layout.__new__(pipeline_elements.Layout)
        layout._features = [Feature("value", "bytes" if dtype == "string" else "raw", dtype, (None,))]
        layout._unknown_rank = {0}
        tensor = SimpleNamespace(numpy=lambda value=first: value)
        assert layout.values([tensor]) == layout.values([tensor])
        with pytest.raises(FlatoutError, match=f"{np.ndim(first)} dimensions in the first element"):
            layout.values([SimpleNamespace(numpy=lambda value=other: value)])
