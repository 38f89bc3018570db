"""The bytes of shards: checksums, records, elements, and which element goes where."""

from __future__ import annotations

import io
import itertools
import struct
from pathlib import Path

import numpy as np
import pytest

from flatout.data.shards import checksum, example, plan, reader, tfrecord
from flatout.data.shards.schema import Feature, Schema, Shard
from flatout.model.errors import FlatoutError


def bit_by_bit(data: bytes) -> int:
    """CRC-32C as its definition has it."""
    register = 0xFFFF_FFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (checksum.POLYNOMIAL if register & 1 else 0)
    return register ^ 0xFFFF_FFFF


def test_the_checksum_is_that_of_the_standard() -> None:
    assert checksum.crc32c(b"123456789") == 0xE3069283  # the check value of RFC 3720
    assert checksum.by_table(bytes(32)) == 0x8A9136AA
    assert checksum.by_table(b"\xff" * 32) == 0x62A8AB43


@pytest.mark.parametrize("length", [0, 1, 3, 4, 8, 63, 64, 65, 1023, 1024, 1025, 2048, 5000])
def test_the_table_agrees_with_the_definition_at_every_block_boundary(length: int) -> None:
    data = np.random.default_rng(length).integers(0, 256, length, np.uint8).tobytes()
    assert checksum.by_table(data) == bit_by_bit(data)


def write(path: Path, records: list[bytes], compression: str = "") -> None:
    with open(path, "wb") as stream:
        writer = tfrecord.Writer(stream, compression)
        for record in records:
            writer.write(record)
        writer.close()


@pytest.mark.parametrize("compression", ["", "gzip"])
def test_records_come_back(tmp_path: Path, compression: str) -> None:
    records = [b"", b"a", bytes(100_000), b"last"]
    write(tmp_path / "x", records, compression)
    assert list(tfrecord.read(tmp_path / "x", compression)) == records
    write(tmp_path / "y", records, compression)
    assert (tmp_path / "x").read_bytes() == (tmp_path / "y").read_bytes()


@pytest.mark.parametrize("compression", ["", "gzip"])
def test_every_kind_of_damage_is_noticed(tmp_path: Path, compression: str) -> None:
    records = [b"one", b"two" * 50]
    write(tmp_path / "x", records, compression)
    whole = (tmp_path / "x").read_bytes()
    # A gzip header has bytes that mean nothing (the system's name); what matters begins behind it.
    for position in range(10 if compression else 0, len(whole)):
        (tmp_path / "y").write_bytes(whole[:position] + bytes([whole[position] ^ 0x40]) + whole[position + 1 :])
        try:
            found = list(tfrecord.read(tmp_path / "y", compression))
        except tfrecord.Damaged:
            continue
        # The last bits of a compressed stream are padding: without a meaning, and without harm.
        assert compression
        assert found == records
    for end in range(1, len(whole)):
        (tmp_path / "y").write_bytes(whole[:end])
        try:
            found = list(tfrecord.read(tmp_path / "y", compression))
        except tfrecord.Damaged:
            continue
        # Cut between two records, a file says nothing of what is missing; the schema's checksum does.
        assert not compression
        assert found == records[:1]


def test_a_huge_length_is_damage_and_no_reason_to_make_room_for_it(tmp_path: Path) -> None:
    length = struct.pack("<Q", 1 << 60)
    (tmp_path / "x").write_bytes(length + struct.pack("<I", checksum.masked(length)) + b"abc")
    with pytest.raises(tfrecord.Damaged):
        list(tfrecord.read(tmp_path / "x"))


def test_elements_come_back() -> None:
    element: example.Element = {
        "bytes": b"\xff\x00",
        "texts": [b"a", b"", b"c"],
        "whole": -1,
        "large": 2**63 - 1,
        "least": -(2**63),
        "real": 0.1,
        "list": np.array([1, -2, 3 << 40], np.int64),
        "reals": np.array([1.5, np.inf], np.float32),
        "nothing": [],
        "naïve": b"",
    }
    back = example.decode(example.encode(element))
    assert back["bytes"] == [b"\xff\x00"]
    assert back["texts"] == [b"a", b"", b"c"]
    assert [int(back[name][0]) for name in ("whole", "large", "least")] == [-1, 2**63 - 1, -(2**63)]
    assert back["real"][0] == np.float32(0.1)
    assert np.array_equal(back["list"], [1, -2, 3 << 40])
    assert np.array_equal(back["reals"], [1.5, np.inf])
    assert back["nothing"] == []
    assert back["naïve"] == [b""]


def test_the_order_of_names_does_not_matter() -> None:
    assert example.encode({"a": 1, "b": b"x"}) == example.encode({"b": b"x", "a": 1})


def test_a_value_that_no_record_holds_is_refused() -> None:
    with pytest.raises(TypeError):
        example.encode({"a": np.zeros(3, np.float64)})  # type: ignore[dict-item]


# ── the plan ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_shuffle_is_a_permutation_and_the_seed_s_alone() -> None:
    orders = [plan.shuffled(1000, seed) for seed in (0, 1, -5)]
    for order in orders:
        assert np.array_equal(np.sort(order), np.arange(1000))
    for one, other in itertools.combinations(orders, 2):
        assert (one == other).mean() < 0.05
    # Written down once: a later version must give the same, or sets could not be gone on with.
    assert plan.shuffled(10, 7).tolist() == PINNED


PINNED = [5, 2, 9, 0, 6, 4, 8, 7, 3, 1]


@pytest.mark.parametrize("seed", range(20))
def test_no_shard_goes_beyond_the_cap_and_no_element_is_lost(seed: int) -> None:
    random = np.random.default_rng(seed)
    sizes = random.integers(1, 1000, random.integers(1, 500)).astype(np.int64)
    cap = int(random.integers(500, 20_000))
    ends = plan.cuts(sizes, cap)
    assert ends[-1] == len(sizes)
    starts = np.concatenate([[0], ends[:-1]])
    assert (starts < ends).all()
    totals = np.add.reduceat(sizes, starts)
    assert ((totals <= cap) | (ends - starts == 1)).all()
    assert len(ends) == len(plan._filled(sizes, cap)), "no more shards than the cap asks for"


def test_shards_are_even_and_enough_for_all_cores() -> None:
    sizes = np.full(100_000, 3000, np.int64)
    ends = plan.cuts(sizes)
    totals = np.add.reduceat(sizes, np.concatenate([[0], ends[:-1]]))
    assert len(ends) == plan.MIN_SHARDS
    assert totals.max() - totals.min() < 0.01 * totals.max()
    assert len(plan.cuts(np.full(10, 100, np.int64))) == 1, "little data stays in one file"


def test_a_name_cannot_lead_out_of_the_folder() -> None:
    assert plan.set_name(None, "data/my photos/") == "my_photos"
    assert plan.set_name(None, "package.module:make") == "make"
    for name in ("../x", "a/b", "", ".x", "a b"):
        with pytest.raises(FlatoutError, match="--name"):
            plan.set_name(name, "x")


# ── the reader's text ────────────────────────────────────────────────────────────────────────────────────────────────


def test_no_name_of_a_file_becomes_code() -> None:
    hostile = "'); __import__('os').system('true'); (\"\"\"\\"
    schema = Schema(
        name="class",
        source="images",
        format="tfrecord",
        compression="",
        elements=1,
        digest="0",
        features=(Feature(hostile, "bytes", "string", encoding="jpeg"), Feature("n", "int64", "int32")),
        shards=(Shard("x", 1, 1, ""),),
        classes=(hostile, "{braces}", "new\nline"),
    )
    name, text = reader.write(schema)
    assert name == "_class_reader.py"
    stripped = "\n".join(line for line in text.splitlines() if "tensorflow" not in line)
    space: dict[str, object] = {"tf": _Anything(), "__file__": "x", "__name__": "x"}
    exec(compile(stripped, name, "exec"), space)
    assert space["CLASSES"] == [hostile, "{braces}", "new\nline"]
    assert set(space["FEATURES"]) == {hostile, "n"}  # type: ignore[call-overload]


class _Anything:
    def __getattr__(self, name: str) -> _Anything:
        return self

    def __call__(self, *arguments: object, **named: object) -> _Anything:
        return self


def test_a_schema_comes_back() -> None:
    schema = Schema("x", "csv", "tfrecord", "gzip", 3, "ff", (Feature("a", "raw", "float64", (None, 2)),), ())
    assert Schema.from_json(schema.to_json()) == schema
    assert io.StringIO(schema.to_json()).readline() == "{\n"
