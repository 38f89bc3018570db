"""Which files are the user's: asked inside the user's program, so it must answer whatever that does."""

from __future__ import annotations

import os

import pytest

from flatout.source import users_code


@pytest.mark.parametrize("name", ["", "<string>", "a\0b.py", "x" * 5000, "missing/train.py"])
def test_names_that_no_file_has_are_answered(name: str) -> None:
    assert users_code.is_users_file(name) in (True, False)


def test_a_directory_that_is_gone_is_no_library(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    def gone() -> str:
        raise FileNotFoundError("the directory was removed")

    monkeypatch.setattr(os, "getcwd", gone)
    assert not users_code._holds_installed_packages(str(tmp_path))
    assert not users_code._holds_installed_packages("relative")
    assert isinstance(users_code.is_users_file("train.py"), bool)
