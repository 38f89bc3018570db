"""The settings of `[tool.flatout.check]` in the nearest pyproject.toml."""

from __future__ import annotations

import fnmatch
import importlib
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flatout.check.checker import VERSION
from flatout.model.errors import InvalidOption, SettingsInvalid
from flatout.source.analysis.patterns import LEVELS, Confidence

tomllib: Any = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
_REQUIREMENT = re.compile(
    r"tensorflow(-(cpu|gpu|macos|intel|rocm))?\s*(\[[^\]]*\])?\s*[(]?([<>=!~][^;]*,)?\s*(>=|==|~=)"
    r"\s*(?P<major>\d+)\.(?P<minor>\d+)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Settings:
    select: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    per_file_ignores: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    exclude: tuple[str, ...] = ()
    tf: tuple[int, int] = VERSION
    is_pinned: bool = False
    """Whether `tf` was named, by the user or by the project's dependencies in pyproject.toml."""
    confidence: Confidence = "medium"
    """The least confidence of findings that nobody has asked for by name."""
    tests: bool = False
    root: Path = field(default_factory=Path.cwd)
    """The directory that file patterns are relative to."""

    def ignored_in(self, path: str) -> tuple[str, ...]:
        """Causes that are not reported in a file."""
        return tuple(
            name
            for glob, names in self.per_file_ignores.items()
            for name in names
            if matches_path(path, glob, self.root)
        )


def matches_path(path: str, glob: str, root: Path) -> bool:
    """Similar to .gitignore: a pattern without a slash matches any part of the path."""
    try:
        relative = Path(path).resolve().relative_to(root.resolve()).as_posix()
    except (ValueError, OSError):
        relative = Path(path).as_posix()
    if "/" not in glob.rstrip("/"):
        return any(fnmatch.fnmatch(part, glob.rstrip("/")) for part in relative.split("/"))
    glob = glob.strip("/").removeprefix("./")
    return fnmatch.fnmatch(relative, glob) or fnmatch.fnmatch(relative, f"{glob}/*")


def load(start: Path) -> Settings:
    """From the nearest pyproject.toml in a directory or its parents that has a `[tool.flatout.check]`.

    If it names no version of TensorFlow, the nearest one that depends on TensorFlow does.
    """
    try:
        start = start.resolve()
    except OSError:
        return Settings()
    required = None
    for directory in (start, *start.parents):
        file = directory / "pyproject.toml"
        try:
            if not file.is_file():
                continue
            content = tomllib.loads(file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsInvalid(
                f"{file} could not be read: {error}. Correct it, or check another directory."
            ) from None
        except tomllib.TOMLDecodeError as error:
            raise SettingsInvalid(f"{file} is not valid TOML: {error}. Correct it first.") from None
        required = required or _required(content)
        table = _table(content, file)
        if table is not None:
            return _read(table, file, required)
    return Settings(
        tf=required or VERSION, is_pinned=required is not None, root=start if start.is_dir() else start.parent
    )


def _table(content: Mapping[str, Any], file: Path) -> Mapping[str, Any] | None:
    """`[tool.flatout.check]`; None where there is none."""
    found: Any = content
    for name in ("tool", "flatout", "check"):
        found = found.get(name, {} if name != "check" else None)
        if found is not None and not isinstance(found, dict):
            raise SettingsInvalid(f"{name} in {file} must be a table: write its settings below [tool.flatout.check].")
    table: Mapping[str, Any] | None = found
    return table


def _required(content: Mapping[str, Any]) -> tuple[int, int] | None:
    """The oldest TensorFlow that a project's dependencies allow: `tensorflow>=2.12`."""
    project = content.get("project")
    dependencies = project.get("dependencies") if isinstance(project, dict) else None
    items = dependencies if isinstance(dependencies, list) else ()
    found = [_REQUIREMENT.match(str(item).strip()) for item in items]
    return min(((int(one["major"]), int(one["minor"])) for one in found if one is not None), default=None)


def _read(table: Mapping[str, Any], file: Path, required: tuple[int, int] | None) -> Settings:
    known = {"select", "extend-select", "ignore", "per-file-ignores", "exclude", "tf", "tests", "confidence"}
    unknown = sorted(set(table) - known)
    if unknown:
        raise SettingsInvalid(
            f"[tool.flatout.check] of {file} has {', '.join(unknown)}, which flatout does not know. "
            f"It may hold {', '.join(sorted(known))}."
        )
    ignores = table.get("per-file-ignores", {})
    if not isinstance(ignores, dict):
        raise SettingsInvalid(
            f"per-file-ignores in {file} must be a table of file patterns, each with a list of causes."
        )
    for name, kind, example in (("tf", str, '"2.16"'), ("confidence", str, '"medium"'), ("tests", bool, "true")):
        if not isinstance(table.get(name, kind()), kind):
            raise SettingsInvalid(f"{name} in {file} must be written like {name} = {example}, not {table[name]!r}.")
    return Settings(
        select=_texts(table, "select", file),
        extend_select=_texts(table, "extend-select", file),
        ignore=_texts(table, "ignore", file),
        per_file_ignores={glob: _texts(ignores, glob, file) for glob in ignores},
        exclude=_texts(table, "exclude", file),
        tf=version(table["tf"]) if "tf" in table else required or VERSION,
        is_pinned="tf" in table or required is not None,
        confidence=confidence(table.get("confidence", "medium")),
        tests=table.get("tests", False),
        root=file.parent,
    )


def _texts(table: Mapping[str, Any], name: str, file: Path) -> tuple[str, ...]:
    value = table.get(name, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise SettingsInvalid(f'{name} in {file} must be a list of strings, such as ["host-sync"].')
    return tuple(value)


def confidence(text: str) -> Confidence:
    found = next((level for level in LEVELS if level == text.strip()), None)
    if found is None:
        raise InvalidOption(f"{text!r} is no confidence. It may be {', '.join(LEVELS)}.")
    return found


def version(text: str) -> tuple[int, int]:
    """`2.16` → (2, 16)"""
    parts = text.strip().split(".")
    if len(parts) < 2 or not all(part.isdigit() for part in parts[:2]):
        raise InvalidOption(f"{text!r} is not a version of TensorFlow. Write it as 2.16.")
    return int(parts[0]), int(parts[1])
