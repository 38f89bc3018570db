"""The shield without TensorFlow: a child writes, changes, moves and deletes; the user's directory stays as it was."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from flatout.process.fence.landlock import FIRST
from flatout.process.fence.means import Fence, means
from flatout.trial.child.overlay import path_text


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A user's directory: a file, a directory with files, a link."""
    home = tmp_path / "project"
    (home / "data" / "deep").mkdir(parents=True)
    (home / "notes.txt").write_text("real\n")
    (home / "data" / "a.txt").write_text("a")
    (home / "data" / "deep" / "b.txt").write_text("b")
    (home / "elsewhere").symlink_to(home / "data")
    return home


def state(directory: Path) -> dict[str, str]:
    """Everything below a directory: contents, modes, links."""
    found = {}
    for path in sorted(directory.rglob("*")):
        name = str(path.relative_to(directory))
        if path.is_symlink():
            found[name] = f"-> {os.readlink(path)}"
        else:
            text = "" if path.is_dir() else path.read_bytes().decode("latin-1")
            found[name] = f"{path.stat().st_mode:o} {path.stat().st_mtime_ns} {text}"
    return found


@pytest.fixture(params=["landlock", "first-landlock", "mounts", "python"])
def run(request: pytest.FixtureRequest, project: Path, tmp_path: Path) -> object:
    """Runs a program in the user's directory, shielded: by each means that this kernel has (the first version of
    Landlock moves nothing between directories), and by Python alone."""
    found = means()
    held_by = {
        "landlock": {"landlock": found.landlock},
        "first-landlock": {"landlock": min(found.landlock, FIRST)},
        "mounts": {"mounts": found.mounts},
        "python": {},
    }[request.param]
    if not all(held_by.values()):
        pytest.skip(f"this kernel cannot hold files by {request.param}")

    def run(source: str, code: int = 0) -> str:
        trial = tmp_path / "trial"
        fence = Fence((str(trial),), **held_by)
        (trial / "tmp").mkdir(parents=True, exist_ok=True)
        install = f"shield.install({str(trial)!r}, held={fence.held}, moves={fence.moves})"
        start = f"from flatout.trial.child import shield; {install}"
        program = trial / "program.py"
        program.write_text(start + "\n" + textwrap.dedent(source))
        before = state(project)
        done = subprocess.run(
            fence.command([sys.executable, "-B", str(program)]),
            cwd=project,
            env={**os.environ, "TMPDIR": str(trial / "tmp")},
            capture_output=True,
            text=True,
            timeout=400,
        )
        assert done.returncode == code, done.stderr
        assert state(project) == before
        return done.stdout + done.stderr

    return run


def test_what_is_written_can_be_read_and_the_real_file_stays(run) -> None:
    run("""
        import os, glob, pathlib, io
        assert open("notes.txt").read() == "real\\n"
        with open("notes.txt", "a") as stream: stream.write("more")
        assert stream.name == "notes.txt"
        assert open("notes.txt").read() == "real\\nmore"
        with open("notes.txt", "w") as stream: stream.write("new")
        assert pathlib.Path("notes.txt").read_text() == "new"
        with open("notes.txt", "r+b") as stream: stream.seek(1); stream.write(b"X")
        assert io.open(os.path.abspath("notes.txt"), "rb").read() == b"nXw"
        open("fresh.txt", "x").write("fresh")
        try: open("fresh.txt", "x"); raise SystemExit("x on an existing file")
        except FileExistsError: pass
        try: open("data/a.txt", "x"); raise SystemExit("x on a real file")
        except FileExistsError: pass
        assert os.path.getsize("fresh.txt") == 5 and os.path.isfile("fresh.txt")
        assert sorted(os.listdir()) == ["data", "elsewhere", "fresh.txt", "notes.txt"], os.listdir()
        assert os.listdir(None) == os.listdir() == [entry.name for entry in os.scandir(None)]
        assert os.listdir(b".") and all(isinstance(name, bytes) for name in os.listdir(b"."))
        assert sorted(glob.glob("*.txt")) == ["fresh.txt", "notes.txt"]
        assert sorted(str(p) for p in pathlib.Path(".").rglob("*.txt")) == [
            "data/a.txt", "data/deep/b.txt", "fresh.txt", "notes.txt"]
        fd = os.open("low.bin", os.O_WRONLY | os.O_CREAT, 0o600); os.write(fd, b"low"); os.close(fd)
        assert open("low.bin", "rb").read() == b"low"
        fd = os.open("data/a.txt", os.O_RDWR); os.write(fd, b"A"); os.close(fd)
        assert open("data/a.txt").read() == "A"
    """)


def test_directories_are_made_walked_left_and_removed(run) -> None:
    run("""
        import os, shutil, pathlib
        home = os.getcwd()
        os.makedirs("runs/one/logs")
        os.makedirs("runs/one/logs", exist_ok=True)
        pathlib.Path("runs/one/logs/x.log").write_text("x")
        pathlib.Path("data/deep/c.txt").write_text("c")
        assert [sorted(files) for _, _, files in sorted(os.walk("data"))] == [["a.txt"], ["b.txt", "c.txt"]]
        assert [entry.is_symlink() for entry in sorted(os.scandir("."), key=lambda e: e.name)][:2] == [False, True]
        assert not os.path.islink("data") and os.path.islink("elsewhere")
        assert open("elsewhere/deep/c.txt").read() == "c"
        os.chdir("runs/one")
        assert os.getcwd() == home + "/runs/one"
        open("here.txt", "w").write("h")
        assert os.path.exists(home + "/runs/one/here.txt")
        os.chdir(home)
        shutil.rmtree("runs")
        assert not os.path.exists("runs") and "runs" not in os.listdir()
        shutil.rmtree("data")
        assert not os.path.exists("data") and not os.path.exists("data/deep/b.txt")
        os.mkdir("data")
        assert os.listdir("data") == []
        os.rmdir("data")
        try: os.listdir("data"); raise SystemExit("it is still there")
        except FileNotFoundError: pass
    """)


def test_files_are_moved_linked_and_deleted(run) -> None:
    run("""
        import os, shutil, pathlib
        os.remove("notes.txt")
        assert not os.path.exists("notes.txt") and not pathlib.Path("notes.txt").exists()
        try: open("notes.txt"); raise SystemExit("deleted and still there")
        except FileNotFoundError: pass
        try: os.remove("data"); raise SystemExit("a directory")
        except OSError: pass
        try: os.rmdir("data"); raise SystemExit("not empty")
        except OSError: pass
        os.replace("data/a.txt", "data/z.txt")
        assert sorted(os.listdir("data")) == ["deep", "z.txt"] and open("data/z.txt").read() == "a"
        os.rename("data", "moved")
        assert not os.path.exists("data") and open("moved/deep/b.txt").read() == "b"
        open("moved/deep/b.txt", "w").write("changed")
        assert open("moved/deep/b.txt").read() == "changed"
        os.symlink("moved", "latest")
        assert os.path.islink("latest") and open("latest/z.txt").read() == "a"
        open("latest/z.txt", "a").write("b")
        assert open("moved/z.txt").read() == "ab"
        shutil.copytree("moved", "copied"); shutil.move("copied", "again")
        assert open("again/deep/b.txt").read() == "changed"
        os.chmod("moved/z.txt", 0o600); os.utime("moved/z.txt", (1, 1))
        assert os.stat("moved/z.txt").st_mtime == 1
        pathlib.Path("moved/touched").touch()
        os.truncate("moved/z.txt", 1)
        assert open("moved/z.txt").read() == "a"
        os.link("moved/z.txt", "hard.txt")
        assert open("hard.txt").read() == "a"
    """)


def test_a_real_file_is_changed_through_none_of_its_names(run) -> None:
    run("""
        import os
        os.chmod("notes.txt", 0o600); os.utime("data/a.txt", (5, 5))
        open("elsewhere/a.txt", "w").write("through a link")
        assert open("data/a.txt").read() == "through a link"
        home = os.open("data", os.O_RDONLY)
        fd = os.open("a.txt", os.O_WRONLY | os.O_TRUNC, dir_fd=home); os.write(fd, b"fd"); os.close(fd)
        assert open("data/a.txt").read() == "fd"
        opener = lambda path, flags: os.open(path, flags, dir_fd=home)
        with open("opened.txt", "w", opener=opener) as stream: stream.write("o")
        assert open("data/opened.txt").read() == open("opened.txt", opener=opener).read() == "o"
        assert not os.path.exists("opened.txt")
        os.unlink("a.txt", dir_fd=home)
        assert not os.path.exists("data/a.txt")
        open("data/../notes.txt", "w").write("dots")
        assert open("notes.txt").read() == "dots"
        from flatout.trial.child import shield
        open(shield._overlay.files + os.getcwd() + "/data/deep/b.txt", "w").write("by the copy's own name")
    """)


def test_archives_databases_logs_and_temporary_files(run) -> None:
    run("""
        import csv, json, logging, shutil, sqlite3, tempfile, zipfile
        import numpy as np
        np.savez("arrays.npz", a=np.arange(3)); assert np.load("arrays.npz")["a"].tolist() == [0, 1, 2]
        np.save("one.npy", np.zeros(4)); np.load("one.npy", mmap_mode="r+")[0] = 1
        json.dump({"a": 1}, open("out.json", "w")); assert json.load(open("out.json")) == {"a": 1}
        logging.basicConfig(filename="run.log"); logging.warning("said"); assert "said" in open("run.log").read()
        with zipfile.ZipFile("all.zip", "w") as z: z.writestr("x", "y")
        assert zipfile.ZipFile("all.zip").read("x") == b"y"
        shutil.make_archive("packed", "gztar", "data")
        base = sqlite3.connect("base.db"); base.execute("create table t (x)"); base.commit(); base.close()
        assert sqlite3.connect("base.db").execute("select count(*) from t").fetchone() == (0,)
        with tempfile.NamedTemporaryFile("w") as f: f.write("x")
        with tempfile.TemporaryDirectory() as d: open(d + "/x", "w").write("x")
        with tempfile.NamedTemporaryFile("w", dir=".") as f: f.write("x")
        open("/dev/null", "w").write("x")
    """)


def test_a_real_file_is_changed_through_no_descriptor_either(run) -> None:
    run("""
        import os
        with open("notes.txt") as stream:
            os.fchmod(stream.fileno(), 0o600)
            os.utime(stream.fileno(), (5, 5))
        assert os.stat("notes.txt").st_mode & 0o777 == 0o600 and os.stat("notes.txt").st_mtime == 5
        home = os.open("data", os.O_RDONLY)
        os.chmod(home, 0o700); os.chown(home, os.getuid(), os.getgid())
        with open("fresh.txt", "w") as stream:
            os.fchmod(stream, 0o640)
        assert os.stat("fresh.txt").st_mode & 0o777 == 0o640
    """)


def test_links_lead_where_the_program_has_left_them(run) -> None:
    """Its own ones, to wherever; and no longer where a real link led that it has replaced or removed."""
    run("""
        import os, pathlib
        os.symlink("../notes.txt", "data/of-file")
        assert os.readlink("data/of-file") == "../notes.txt" and open("data/of-file").read() == "real\\n"
        open("data/of-file", "a").write("more")
        assert open("notes.txt").read() == "real\\nmore"
        os.symlink(os.path.abspath("data"), "of-data")
        open("of-data/out.txt", "w").write("o")
        assert open("data/out.txt").read() == open("of-data/out.txt").read() == "o"
        os.mkdir("two"); open("two/x.txt", "w").write("2")
        os.symlink("two", "elsewhere.new"); os.replace("elsewhere.new", "elsewhere")
        assert open("elsewhere/x.txt").read() == "2" and not os.path.exists("elsewhere/a.txt")
        open("elsewhere/y.txt", "w").write("y")
        assert sorted(os.listdir("two")) == sorted(os.listdir("elsewhere")) == ["x.txt", "y.txt"]
        os.unlink("elsewhere"); os.mkdir("elsewhere"); open("elsewhere/z.txt", "w").write("z")
        assert os.listdir("elsewhere") == ["z.txt"] and not os.path.exists("two/z.txt")
        os.mkdir("run"); os.mkdir("run/1"); open("run/1/x", "w").write("1"); os.symlink("1", "run/latest")
        os.rename("run", "done"); os.chdir("data")
        assert os.path.islink("../done/latest")
        open("../done/latest/x", "a").write("2")
        assert open("../done/1/x").read() == "12"
    """)


def test_a_real_link_is_renamed_as_a_link(run) -> None:
    run("""
        import os
        os.rename("elsewhere", "data/old")
        assert os.path.islink("data/old") and not os.path.lexists("elsewhere")
        open("data/old/new.txt", "w").write("n")
        assert open("data/new.txt").read() == "n" and open("data/old/a.txt").read() == "a"
    """)


def test_what_a_database_has_written_last_is_in_its_copy(run, project: Path) -> None:
    """In its write-ahead log, as somebody else has it open."""
    base = sqlite3.connect(project / "base.db")
    base.execute("pragma journal_mode=wal")
    base.execute("create table t (x)")
    base.execute("insert into t values (1)")
    base.commit()
    run("""
        import sqlite3
        base = sqlite3.connect("base.db")
        assert base.execute("select x from t").fetchall() == [(1,)]
        base.execute("insert into t values (2)"); base.commit()
        assert sqlite3.connect("base.db").execute("select count(*) from t").fetchone() == (2,)
    """)
    assert base.execute("select x from t").fetchall() == [(1,)]
    base.close()


def test_processes_that_the_program_forks_see_what_each_other_writes(run) -> None:
    """In directories that nobody has written to before, all at once."""
    run("""
        import multiprocessing, os
        def write(number):
            open(f"data/deep/{number}.txt", "w").write(str(number))
            open(f"data/{number}.txt", "w").write(str(number))
            if number == 7: os.remove("data/a.txt")
        with multiprocessing.get_context("fork").Pool(4) as pool: pool.map(write, range(8), 1)
        assert [open(f"data/deep/{number}.txt").read() for number in range(8)] == list("01234567")
        assert len(os.listdir("data/deep")) == 9 and len(os.listdir("data")) == 9
        assert not os.path.exists("data/a.txt")
        open("data/deep/b.txt", "a").write("+")
        assert open("data/deep/b.txt").read() == "b+"
    """)


def test_a_module_that_the_program_has_written_can_be_imported(run) -> None:
    run("""
        import importlib, os, sys
        sys.path.insert(0, "")
        os.makedirs("made/inner")
        open("made/__init__.py", "w").close()
        open("made/inner/__init__.py", "w").write("x = 1")
        open("single.py", "w").write("y = 2")
        importlib.invalidate_caches()
        import made.inner, single
        assert made.inner.x + single.y == 3
    """)


def test_a_way_around_is_refused(run) -> None:
    said = run(
        """
        import io
        io.FileIO("notes.txt", "w")
        """,
        code=1,
    )
    assert "PermissionError" in said or "Read-only file system" in said


def test_a_move_and_a_hard_link_around_are_refused(run) -> None:
    """What lies at the target of a move is lost, and what is written to a hard link is written to the real file."""
    run("""
        import os, posix
        free = os.environ["TMPDIR"]
        open(f"{free}/new.txt", "w").write("lost")
        for change in (posix.rename, posix.replace):
            try: change(f"{free}/new.txt", "notes.txt")
            except OSError: pass
            else: raise SystemExit(f"{change.__name__} onto a real file")
        try: posix.link("notes.txt", f"{free}/same.txt")
        except OSError: pass
        else: raise SystemExit("a hard link to a real file")
        posix.rename(f"{free}/new.txt", f"{free}/moved.txt")
        posix.link(f"{free}/moved.txt", f"{free}/same.txt")
    """)


def test_reading_real_files_costs_little(run) -> None:
    """In calls of functions, which are the same on every machine."""
    said = run("""
        import sys
        open("out.txt", "w").write("x")
        calls = 0
        def count(frame, event, argument):
            global calls
            calls += event in ("call", "c_call")
        open("data/deep/b.txt").close()
        sys.setprofile(count)
        for _ in range(100): open("data/deep/b.txt").close()
        sys.setprofile(None)
        print(calls / 100)
    """)
    assert 2 < float(said) < 100


@pytest.mark.parametrize(
    ("path", "text"),
    [("a", "a"), (b"a", "a"), ("file:///a", "/a"), ("gs://a", None), (3, None), ("", None), (None, None), ([], None)],
)
def test_what_is_a_local_path(path: object, text: str | None) -> None:
    assert path_text(path) == text
