"""Folders to shards and back: every element once, whatever happens on the way. Real files and processes throughout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from shards_made import blobs, converted, pictures, tree

from flatout.data.shards import example, extract, formats, schema, tfrecord, verify
from flatout.data.shards.schema import Schema
from flatout.data.shards.sources import detection, integrity, media
from flatout.data.shards.sources.folder import Folder
from flatout.model.errors import FlatoutError, ShardsDiffer


def elements(found: Schema, directory: Path) -> list[dict[str, object]]:
    return [
        example.decode(record)  # type: ignore[misc]
        for one in found.shards
        for record in formats.read(directory / one.file, found.format, found.compression)
    ]


@pytest.mark.parametrize("compression", ["", "gzip"])
def test_pictures_come_back_byte_for_byte(tmp_path: Path, compression: str) -> None:
    photos = pictures(tmp_path / "photos")
    done = converted(photos, tmp_path / "out", shuffle=5, shard_size=9_000, compression=compression)
    found = done.schema
    assert found.elements == 61
    assert found.classes == ("bird", "cat", "dog")
    suffix = "tfrecord.gz" if compression else "tfrecord"
    assert [one.file for one in found.shards] == [
        f"photos-{n:05d}-of-{len(found.shards):05d}.{suffix}" for n in range(len(found.shards))
    ]
    assert len(found.shards) > 2
    assert compression or all(one.bytes <= 9_000 for one in found.shards)
    for one in elements(found, tmp_path / "out"):
        name = os.fsdecode(one["name"][0])  # type: ignore[index]
        assert one["image"] == [(photos / name).read_bytes()]
        assert found.classes[int(one["label"][0])] == name.split("/")[0]  # type: ignore[index]
    count = extract.extract(found, tmp_path / "out", tmp_path / "back", 2, quiet=True)
    assert count == 61
    assert tree(tmp_path / "back") == tree(photos)
    said = verify.verify(found, tmp_path / "out", detection.open_source(str(photos)), 2, quiet=True)
    assert said.startswith("each of the 61 elements is there once")
    assert not list((tmp_path / "out").glob(".*")), "nothing of the work is left"


def test_the_checksums_are_those_of_sha256sum(tmp_path: Path) -> None:
    converted(blobs(tmp_path / "b"), tmp_path / "out", shard_size=3000)
    if shutil.which("sha256sum") is None:
        pytest.skip("sha256sum is not here")
    subprocess.run(["sha256sum", "--check", "--quiet", "b.sha256"], cwd=tmp_path / "out", check=True)


def test_the_seed_alone_decides_the_order(tmp_path: Path) -> None:
    source = blobs(tmp_path / "b")
    for name, seed, processes in (("one", 7, 1), ("again", 7, 3), ("other", 8, 2), ("plain", None, 2)):
        converted(source, tmp_path / name, name="x", shuffle=seed, shard_size=3000, processes=processes)
    assert tree(tmp_path / "one") == tree(tmp_path / "again")
    one, other, plain = (schema.load(tmp_path / n / "x.schema.json") for n in ("one", "other", "plain"))
    assert len({one.digest, other.digest, plain.digest}) == 1, "the same elements"
    assert len({one.shards[0].sha256, other.shards[0].sha256, plain.shards[0].sha256}) == 3, "in another order"
    names = [e["name"][0] for e in elements(plain, tmp_path / "plain")]  # type: ignore[index]
    assert names == sorted(names)


def test_names_that_are_no_text_survive(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    for name in (b"caf\xe9.bin", "naïve ☃.bin".encode(), b"a\nb.bin"):
        (tmp_path / "b" / os.fsdecode(name)).write_bytes(name)
    source = Folder.open(tmp_path / "b")
    done = converted(source, tmp_path / "out", name="b")
    extract.extract(done.schema, tmp_path / "out", tmp_path / "back", 1, quiet=True)
    assert sorted(os.listdir(os.fsencode(tmp_path / "back"))) == sorted(os.listdir(os.fsencode(tmp_path / "b")))


def test_links_are_followed_and_do_not_lead_in_circles(tmp_path: Path) -> None:
    source = tmp_path / "b"
    blobs(source / "one", 3)
    (source / "two").symlink_to("one")
    (source / "one" / "up").symlink_to(source)
    found = Folder.open(source)
    assert found.classes == ("one", "two")
    assert sum(name.startswith("one/0") for name in found.listing.names) == 3
    assert sum(name.startswith("two/0") for name in found.listing.names) == 3


def test_shards_do_not_go_among_the_files(tmp_path: Path) -> None:
    blobs(tmp_path / "b", 3)
    command = [sys.executable, "-m", "flatout", "data", "convert", "b", "b/out", "--kind", "files"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert "b/out is inside b" in done.stderr
    assert not (tmp_path / "b" / "out").exists()


# ── what is corrupt ──────────────────────────────────────────────────────────────────────────────────────────────────


def spoil(photos: Path) -> dict[str, bytes]:
    """Some pictures, made corrupt in the ways that happen."""
    whole = (photos / "cat" / "0001.jpg").read_bytes()
    png = (photos / "bird" / "grey.png").read_bytes()
    spoilt = {
        "cat/empty.jpg": b"",
        "cat/half.jpg": whole[: len(whole) // 2],
        "cat/page.jpg": b"<html>404</html>",
        "cat/zeros.jpg": bytes(500),
        "cat/no_end.jpg": whole[:-2],
        "dog/flipped.png": png[:30] + bytes([png[30] ^ 1]) + png[31:],
        "dog/cut.png": png[:-8],
    }
    for name, data in spoilt.items():
        (photos / name).write_bytes(data)
    return spoilt


def test_corrupt_files_are_told_and_left_out_when_asked(tmp_path: Path) -> None:
    photos = pictures(tmp_path / "photos")
    spoilt = spoil(photos)
    done = converted(photos, tmp_path / "out", skip=True, shard_size=9_000)
    assert {one.name for one in done.schema.skipped} == set(spoilt)
    assert all(one.reason for one in done.schema.skipped)
    assert done.schema.elements == 61
    assert done.schema.total == 61 + len(spoilt)
    verify.verify(done.schema, tmp_path / "out", detection.open_source(str(photos)), 2, quiet=True)


def test_a_corrupt_file_is_fatal_unless_asked_and_the_rest_is_kept(tmp_path: Path) -> None:
    photos = pictures(tmp_path / "photos")
    (photos / "dog" / "zzz.jpg").write_bytes(b"\xff\xd8\xff no picture")
    with pytest.raises(FlatoutError, match=r"zzz\.jpg.*--on-error skip") as failed:
        converted(photos, tmp_path / "out", shard_size=9_000)
    assert failed.value.exit_code == 1
    assert not (tmp_path / "out" / "photos.schema.json").exists()
    done = converted(photos, tmp_path / "out", shard_size=9_000, skip=True)
    assert done.resumed > 0
    assert [one.name for one in done.schema.skipped] == ["dog/zzz.jpg"]


def test_what_is_whole_is_not_called_corrupt(tmp_path: Path) -> None:
    from PIL import Image

    picture = Image.effect_noise((40, 30), 90).convert("RGB")
    for suffix, options in {
        ".jpg": [{}, {"progressive": True}, {"optimize": True, "quality": 100}, {"exif": b"Exif\0\0" + bytes(40)}],
        ".png": [{}, {"compress_level": 9}],
        ".gif": [{}],
        ".bmp": [{}],
        ".webp": [{}, {"lossless": True}],
    }.items():
        for number, chosen in enumerate(options):
            path = tmp_path / f"{number}{suffix}"
            picture.save(path, **chosen)  # type: ignore[arg-type]
            assert integrity.image(path.read_bytes(), suffix) is None, path
            assert integrity.image(path.read_bytes()[:-20], suffix) is not None or suffix == ".bmp", path
    gif = (tmp_path / "0.gif").read_bytes()
    assert all(integrity.gif(gif[:end]) is not None for end in range(len(gif))), "wherever it breaks off"
    jpeg = (tmp_path / "0.jpg").read_bytes()
    assert integrity.jpeg(jpeg + b"trailing bytes of a camera") is None
    assert integrity.image((tmp_path / "0.png").read_bytes(), ".jpg") is None, "a PNG under another name is a picture"


def test_a_file_that_cannot_be_read_is_corrupt_too(tmp_path: Path) -> None:
    source = Folder.open(blobs(tmp_path / "b", 5))
    (tmp_path / "b" / "0003.bin").unlink()
    (tmp_path / "b" / "0002.bin").write_bytes(b"longer than it was when it was listed" * 99)
    done = converted(source, tmp_path / "out", skip=True)
    assert {one.name for one in done.schema.skipped} == {"0002.bin", "0003.bin"}


@pytest.mark.parametrize("target", ["nowhere.bin", "0100.bin"])
def test_a_link_that_leads_nowhere_is_corrupt(tmp_path: Path, target: str) -> None:
    source = blobs(tmp_path / "b", 5)
    os.symlink(target, source / "0100.bin")
    with pytest.raises(FlatoutError, match=r"0100\.bin.*cannot be read"):
        converted(source, tmp_path / "no")
    done = converted(source, tmp_path / "out", skip=True)
    assert [one.name for one in done.schema.skipped] == ["0100.bin"]
    assert done.schema.elements == 5


def test_sounds_keep_their_bytes(tmp_path: Path) -> None:
    import wave

    for label in ("no", "yes"):
        (tmp_path / "a" / label).mkdir(parents=True)
        for number in range(3):
            with wave.open(str(tmp_path / "a" / label / f"{number}.wav"), "wb") as sound:
                sound.setnchannels(1)
                sound.setsampwidth(2)
                sound.setframerate(8000)
                sound.writeframes(bytes(range(100)) * 2 * (number + 1))
    whole = (tmp_path / "a" / "no" / "0.wav").read_bytes()
    (tmp_path / "a" / "yes" / "cut.wav").write_bytes(whole[:-9])
    done = converted(tmp_path / "a", tmp_path / "out", skip=True)
    assert done.schema.source == "audio"
    assert done.schema.features[0].encoding == "wav"
    assert [one.name for one in done.schema.skipped] == ["yes/cut.wav"]
    extract.extract(done.schema, tmp_path / "out", tmp_path / "back", 1, quiet=True)
    (tmp_path / "a" / "yes" / "cut.wav").unlink()
    assert tree(tmp_path / "back") == tree(tmp_path / "a")


# ── what a verification finds ────────────────────────────────────────────────────────────────────────────────────────


def test_verification_finds_what_is_wrong(tmp_path: Path) -> None:
    source = blobs(tmp_path / "b")
    done = converted(source, tmp_path / "out", name="b", shard_size=3000)
    shard = tmp_path / "out" / done.schema.shards[1].file
    whole = shard.read_bytes()
    for spoilt, why in (
        (whole[:-1], "checksum"),
        (whole[:50] + b"\0" + whole[51:], "checksum"),
        (whole + whole, "checksum"),
    ):
        shard.write_bytes(spoilt)
        with pytest.raises(ShardsDiffer, match=why):
            verify.verify(done.schema, tmp_path / "out", Folder.open(source), 1, quiet=True)
    shard.unlink()
    with pytest.raises(ShardsDiffer):
        verify.verify(done.schema, tmp_path / "out", Folder.open(source), 1, quiet=True)
    shard.write_bytes(whole)
    (source / "0001.bin").write_bytes(b"changed")
    (source / "0002.bin").unlink()
    with pytest.raises(ShardsDiffer, match=r"1 of its 39 elements are missing or changed, and 2 "):
        verify.verify(done.schema, tmp_path / "out", Folder.open(source), 1, quiet=True)


def test_a_shard_that_was_cut_between_two_records_is_not_given_back_as_whole(tmp_path: Path) -> None:
    done = converted(blobs(tmp_path / "b"), tmp_path / "out", name="b", shard_size=3000)
    shard = tmp_path / "out" / done.schema.shards[1].file
    *_, last = formats.read(shard, "tfrecord", "")
    shard.write_bytes(shard.read_bytes()[: -len(last) - tfrecord.FRAME])
    with pytest.raises(FlatoutError, match=f"{done.schema.shards[1].elements} were written"):
        extract.extract(done.schema, tmp_path / "out", tmp_path / "back", 1, quiet=True)


def test_an_element_cannot_be_written_outside_the_folder(tmp_path: Path) -> None:
    for name in ("../x", "/etc/x", "a/../../x", "", "a\0b"):
        with pytest.raises(FlatoutError, match="outside of the directory"):
            extract.relative_path(name)
    assert str(extract.relative_path("a/b..c")) == "a/b..c"


def test_the_kind_is_seen_by_itself_and_nonsense_is_told(tmp_path: Path) -> None:
    photos = pictures(tmp_path / "photos", 5)
    (photos / "README.txt").write_text("x")
    source = detection.open_source(str(photos))
    assert isinstance(source, media.Images)
    assert source.notes == ("1 other files were left out (1 × .txt)",)
    with pytest.raises(FlatoutError, match="nothing at"):
        detection.open_source(str(tmp_path / "none"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(FlatoutError, match="--kind files"):
        detection.open_source(str(tmp_path / "empty"))
    with pytest.raises(FlatoutError, match="There is no kind"):
        detection.open_source(str(photos), "picture")
    with pytest.raises(FlatoutError, match="no complete set"):
        schema.find(tmp_path / "empty")
