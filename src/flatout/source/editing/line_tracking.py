"""Updates the line numbers of a Case after an edit, so that the next edit finds its lines."""

from __future__ import annotations

import dataclasses
import difflib
from typing import Any, TypeVar

from flatout.model.case import Where
from flatout.model.location import Frame
from flatout.source.editing.case_facts import same_file

T = TypeVar("T")


class LineMap:
    """The new number of each line of the old text."""

    def __init__(self, old: str, new: str) -> None:
        matcher = difflib.SequenceMatcher(None, old.split("\n"), new.split("\n"), autojunk=False)
        self._lines: dict[int, int] = {}
        for kind, start, end, new_start, new_end in matcher.get_opcodes():
            for number in range(start, end):
                there = new_start + (number - start)
                # Changed lines are matched from the first; further ones belong to the last new line.
                self._lines[number + 1] = (there if kind == "equal" else min(there, max(new_start, new_end - 1))) + 1

    def line(self, number: int) -> int:
        return self._lines.get(number, number)


def follow(value: T, path: str, moved: LineMap) -> T:
    """The same value with every line number of this file updated."""
    result: Any = value
    if isinstance(value, Where):
        if value.line is not None and same_file(path, value.file):
            result = dataclasses.replace(value, line=moved.line(value.line))
    elif isinstance(value, Frame):
        if same_file(path, value.file):
            result = value._replace(line=moved.line(value.line), first_line=moved.line(value.first_line))
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        changes = {}
        for field in dataclasses.fields(value):
            old = getattr(value, field.name)
            new = follow(old, path, moved)
            if new is not old:
                changes[field.name] = new
        result = dataclasses.replace(value, **changes) if changes else value
    elif isinstance(value, dict):
        result = {key: follow(item, path, moved) for key, item in value.items()}
    elif isinstance(value, (list, tuple)):
        if value and isinstance(value[0], float):
            return value  # times
        result = _sequence(value, path, moved)
    return result  # type: ignore[no-any-return]


def _sequence(value: Any, path: str, moved: LineMap) -> Any:
    """[file, line, function] is a location as well."""
    items = list(value)
    if len(items) >= 2 and isinstance(items[0], str) and isinstance(items[1], int) and same_file(path, items[0]):
        items[1] = moved.line(items[1])
        return type(value)(items)
    followed = [follow(item, path, moved) for item in items]
    return value if all(a is b for a, b in zip(followed, items, strict=True)) else type(value)(followed)
