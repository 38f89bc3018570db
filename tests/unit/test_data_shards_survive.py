"""Conversions that are killed, meet a full disk, or find another set in their way: nothing is lost or half-written."""

from __future__ import annotations

import functools
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from shards_made import blobs, converted, tree

from flatout.data.shards import convert, example, schema, shard, stream, stream_main, verify
from flatout.data.shards.destination import Destination
from flatout.data.shards.sources.folder import Folder
from flatout.model.errors import FlatoutError
from waiting import until

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


def _begun(out: Path, running: subprocess.Popen[str]) -> bool:
    return len(list(out.glob("*.tfrecord"))) >= 2 or running.poll() is not None


def cut_short(work: Path, how: signal.Signals) -> tuple[list[str], Path, subprocess.CompletedProcess[str]]:
    """The real command, ended once it has finished some shards; the command, its folder, and what it said."""
    blobs(work / "b", 1000, 3000)
    for number in range(8):  # a busy machine may let it come to its end before it is our turn
        out = work / f"out-{number}"
        command = [sys.executable, "-m", "flatout", "data", "convert", "b", out.name]
        command += ["--shard-size", "20kB", "--kind", "files"]
        with subprocess.Popen(command, cwd=work, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
            until(functools.partial(_begun, out, running))
            running.send_signal(how)
            said = running.communicate(timeout=400)
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
    assert "each of the 1,000 elements is there once" in done.stdout
    assert all((out / name).stat().st_mtime_ns == when for name, when in finished.items())
    converted(Folder.open(tmp_path / "b"), tmp_path / "whole", name="b", shard_size=20_000)
    assert tree(tmp_path / "whole") == tree(out)


def test_an_interrupt_ends_it_cleanly_and_the_case_is_json(tmp_path: Path) -> None:
    command, out, ended = cut_short(tmp_path, signal.SIGINT)
    assert ended.returncode == 130
    assert "the same command continues from there" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not list(out.glob(".b.parts/*.part"))
    done = subprocess.run([*command, "--json", "-"], cwd=tmp_path, capture_output=True, text=True, check=True)
    case = json.loads(done.stdout)
    assert case["kind"] == "data"
    assert sum(item["data"]["elements"] for item in case["evidence"]) == 1000


class Deadly(Folder):
    """A source whose reading kills the process, as a lack of memory does."""

    def read(self, number: int) -> example.Element:
        if self.name(number) == "0007.bin" and not os.path.exists(self.listing.root + ".survived"):
            open(self.listing.root + ".survived", "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().read(number)


def test_a_worker_that_dies_is_replaced(tmp_path: Path) -> None:
    done = converted(Deadly.open(blobs(tmp_path / "b")), tmp_path / "out", name="b", shard_size=3000)
    assert done.schema.elements == 40


class Deadlier(Folder):
    """As `Deadly`, and again; but not before another worker has finished a shard."""

    def read(self, number: int) -> example.Element:
        if self.name(number) == "0007.bin":
            end = time.monotonic() + 10
            while time.monotonic() < end and not list(Path(self.listing.root).parent.glob("out/b*-of-*")):
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGKILL)
        return super().read(number)


def test_a_worker_that_dies_twice_is_told_and_the_rest_is_kept(tmp_path: Path) -> None:
    with pytest.raises(FlatoutError, match="SIGKILL, as the system does when memory runs out, twice"):
        converted(Deadlier.open(blobs(tmp_path / "b")), tmp_path / "out", name="b", shard_size=3000, processes=2)
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
    assert "There is no space left at small/out" in done.stderr
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
    assert "There is no space left at out: File too large" in done.stderr
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


def test_two_sets_have_no_reader_of_the_same_name(tmp_path: Path) -> None:
    source = Folder.open(blobs(tmp_path / "b"))
    first = converted(source, tmp_path / "out", name="a-b")
    whole = tree(tmp_path / "out")
    with pytest.raises(FlatoutError, match=r"'a-b', whose reader is called a_b_reader\.py as well"):
        converted(source, tmp_path / "out", name="a_b")
    assert whole.items() <= tree(tmp_path / "out").items()
    assert converted(source, tmp_path / "out", name="a-b").complete_before
    assert converted(source, tmp_path / "other", name="a_b").schema.digest == first.schema.digest


@pytest.mark.parametrize("skip", [True, False])
def test_an_element_of_a_pipeline_that_no_record_can_hold_is_told(monkeypatch: pytest.MonkeyPatch, skip: bool) -> None:
    monkeypatch.setitem(sys.modules, "tensorflow", SimpleNamespace(errors=SimpleNamespace(OpError=OSError)))
    monkeypatch.setattr(shard, "MAX_RECORD_BYTES", 100)
    skipped: list[schema.Skipped] = []
    layout = SimpleNamespace(values=lambda size: {"x": bytes(size)})
    records = stream_main._records([1, 500, 2], layout, skip, skipped)  # type: ignore[arg-type]
    if not skip:
        with pytest.raises(stream_main.Failed, match="Element 1 of the pipeline cannot be written: it is larger than"):
            list(records)
        return
    assert [example.decode(record)["x"] for record in records] == [[bytes(1)], [bytes(2)]]
    assert [one.name for one in skipped] == ["element 1"]


def test_a_pipeline_whose_file_has_changed_is_not_called_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ran(target: str, destination: Destination, *_: object) -> dict[str, object]:
        (destination.working / "stream").write_bytes(b"")
        return {
            "shards": [{"file": "stream", "elements": 0, "bytes": 0, "sha256": ""}],
            "digest": "",
            "features": [],
            "structure": {"tuple": []},
            "skipped": [],
        }

    monkeypatch.setattr(stream, "_run", ran)
    file, request = tmp_path / "input.py", convert.ConvertRequest(quiet=True)
    file.write_text("def train(): ...")
    assert not stream.convert(f"{file}:train", tmp_path / "out", request).complete_before
    assert stream.convert(f"{file}:train", tmp_path / "out", request).complete_before
    file.write_text("def train(): return 1")
    with pytest.raises(FlatoutError, match="the source or the options have changed"):
        stream.convert(f"{file}:train", tmp_path / "out", request)


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
    with pytest.raises(FlatoutError, match="incomplete"):
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
            signal.pause()  # until it is killed
        os._exit(0)
    until((tmp_path / "held").exists)
    try:
        with pytest.raises(FlatoutError, match="Another conversion is writing"):
            converted(listed, tmp_path / "out", name="b")
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert converted(listed, tmp_path / "out", name="b").schema.elements == 40, "the lock has ended with its process"
