"""Folders to shards and back: every element once, whatever happens on the way. Real files and processes throughout."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from shards_made import blobs, converted, pictures, tree

from flatout.errors import FlatoutError
from flatout.pipeline.shards import containers, example, extract, schema, verify
from flatout.pipeline.shards.schema import Schema
from flatout.pipeline.shards.sources import images, intact, opening
from flatout.pipeline.shards.sources.folder import Folder


def elements(found: Schema, directory: Path) -> list[dict[str, object]]:
    return [
        example.decode(record)  # type: ignore[misc]
        for one in found.shards
        for record in containers.read(directory / one.file, found.format, found.compression)
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
    said = verify.verify(found, tmp_path / "out", opening.opened(str(photos)), 2, quiet=True)
    assert said.startswith("every one of 61 elements is there once")
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
    assert sum(name.startswith("one/0") for name in found.listed.names) == 3
    assert sum(name.startswith("two/0") for name in found.listed.names) == 3


def test_shards_do_not_go_among_the_files(tmp_path: Path) -> None:
    blobs(tmp_path / "b", 3)
    command = [sys.executable, "-m", "flatout", "data", "convert", "b", "b/out", "--kind", "files"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert "b/out lies inside b" in done.stderr
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
    verify.verify(done.schema, tmp_path / "out", opening.opened(str(photos)), 2, quiet=True)


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
            assert intact.image(path.read_bytes(), suffix) is None, path
            assert intact.image(path.read_bytes()[:-20], suffix) is not None or suffix == ".bmp", path
    jpeg = (tmp_path / "0.jpg").read_bytes()
    assert intact.jpeg(jpeg + b"trailing bytes of a camera") is None
    assert intact.image((tmp_path / "0.png").read_bytes(), ".jpg") is None, "a PNG under another name is a picture"


def test_a_file_that_cannot_be_read_is_corrupt_too(tmp_path: Path) -> None:
    source = Folder.open(blobs(tmp_path / "b", 5))
    (tmp_path / "b" / "0003.bin").unlink()
    (tmp_path / "b" / "0002.bin").write_bytes(b"longer than it was when it was listed" * 99)
    done = converted(source, tmp_path / "out", skip=True)
    assert {one.name for one in done.schema.skipped} == {"0002.bin", "0003.bin"}


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


# ── a kill at any moment ─────────────────────────────────────────────────────────────────────────────────────────────


def kill_at(step: int, source: Path, destination: Path) -> int:
    """Convert in a process of its own, and end it, like SIGKILL does, at its n-th dealing with the file system."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    count = 0

    def watch(event: str, arguments: object) -> None:
        nonlocal count
        if event in ("open", "os.rename", "os.remove", "os.mkdir", "shutil.rmtree"):
            count += 1
            if count >= step:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)
    try:
        converted(Folder.open(source), destination, name="b", shuffle=1, shard_size=3000, processes=1)
        os._exit(0)
    except BaseException:
        os._exit(1)


@pytest.mark.parametrize("stride", [4, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_a_kill_at_any_moment_and_a_resume_give_the_same_bytes(tmp_path: Path, stride: int) -> None:
    source = blobs(tmp_path / "b", 14)
    converted(Folder.open(source), tmp_path / "whole", name="b", shuffle=1, shard_size=3000)
    whole = tree(tmp_path / "whole")
    assert len(whole) == 5, "two shards, schema, reader, checksums"
    final = {name for name in whole if name.endswith(".tfrecord")}
    outcomes = []
    for step in range(1, 400, stride):
        out = tmp_path / f"at-{step}"
        outcomes.append(kill_at(step, source, out))
        for name in final:
            if (out / name).exists():
                assert tree(out)[name] == whole[name], f"half-written after a kill at step {step}"
        if (out / "b.schema.json").exists():
            verify.verify(schema.load(out / "b.schema.json"), out, Folder.open(source), 1, quiet=True)
        converted(Folder.open(source), out, name="b", shuffle=1, shard_size=3000)
        assert tree(out) == whole, f"another result after a kill at step {step}"
        if outcomes[-1] == 0:
            break
    assert outcomes[-1] == 0, "the conversion came to its end"
    assert outcomes.count(-signal.SIGKILL) >= 10 // stride


def cut_short(work: Path, how: signal.Signals) -> tuple[list[str], Path, subprocess.CompletedProcess[str]]:
    """The real command, ended once it has finished some shards; the command, its folder, and what it said."""
    blobs(work / "b", 1000, 3000)
    for number in range(8):  # a busy machine may let it come to its end before it is our turn
        out = work / f"out-{number}"
        command = [sys.executable, "-m", "flatout", "data", "convert", "b", out.name]
        command += ["--shard-size", "20kB", "--kind", "files"]
        with subprocess.Popen(command, cwd=work, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
            while len(list(out.glob("*.tfrecord"))) < 2 and running.poll() is None:
                time.sleep(0.002)
            running.send_signal(how)
            said = running.communicate(timeout=60)
        if not (out / "b.schema.json").exists():
            return command, out, subprocess.CompletedProcess(command, running.returncode, *said)
    pytest.fail("it was never caught in the middle")


def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    """The same command goes on, and does not write again what was finished."""
    command, out, _ = cut_short(tmp_path, signal.SIGKILL)
    finished = {path.name: path.stat().st_mtime_ns for path in out.glob("*.tfrecord")}
    assert finished
    done = subprocess.run([*command, "--verify"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "resumed" in done.stdout
    assert "every one of 1,000 elements is there once" in done.stdout
    assert all((out / name).stat().st_mtime_ns == when for name, when in finished.items())
    converted(Folder.open(tmp_path / "b"), tmp_path / "whole", name="b", shard_size=20_000)
    assert tree(tmp_path / "whole") == tree(out)


def test_an_interrupt_ends_it_cleanly_and_the_case_is_json(tmp_path: Path) -> None:
    command, out, ended = cut_short(tmp_path, signal.SIGINT)
    assert ended.returncode == 130
    assert "the same command goes on from there" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not list(out.glob(".b.parts/*.part"))
    done = subprocess.run([*command, "--json", "-"], cwd=tmp_path, capture_output=True, text=True, check=True)
    case = json.loads(done.stdout)
    assert case["kind"] == "data"
    assert sum(item["data"]["elements"] for item in case["evidence"]) == 1000


class Deadly(Folder):
    """A source whose reading kills the process, as a lack of memory does."""

    def read(self, number: int) -> example.Element:
        if self.name(number) == "0007.bin" and not os.path.exists(self.listed.root + ".survived"):
            open(self.listed.root + ".survived", "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().read(number)


def test_a_worker_that_dies_is_replaced(tmp_path: Path) -> None:
    done = converted(Deadly.open(blobs(tmp_path / "b")), tmp_path / "out", name="b", shard_size=3000)
    assert done.schema.elements == 40


class Deadlier(Folder):
    def read(self, number: int) -> example.Element:
        if self.name(number) == "0007.bin":
            os.kill(os.getpid(), signal.SIGKILL)
        return super().read(number)


def test_a_worker_that_dies_twice_is_told_and_the_rest_is_kept(tmp_path: Path) -> None:
    with pytest.raises(FlatoutError, match="SIGKILL, as the system does when memory runs out, twice"):
        converted(Deadlier.open(blobs(tmp_path / "b")), tmp_path / "out", name="b", shard_size=3000)
    done = converted(Folder.open(tmp_path / "b"), tmp_path / "out", name="b", shard_size=3000)
    assert done.resumed > 0


# ── a full disk ──────────────────────────────────────────────────────────────────────────────────────────────────────


def expect_nothing_half_written(out: Path, whole: dict[str, str]) -> None:
    found = tree(out)
    assert not [name for name in found if name.endswith(".part")], "its room is given back"
    assert "b.schema.json" not in found
    for name, digest in found.items():
        assert "/" in name or digest == whole[name]


def test_a_full_disk_leaves_nothing_half_written(tmp_path: Path) -> None:
    """A file system of 150 kB of its own, in a namespace of its own."""
    blobs(tmp_path / "b", 400, 1000)
    whole = tree(converted(tmp_path / "b", tmp_path / "whole", name="b", shard_size=30_000).path.parent)
    (tmp_path / "small").mkdir()
    script = f"""
        mount -t tmpfs -o size=150k none small || exit 77
        {sys.executable} -m flatout data convert b small/out --kind files --shard-size 30kB
        echo "code $?"
        cp -a small/out kept
        mount -o remount,size=2m small
        {sys.executable} -m flatout data convert b small/out --kind files --shard-size 30kB --verify
        echo "code $?"
        cp -a small/out after
    """
    done = subprocess.run(["unshare", "-rm", "sh", "-c", script], cwd=tmp_path, capture_output=True, text=True)
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("this system lets nobody mount a file system of their own")
    assert "There is no room left at small/out" in done.stderr
    assert "code 2" in done.stdout
    expect_nothing_half_written(tmp_path / "kept", whole)
    assert "resumed" in done.stdout
    assert "code 0" in done.stdout
    assert tree(tmp_path / "after") == whole


def test_a_file_that_may_not_grow_leaves_nothing_half_written(tmp_path: Path) -> None:
    blobs(tmp_path / "b", 100, 1000)
    whole = tree(converted(tmp_path / "b", tmp_path / "whole", name="b", shard_size=30_000).path.parent)

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))

    command = [
        sys.executable,
        "-m",
        "flatout",
        "data",
        "convert",
        "b",
        "out",
        "--kind",
        "files",
        "--shard-size",
        "30kB",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, preexec_fn=limited)
    assert done.returncode == 2
    assert "There is no room left at out: File too large" in done.stderr
    assert "Traceback" not in done.stderr
    expect_nothing_half_written(tmp_path / "out", whole)


# ── what stands there already ────────────────────────────────────────────────────────────────────────────────────────


def test_what_is_complete_is_not_written_again_and_not_overwritten(tmp_path: Path) -> None:
    source = blobs(tmp_path / "b")
    converted(source, tmp_path / "out", name="b")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()}
    assert converted(source, tmp_path / "out", name="b").complete_before
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()} == before
    with pytest.raises(FlatoutError, match="--force"):
        converted(source, tmp_path / "out", name="b", shuffle=1)
    (source / "new.bin").write_bytes(b"new")
    with pytest.raises(FlatoutError, match="--force"):
        converted(source, tmp_path / "out", name="b")
    assert converted(source, tmp_path / "out", name="b", force=True).schema.elements == 41
    assert converted(source, tmp_path / "out", name="c").schema.elements == 41, "another name, beside it"


def test_a_shard_that_is_gone_is_written_again(tmp_path: Path) -> None:
    source = blobs(tmp_path / "b")
    done = converted(source, tmp_path / "out", shard_size=3000)
    whole = tree(tmp_path / "out")
    (tmp_path / "out" / done.schema.shards[1].file).unlink()
    assert not converted(source, tmp_path / "out", shard_size=3000).complete_before
    assert tree(tmp_path / "out") == whole


def test_a_full_disk_on_the_way_back_leaves_no_half_of_a_file(tmp_path: Path) -> None:
    source = blobs(tmp_path / "b", 20, 2000)
    converted(source, tmp_path / "out")

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    command = [sys.executable, "-m", "flatout", "data", "convert", "out", "back", "--extract"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, preexec_fn=limited)
    assert done.returncode == 2
    assert "Could not write" in done.stderr
    assert "Traceback" not in done.stderr
    for path in (tmp_path / "back").iterdir():
        assert path.read_bytes() == (source / path.name).read_bytes()


def test_a_begun_set_goes_on_with_the_same_plan_only(tmp_path: Path) -> None:
    source = blobs(tmp_path / "b")
    kill_at(25, source, tmp_path / "out")
    assert not (tmp_path / "out" / "b.schema.json").exists()
    with pytest.raises(FlatoutError, match="changed since it was begun"):
        converted(Folder.open(source), tmp_path / "out", name="b", shuffle=2, shard_size=3000)
    done = converted(Folder.open(source), tmp_path / "out", name="b", shuffle=2, shard_size=3000, force=True)
    verify.verify(done.schema, tmp_path / "out", Folder.open(source), 1, quiet=True)


def test_two_conversions_do_not_write_one_set(tmp_path: Path) -> None:
    source = blobs(tmp_path / "b")
    listed = Folder.open(source)
    child = os.fork()
    if not child:
        import fcntl

        (tmp_path / "out" / ".b.parts").mkdir(parents=True)
        with open(tmp_path / "out" / ".b.parts" / "lock", "w") as lock:
            fcntl.lockf(lock, fcntl.LOCK_EX)
            (tmp_path / "held").touch()
            time.sleep(60)
        os._exit(0)
    while not (tmp_path / "held").exists():
        time.sleep(0.005)
    try:
        with pytest.raises(FlatoutError, match="Another conversion is writing"):
            converted(listed, tmp_path / "out", name="b")
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert converted(listed, tmp_path / "out", name="b").schema.elements == 40, "the lock has ended with its process"


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
        with pytest.raises(verify.NotTheSame, match=why):
            verify.verify(done.schema, tmp_path / "out", Folder.open(source), 1, quiet=True)
    shard.unlink()
    with pytest.raises(verify.NotTheSame):
        verify.verify(done.schema, tmp_path / "out", Folder.open(source), 1, quiet=True)
    shard.write_bytes(whole)
    (source / "0001.bin").write_bytes(b"changed")
    (source / "0002.bin").unlink()
    with pytest.raises(verify.NotTheSame, match=r"1 of its 39 elements are missing or changed, and 2 of the shards'"):
        verify.verify(done.schema, tmp_path / "out", Folder.open(source), 1, quiet=True)


def test_an_element_cannot_be_written_outside_the_folder(tmp_path: Path) -> None:
    for name in ("../x", "/etc/x", "a/../../x", "", "a\0b"):
        with pytest.raises(FlatoutError, match="leads out"):
            extract.inside(name)
    assert str(extract.inside("a/b..c")) == "a/b..c"


def test_the_kind_is_seen_by_itself_and_nonsense_is_told(tmp_path: Path) -> None:
    photos = pictures(tmp_path / "photos", 5)
    (photos / "README.txt").write_text("x")
    source = opening.opened(str(photos))
    assert isinstance(source, images.Images)
    assert source.notes == ("1 other files were left out (1 × .txt)",)
    with pytest.raises(FlatoutError, match="nothing at"):
        opening.opened(str(tmp_path / "none"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(FlatoutError, match="--kind files"):
        opening.opened(str(tmp_path / "empty"))
    with pytest.raises(FlatoutError, match="There is no kind"):
        opening.opened(str(photos), "picture")
    with pytest.raises(FlatoutError, match="no finished set"):
        schema.find(tmp_path / "empty")
