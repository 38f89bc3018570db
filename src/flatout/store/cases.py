"""Where cases live: `.flatout/cases/<program>-<time>/case.json` under the working directory, and `.flatout/latest`.

A case is written to a temporary file and renamed, so that a reader never sees a partial file.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from collections.abc import Sequence
from pathlib import Path

from flatout.model import json_text
from flatout.model.case import SCHEMA, Case
from flatout.model.errors import CaseNotFound, CaseUnreadable
from flatout.store import origin, permissions

HOME = ".flatout"
FILE = "case.json"


def new_directory(title: str, home: Path | None = None) -> Path:
    """Make an empty directory for one case, named after the program and the time."""
    cases = (home or Path.cwd() / HOME) / "cases"
    if permissions.is_open(cases.parent):
        permissions.close(cases.parent)  # an older version has left it so
    permissions.make_private(cases)
    permissions.make_private(cases.parent)
    ignore = cases.parent / ".gitignore"
    if not ignore.exists():
        # A case holds paths and source lines, which do not belong in a repository.
        write_atomically(ignore, "*\n", private=True)
    stem = re.sub(r"[^A-Za-z0-9_.-]+", "-", title).strip("-.")[:60] or "case"
    stamp = time.strftime("%Y%m%d-%H%M%S")
    for number in range(1, 1000):
        name = f"{stem}-{stamp}" + (f"-{number}" if number > 1 else "")
        try:
            (cases / name).mkdir(mode=0o700)
        except FileExistsError:
            continue
        origin.begin(cases / name)  # another commit may be checked out by the time it ends
        return cases / name
    raise OSError(f"Could not find a free name for a case under {cases}")


def write_atomically(path: Path, text: str, private: bool = False) -> None:
    """`private`: for the owner alone, whatever the umask says."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    opener = permissions.private if private else None
    try:
        # A command line or a path may hold bytes that are not UTF-8; JSON writes them as `\\udcff`.
        with open(temporary, "w", encoding="utf-8", errors="backslashreplace", opener=opener) as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_case(case: Case, directory: Path) -> Path:
    path = directory / FILE
    write_atomically(path, json.dumps(case.to_json(), ensure_ascii=False, allow_nan=False), private=True)
    return path


def locate(reference: str | None, home: Path | None = None) -> Path:
    """The case file for a path, a case's name, a unique beginning of a name, or None for the latest case."""
    home = home or Path.cwd() / HOME
    if reference is None or reference == "latest":
        path = home / "latest" / FILE
        kept = [path] if path.exists() else _newest_first(home)  # its directory may have been removed, or not copied
        if not kept:
            raise CaseNotFound(
                f"There is no case in {home} yet. Run `flatout run PROGRAM` here first, or name a case: "
                "`flatout show PATH`."
            )
        return kept[0]
    given = Path(reference)
    for candidate in (given, given / FILE, home / "cases" / reference / FILE):
        if candidate.is_file():
            return candidate
    matches = sorted((home / "cases").glob(f"{reference}*/{FILE}")) if re.match(r"^[\w.-]+$", reference) else []
    if len(matches) == 1:
        return matches[0]
    if matches:
        names = ", ".join(path.parent.name for path in matches[:5])
        raise CaseNotFound(f"{reference!r} matches {len(matches)} cases ({names}, …). Give more of the name.")
    raise CaseNotFound(
        f"No case at {reference!r}. Give a case.json, its directory, or the name of a case in {home}/cases."
    )


def load(path: Path) -> Case:
    """Read a case. Raises CaseUnreadable with the reason for a damaged file and for one that is not a case."""
    try:
        data = json_text.read(path)
    except OSError as error:
        raise CaseUnreadable(
            f"{path} cannot be read: {error.strerror or error}. Name a case that you may read."
        ) from None
    except ValueError as error:
        raise CaseUnreadable(f"{path} cannot be read as a case: {error}. Run the program again to make one.") from None
    if not isinstance(data, dict) or "kind" not in data or "schema" not in data:
        raise CaseUnreadable(f"{path} is JSON, but not a flatout case: `kind` and `schema` were expected in it.")
    if not isinstance(data["schema"], int):
        raise CaseUnreadable(f"{path} is JSON, but not a flatout case: its `schema` is not a number.")
    if data["schema"] > SCHEMA:
        raise CaseUnreadable(
            f"{path} was written by a newer flatout (schema {data['schema']}; this one knows {SCHEMA}). "
            "Update with `pip install -U flatout`."
        )
    try:
        return Case.from_json(data)
    except CaseUnreadable as error:
        raise CaseUnreadable(f"{path} is damaged: {error}. Run the program again to make a new one.") from None
    except RecursionError:
        raise CaseUnreadable(f"{path} is damaged: it is nested too deeply. Run the program again.") from None


def latest_tune(command: Sequence[str], home: Path | None = None) -> Case:
    """The newest tune of a program, with any arguments, that found levers to use."""
    return latest_tune_in(command, home)[0]


def latest_tune_in(command: Sequence[str], home: Path | None = None) -> tuple[Case, Path]:
    """The same, with its directory."""
    home = home or Path.cwd() / HOME
    for path in _newest_first(home, "tune-*"):
        case = load(path)
        if case.tuned and _program_of(case.program.command) == _program_of(command):
            return case, path.parent
    raise CaseNotFound(
        f"No tune of {' '.join(_program_of(command))} in {home} has found levers to use. "
        "Run `flatout tune PROGRAM` here first."
    )


def latest_with_patch(home: Path | None = None) -> Path:
    """The latest case where it has a patch, else the newest tune: a run or a trace after it does not hide its patch.

    Never an older tune's: what the newest one did not find must not be applied by mistake.
    """
    latest = locate(None, home)
    for path in (latest, *_newest_first(home or Path.cwd() / HOME)):
        with contextlib.suppress(CaseUnreadable):
            case = load(path)
            if case.patch or case.kind == "tune":
                return path
    return latest


def _newest_first(home: Path, name: str = "*") -> list[Path]:
    """The files of the kept cases."""
    return sorted((home / "cases").glob(f"{name}/{FILE}"), key=lambda path: -path.stat().st_mtime)


def _program_of(command: Sequence[str]) -> tuple[str, ...]:
    """What is run, without its arguments: a file, `-m` and a module, or a command."""
    words = tuple(command[1:] if os.path.basename(command[0]).startswith("python") else command)
    return words[: 2 if words[:1] == ("-m",) else 1]
