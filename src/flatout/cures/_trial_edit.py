"""Whether an edit would change one of the program's own files, for the `skip` of cures that are edits only."""

from __future__ import annotations

from collections.abc import Iterator

from flatout.cures._spec import Edit
from flatout.model.case import Case
from flatout.source.editing import source_text
from flatout.source.editing.program_files import own_files


def sources(case: Case) -> Iterator[tuple[str, str]]:
    """Path and text of the program's own files, as far as they can be read."""
    for path in own_files(case):
        source = source_text.load(path)
        if source is not None:
            yield path, source.text


def changes_something(edit: Edit, case: Case) -> bool:
    return any(edit(text, path, case, "") for path, text in sources(case))
