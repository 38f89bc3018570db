"""What a user types for an environment, word by word.

| typed | means |
|---|---|
| `.` | the Python that flatout runs in |
| `/path/to/python`, `venv/` | that Python, or that virtual environment, as it is |
| `tensorflow==2.15 pandas` | a new environment with these packages |
| `requirements.txt` | a new environment with the packages of that file |
| `python3.10 tensorflow==2.12` | the same, of that Python |
| `venv/ keras==3.4` | a new environment with all of `venv/`, and this package in place of its own |
"""

from __future__ import annotations

import codecs
import os
import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from flatout.model.errors import InvalidOption

_NAME = re.compile(r"python(\d+(\.\d+){0,2})?|\d\.\d+(\.\d+)?")
_REQUIREMENT = re.compile(r"[A-Za-z0-9][\w.-]*(\[[\w,.-]+\])?\s*((==|>=|<=|~=|!=|<|>)[\w.*+!,<>=~-]+)?$")
_LISTS = (".txt", ".in", ".lock")


@dataclass(frozen=True)
class Specification:
    text: str
    """As it was typed, for people."""
    python: str = ""
    """A path, or a name such as `python3.10`; empty: that of flatout."""
    requirements: tuple[str, ...] = ()
    """Packages to install; empty: the Python is taken as it is."""

    @property
    def is_path(self) -> bool:
        """Whether the Python is one that exists, with its packages."""
        return os.sep in self.python


def specification(text: str) -> Specification:
    """Raises `InvalidOption` for what is neither a Python, nor an environment, nor a package."""
    pythons: list[str] = []
    requirements: list[str] = []
    for word in _words(text):
        python = _python(word)
        if python:
            pythons.append(python)
        else:
            requirements += _packages(word, text)
    if len(pythons) > 1:
        raise InvalidOption(f"--env {text!r} names {len(pythons)} Pythons. Give one, and packages after it.")
    if not pythons and not requirements:
        raise InvalidOption("--env is empty. Give a Python, a virtual environment, or packages: tensorflow==2.15.")
    return Specification(text.strip(), pythons[0] if pythons else "", tuple(requirements))


def _words(text: str) -> list[str]:
    """As a shell divides them; a path with blanks is one word, as it was typed."""
    if " " in text.strip() and _python(text.strip()):
        return [text.strip()]
    try:
        return shlex.split(text)
    except ValueError:
        raise InvalidOption(f"--env {text!r} has a quotation mark that is not closed.") from None


def with_packages(spec: Specification, requirements: tuple[str, ...], text: str) -> Specification:
    return Specification(text, spec.python, requirements)


def _python(word: str) -> str:
    """The path or the name of a Python; empty where the word is none."""
    if word == ".":
        return sys.executable
    path = Path(word).expanduser()
    inside = path / "bin" / "python"
    if inside.is_file():
        return os.path.abspath(inside)
    is_program = os.sep in word and path.is_file() and os.access(path, os.X_OK)
    if is_program and path.name.startswith("python"):
        return os.path.abspath(path)  # not resolved: a link in a virtual environment is what makes it one
    return word if _NAME.fullmatch(word) else ""


def _packages(word: str, text: str) -> list[str]:
    path = Path(word).expanduser()
    if path.suffix in _LISTS and path.is_file():
        return listed(path)
    if path.is_dir() and any((path / name).is_file() for name in ("pyproject.toml", "setup.py")):
        return [os.path.abspath(path)]
    if path.suffix == ".whl" and path.is_file():
        return [os.path.abspath(path)]
    if os.sep not in word and _REQUIREMENT.match(word):
        return [word]
    raise InvalidOption(
        f"--env {text!r}: {word!r} is neither a Python, nor a virtual environment here (a directory with bin/python), "
        "nor a package such as tensorflow==2.15."
    )


def listed(path: Path) -> list[str]:
    """The requirements of a file, without comments, options and hashes."""
    found = []
    for line in _text(path).replace("\\\n", " ").splitlines():
        requirement = line.split(" #")[0].split(" --hash")[0].strip()
        if requirement and not requirement.startswith(("#", "-")):
            found.append(requirement)
    if not found:
        raise InvalidOption(f"{path} lists no packages.")
    return found


def _text(path: Path) -> str:
    """Its content. PowerShell writes `pip freeze > requirements.txt` as UTF-16, which pip reads as well."""
    try:
        content = path.read_bytes()
        wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        return content.decode("utf-16" if wide else "utf-8-sig").replace("\r\n", "\n")
    except OSError as error:
        raise InvalidOption(f"{path} cannot be read: {error.strerror}. Give a list of packages.") from None
    except UnicodeDecodeError:
        raise InvalidOption(f"{path} is not a text in UTF-8. Give a list of packages, one in each line.") from None
