"""The store: cases appear whole, are found again by what a user would type, and foreign files are refused."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from sample_case import sample_case

from flatout import store
from flatout.model.case import SCHEMA
from flatout.model.errors import CaseNotFound, CaseUnreadable
from flatout.store import saving


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / store.HOME


def keep(home: Path, title: str = "train.py") -> Path:
    return saving.save(sample_case(), store.new_directory(title, home))


def test_a_kept_case_is_the_latest(home: Path) -> None:
    keep(home)
    second = keep(home, "other.py")
    assert store.locate(None, home).resolve() == second.resolve()
    assert store.load(store.locate("latest", home)) == sample_case()


def test_the_newest_is_the_latest_where_the_latest_was_removed(home: Path) -> None:
    first, second = keep(home), keep(home, "other.py")
    os.utime(keep(home, "old.py"), (1, 1))
    os.utime(first, (5, 5))
    shutil.rmtree((home / "latest").resolve())
    assert store.locate(None, home) == second
    shutil.rmtree(second.parent)
    assert store.locate("latest", home) == first
    shutil.rmtree(first.parent)
    with pytest.raises(CaseNotFound, match="There is no case"):
        store.locate(None, home)


def test_two_cases_of_the_same_second_do_not_meet(home: Path) -> None:
    assert len({store.new_directory("train.py", home) for _ in range(5)}) == 5


def test_titles_become_harmless_names(home: Path) -> None:
    directory = store.new_directory("../../etc/pass wd\n\x1b[31m", home)
    assert directory.parent == home / "cases"
    assert store.new_directory("///", home).name.startswith("case-")


def test_the_store_stays_out_of_the_users_repository(home: Path) -> None:
    keep(home)
    assert (home / ".gitignore").read_text() == "*\n"


def test_a_case_is_found_by_path_directory_name_and_beginning(home: Path) -> None:
    path = keep(home)
    name = path.parent.name
    for reference in (str(path), str(path.parent), name, name[:10]):
        assert store.locate(reference, home).resolve() == path.resolve()


def test_an_ambiguous_beginning_lists_the_candidates(home: Path) -> None:
    keep(home, "train.py")
    keep(home, "train_big.py")
    with pytest.raises(CaseNotFound, match="matches 2 cases"):
        store.locate("train", home)


@pytest.mark.parametrize("reference", [None, "nothing-here", "*", "../x"])
def test_what_is_not_there_is_said(home: Path, reference: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home.parent)  # a reference may be a path: nothing of that name lies about here
    with pytest.raises(CaseNotFound):
        store.locate(reference, home)


def test_no_trace_of_a_failed_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "case.json"
    target.write_text("before")

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        store.write_atomically(target, "after")
    assert target.read_text() == "before"
    assert list(tmp_path.iterdir()) == [target]


def test_a_newer_schema_is_refused(home: Path) -> None:
    path = keep(home)
    data = json.loads(path.read_text()) | {"schema": SCHEMA + 1}
    path.write_text(json.dumps(data))
    with pytest.raises(CaseUnreadable, match="newer flatout"):
        store.load(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "cannot be read"),
        (b"\xff\xfe\x00", "cannot be read"),
        (b'{"kind": "run"', "cannot be read"),
        (b"[1, 2]", "not a flatout case"),
        (b'{"name": "something else"}', "not a flatout case"),
        (b'{"kind": "run", "schema": 1, "steps": {"count": 3}}', "damaged"),
    ],
)
def test_damaged_and_foreign_files_are_told_apart(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "case.json"
    path.write_bytes(content)
    with pytest.raises(CaseUnreadable, match=message):
        store.load(path)


def modes(root: Path) -> dict[str, int]:
    paths = [root, *(path for path in root.rglob("*") if not path.is_symlink())]
    return {str(path.relative_to(root.parent)): path.stat().st_mode & 0o777 for path in paths}


def test_a_file_that_may_not_be_read_is_not_to_be_made_again(tmp_path: Path) -> None:
    with pytest.raises(CaseUnreadable, match=r"cannot be read: Is a directory\. Name a case that you may read\.$"):
        store.load(tmp_path)


def test_the_store_is_its_owners_alone(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        home = tmp_path / ".flatout"
        directory = store.new_directory("train.py", home)
        (directory / "trace").mkdir()
        (directory / "trace" / "host.xplane.pb").write_bytes(b"x")
        saving.save(sample_case(), directory)
        found = modes(home)
        assert len(found) > 5
        assert set(found.values()) == {0o700, 0o600}
        assert all(mode == 0o700 for name, mode in found.items() if (tmp_path / name).is_dir())
    finally:
        os.umask(before)


def test_what_an_older_version_left_open_is_closed_and_still_read(tmp_path: Path) -> None:
    home = tmp_path / ".flatout"
    directory = store.new_directory("old.py", home)
    saving.save(sample_case(), directory)
    (tmp_path / "outside.txt").write_text("not ours")
    (tmp_path / "outside.txt").chmod(0o644)
    (directory / "link").symlink_to(tmp_path / "outside.txt")
    for path in [home, *home.rglob("*")]:
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() else 0o644)
    store.new_directory("new.py", home)
    assert set(modes(home).values()) == {0o700, 0o600}
    assert (tmp_path / "outside.txt").stat().st_mode & 0o777 == 0o644
    assert store.load(directory / store.FILE).kind == sample_case().kind


def test_what_is_written_for_the_user_has_the_users_modes(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        store.write_atomically(tmp_path / "report.html", "x")
    finally:
        os.umask(before)
    assert (tmp_path / "report.html").stat().st_mode & 0o777 == 0o644
