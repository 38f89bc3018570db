"""`%%flatout`: run the cell observed, and show under it where its time goes. `%%flatout tune`: make it faster."""

from __future__ import annotations

import contextlib
import io
import shlex
import tempfile
from pathlib import Path
from typing import Any

from flatout.jupyter.bar import Bar
from flatout.jupyter.history import Places, cells_of, notebook
from flatout.model.case import Case
from flatout.model.errors import FlatoutError, InvalidOption
from flatout.model.quantities import seconds

USAGE = "%%flatout, %%flatout --no-trace, or %%flatout tune [--budget 5m] [--lever NAME]"


def register(shell: Any) -> None:
    shell.register_magic_function(Magic(shell), "cell", "flatout")


class Magic:
    """Called by IPython with the rest of the line and the cell below it."""

    __name__ = "flatout"

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.failed: set[int] = set()
        """Numbers of the cells that have failed since flatout was loaded."""
        shell.events.register("post_run_cell", self._note)
        self.__doc__ = f"Observe this cell, or tune it: {USAGE}"

    def __call__(self, line: str, cell: str) -> None:
        """An error of flatout's is one line under the cell, no traceback."""
        try:
            words = shlex.split(line)
            case = self._tune(words[1:], cell) if words[:1] == ["tune"] else self._observe(words, cell)
        except (FlatoutError, ValueError) as error:
            print(f"flatout: {error}")  # noqa: T201  # the output of a cell
            return
        if case is not None:
            self._show(case, cell)

    def _observe(self, words: list[str], cell: str) -> Case | None:
        unknown = [word for word in words if word != "--no-trace"]
        if unknown:
            raise InvalidOption(f"%%flatout does not take {unknown[0]!r}. It takes {USAGE}.")
        from flatout.run.inside import observe

        if not cell.strip():
            raise InvalidOption("The cell is empty: there is nothing to observe.")
        with observe(trace="--no-trace" not in words, show=False) as seen:
            result = self.shell.run_cell(cell, store_history=False)
        if not result.success:
            self.failed.add(self.shell.execution_count)
        # What failed in the cell has been shown by IPython already; what was seen until then is shown all the same.
        return seen.case if result.success or seen.case.steps is not None else None

    def _tune(self, words: list[str], cell: str) -> Case:
        """The cells before this one and this one run in processes of their own, as a notebook."""
        options = _options(words)
        from flatout.tune.api import tune

        with tempfile.TemporaryDirectory(prefix="flatout-notebook-", dir=".") as directory:
            path = Path(directory) / "session.ipynb"
            path.write_text(notebook(cells_of(self.shell, self.failed)[:-1], cell), encoding="utf-8")
            told = io.StringIO()
            with Bar("tuning this cell", seconds(options["budget"])), contextlib.redirect_stderr(told):
                return tune(path, show=False, **options)

    def _note(self, result: Any) -> None:
        """After each cell. What was run in a cell, as an observed one is, has no number of its own."""
        number = getattr(result, "execution_count", None)
        if number is not None and not result.success:
            self.failed.add(number)

    def _show(self, case: Case, cell: str) -> None:
        from IPython.display import HTML, display

        from flatout.report.html.fragment import render

        display(HTML(render(case, Places(self.shell, cell))))


def _options(words: list[str]) -> dict[str, Any]:
    options: dict[str, Any] = {"budget": "5m", "levers": []}
    rest = iter(words)
    for word in rest:
        name, _, value = word.partition("=")
        if name not in ("--budget", "--lever"):
            raise InvalidOption(f"%%flatout tune does not take {word!r}. It takes {USAGE}.")
        value = value or next(rest, "")
        if not value:
            raise InvalidOption(f"{name} needs a value: {USAGE}.")
        if name == "--budget":
            options["budget"] = value
        else:
            options["levers"].append(value)
    seconds(options["budget"])  # raises where it is no time
    return options
