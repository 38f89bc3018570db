"""A notebook as a program: its code cells in their order as one Python file, with cell and line of each of its lines.

The file is named `train.ipynb.py` and stands in a directory of its own below `.flatout/notebooks`, by content. It runs
in the notebook's directory and imports from there. What is not Python is run in another way, left out, or refused by
name: magics that only set up how a notebook looks mean nothing here, and packages are installed already. Magics that
are none of these are IPython's own business where it is installed: they run in a shell whose names are the program's.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
import re
from bisect import bisect_right
from hashlib import blake2b
from pathlib import Path

from flatout.model.errors import NotebookUnusable
from flatout.model.text import clean
from flatout.source.notebooks.text import CELL_MAGIC, MARK, NotANotebook, Notebook, read, to_bytes
from flatout.store import HOME, write_atomically

ENDING = ".ipynb"
LEFT_OUT = frozenset(
    (
        *("alias", "autoreload", "automagic", "colors", "conda", "config", "doctest_mode", "gui", "history", "load"),
        *("load_ext", "logstart", "mamba", "matplotlib", "pinfo", "pip", "precision", "reload", "reload_ext"),
        *("tensorboard", "tensorflow_version", "uv", "who", "whos", "xmode"),
    )
)
"""Magics that set up the notebook or its environment: nothing of what the program computes depends on them."""
MEASURING = ("time", "timeit", "prun", "memit", "mprun", "lprun")
"""Magics that run the rest of their line."""
SHELLS = ("bash", "sh")
SHOWN = frozenset(["html", "javascript", "js", "markdown", "latex", "svg"])
"""Magics of cells that are only shown."""
INSTALLING = re.compile(r"!?\s*(sudo\s+)?(pip3?|conda|mamba|uv|apt|apt-get|nvidia-smi|python3?\s+-m\s+pip)\b")
NAME = "#flatout-notebook "
"""How the first line of a program begins; the notebook's name follows."""
START = """\
#flatout-notebook {name}
{futures}import builtins, os, sys
os.environ.setdefault("MPLBACKEND", "Agg")
sys.path[0] = {directory!r}
os.chdir({directory!r})
try:
    from IPython.display import display as _display
except ImportError:
    _display = print
builtins.display = getattr(builtins, "display", _display)
def _flatout_command(text, names):
    import re
    def value(found):
        try:
            return str(eval(found.group(1) or found.group(2), names))
        except Exception:
            return found.group(0)
    return re.sub(r"\\{{([^{{}}]+)\\}}|\\$(\\w+)", value, text)
def _flatout_shell(names=globals()):
    from IPython.core.interactiveshell import InteractiveShell
    if not InteractiveShell.initialized():
        shell = InteractiveShell.instance(user_ns=names)
        shell.history_manager.enabled = False
        sys.excepthook = names["_flatout_shown"]
    return InteractiveShell.instance()
builtins.get_ipython = _flatout_shell
def _flatout_hook(kind, error, trace, shown=sys.excepthook, file=__file__, starts={starts!r}, cells={cells!r}):
    import bisect, traceback
    shown(kind, error, trace)
    lines = [one.lineno for one in traceback.extract_tb(trace) if one.filename == file]
    number = bisect.bisect_right(starts, lines[-1]) - 1 if lines else -1
    if number >= 0:
        line = lines[-1] - starts[number] + 1
        print("In cell", str(cells[number]) + ", line", str(line) + ", of", {name!r}, file=sys.stderr)
sys.excepthook = _flatout_shown = _flatout_hook
del _display, _flatout_hook, _flatout_shell
"""
"""What comes before the first cell."""


def is_notebook(program: str) -> bool:
    return program.endswith(ENDING)


def program_of(path: str) -> Path:
    """The Python file to run. Raises `NotebookUnusable`."""
    notebook = Path(path).resolve()
    try:
        content = notebook.read_bytes()
        book = read(content, _statement)
    except OSError as error:
        raise NotebookUnusable(f"{path} cannot be read: {error.strerror}.") from None
    except NotANotebook as error:
        raise NotebookUnusable(f"{path} is {error}. {_what_to_do(content)}") from None
    _check(book, path)
    text = _begin(notebook, book) + book.text
    key = blake2b(f"{notebook}{text}".encode("utf-8", "surrogateescape"), digest_size=4).hexdigest()
    plain = re.sub(r"[^\w.-]", "_", notebook.name)  # so that a text shows where the path ends
    file = Path(HOME).absolute() / "notebooks" / key / f"{plain}.py"
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not file.exists():
        write_atomically(file, text)  # the ranks of a job come here at once
    return file


def _begin(notebook: Path, book: Notebook) -> str:
    """What comes before the first cell."""
    futures = f"from __future__ import {', '.join(sorted(book.futures))}\n" if book.futures else ""
    header = START.count("\n") + bool(futures)
    starts = [start + header for start in book.starts]
    return START.format(
        futures=futures, directory=str(notebook.parent), starts=starts, cells=book.cells, name=clean(notebook.name)
    )


def _check(book: Notebook, path: str) -> None:
    if not book.cells:
        other = "" if book.language.lower() == "python" else f": its language is {clean(book.language, 40)}"
        raise NotebookUnusable(f"{path} has no code cells in Python{other}.")
    if book.broken:
        raise NotebookUnusable(f"Cell {book.broken[0]} of {path} is not valid Python.")
    line = _awaiting(ast.parse(book.text))
    if line is not None:
        cell, line = book.place(line)
        raise NotebookUnusable(
            f"Cell {cell} of {path} awaits in line {line} outside of any function, which works in IPython alone. Put "
            "what it does into a function, `async def main(): …`, and call `asyncio.run(main())` in a copy."
        )


def _awaiting(module: ast.AST) -> int | None:
    """The first line outside of functions that awaits something."""
    lines: list[int] = []
    nodes = [module]
    while nodes:
        for child in ast.iter_child_nodes(nodes.pop()):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                continue
            if isinstance(child, (ast.Await, ast.AsyncFor, ast.AsyncWith)):
                lines.append(child.lineno)
            elif isinstance(child, ast.comprehension) and child.is_async:
                lines.append(child.target.lineno)
            nodes.append(child)
    return min(lines, default=None)


def _what_to_do(content: bytes) -> str:
    if b'"worksheets"' in content[:100_000] or b'"nbformat": 3' in content:
        return "It is of version 3: `jupyter nbconvert --to notebook --nbformat 4` makes one of version 4 of it."
    return "Give a notebook of version 4."


def _refused(what: str, cell: int) -> str:
    return (
        f"Cell {cell} has {what}, which flatout does not run. Do what it does before, outside of the notebook, "
        "and take the line out of a copy."
    )


# ── lines that IPython alone understands ─────────────────────────────────────────────────────────────────────────────


def _statement(line: str, cell: int) -> str:
    """Of a line, or of a whole cell that begins with `%%`. Raises `NotebookUnusable`."""
    if CELL_MAGIC.match(line):
        return _of_cell(line, cell)
    if line.startswith("?") or line.endswith("?") or INSTALLING.match(line):
        return "pass"
    assigned = re.match(r"([\w.,\[\] ]+=)\s*!(.+)", line)
    if assigned is not None or line.startswith("!"):
        target, command = assigned.groups() if assigned is not None else ("", line[1:])
        return _shell(target, command.strip())
    found = re.match(r"(?:([\w.,\[\] ]+=)\s*)?%%?\s*(\w+)\s*(.*)", line)
    target, name, rest = found.groups() if found is not None else ("", "", "")
    if name == "capture":
        return _captured(rest)
    if name in LEFT_OUT or line.startswith("%%"):
        return "pass"
    if name in MEASURING:
        statement = re.sub(r"^(-\w+( \d+)? )*", "", rest)
        return f"{target or ''} {statement}".strip() or "pass"
    if name == "cd" and not rest.startswith("-"):
        return f"os.chdir({_path(rest or '~')})"
    if name in ("env", "set_env") and "=" in rest:
        key, _, value = rest.partition("=")
        return f"os.environ[{key.strip()!r}] = {value.strip()!r}"
    if name and _has_ipython():
        return f"{target or ''} get_ipython().run_line_magic({name!r}, {rest!r})".strip()
    raise NotebookUnusable(_refused(f"%{name}" if name else line[:40], cell))


def _captured(rest: str) -> str:
    """`%%capture out`: the cell shows what it writes, and `out` is there, but empty."""
    name = next((word for word in rest.split() if word.isidentifier()), None)
    fields = "stdout='', stderr='', outputs=[], show=lambda: None"
    return f'{name} = __import__("types").SimpleNamespace({fields})' if name else "pass"


def _of_cell(source: str, cell: int) -> str:
    first, _, body = source.replace("\r\n", "\n").strip().partition("\n")
    name, _, rest = first.removeprefix("%%").strip().partition(" ")
    if name in SHOWN:
        return "pass"
    if name in SHELLS and not rest.strip():  # its options name values of the notebook that it sets or reads
        return f'__import__("subprocess").run([{name!r}, "-c", {body!r}])'
    if name == "writefile" and not rest.startswith("-"):
        return f'open({_path(rest)}, "w", encoding="utf-8").write({body + chr(10)!r})'
    if _has_ipython():
        return f"get_ipython().run_cell_magic({name!r}, {rest!r}, {body!r})"
    raise NotebookUnusable(_refused(f"%%{name}", cell))


def _has_ipython() -> bool:
    """Whether the program finds IPython: it has the other magics, and says by name which one it lacks."""
    return importlib.util.find_spec("IPython") is not None


def _path(text: str) -> str:
    """A path as IPython takes it: in quotation marks or without, with `~` and values of the notebook in it."""
    words = text.strip()
    if words[:1] in ("'", '"') and words[-1:] == words[:1]:
        words = words[1:-1]
    named = f"_flatout_command({words!r}, globals())" if re.search(r"\{|\$", words) else repr(words)
    return f"os.path.expanduser({named})" if words.startswith("~") or named != repr(words) else named


def _shell(target: str, command: str) -> str:
    text = repr(command)
    if re.search(r"\{|\$", command):  # values of the notebook may stand in it
        text = f"_flatout_command({text}, globals())"
    if target:
        return f'{target} __import__("subprocess").getoutput({text}).splitlines()'
    return f'__import__("subprocess").run({text}, shell=True)'


# ── back to the notebook ─────────────────────────────────────────────────────────────────────────────────────────────

_PLACE = re.compile(r"(?P<folder>[^\s'\"<>():]*[/…])?(?P<name>[\w.-]+\.ipynb)\.py(?::(?P<line>\d+))?")


def by_cells(text: str) -> str:
    """A text for people: lines of such programs become cell and line of the notebook."""
    if ".ipynb.py" not in text:
        return text
    return _PLACE.sub(_by_cell, text.replace(f"{Path(HOME).absolute()}/", f"{HOME}/"))  # its path may have blanks


def _by_cell(found: re.Match[str]) -> str:
    file = _file(found["folder"] or "", found["name"])
    if file is None:  # the case is of another machine
        line = f" (line {found['line']} of its program)" if found["line"] else ""
        return f"{found['name']}{line}"
    name, cells, starts = _cells(file, file.stat().st_mtime)
    if found["line"] is None:
        return _from_here(file, name)
    number = bisect_right(starts, int(found["line"])) - 1
    return f"{name} cell {cells[number]} line {int(found['line']) - starts[number] + 1}" if number >= 0 else found[0]


def _from_here(file: Path, name: str) -> str:
    """The notebook as somebody here would type it; its name alone where it is elsewhere."""
    with file.open(encoding="utf-8") as lines:
        folder = next((line for line in lines if line.startswith("os.chdir(")), "os.chdir('')")
    place = Path(ast.literal_eval(folder.strip()[len("os.chdir(") : -1]))
    return str(place.relative_to(Path.cwd()) / name) if place.is_relative_to(Path.cwd()) else name


def _file(folder: str, name: str) -> Path | None:
    """The program that is meant; where the path was cut short, the newest of that name."""
    programs = Path(HOME).absolute() / "notebooks"
    key = Path(folder).name
    if (programs / key / f"{name}.py").is_file() and key:
        return programs / key / f"{name}.py"
    return max(programs.glob(f"*/{name}.py"), key=lambda path: path.stat().st_mtime, default=None)


@functools.lru_cache(8)
def _cells(file: Path, changed: float) -> tuple[str, list[int], list[int]]:
    """The notebook's name, its cells, and their first lines in the program."""
    rows = file.read_text(encoding="utf-8").split("\n")
    marks = [
        (int(row[len(MARK) :]), number + 1)
        for number, row in enumerate(rows, start=1)
        if row.startswith(MARK) and row[len(MARK) :].isdigit()
    ]
    return rows[0].removeprefix(NAME), [cell for cell, _ in marks], [start for _, start in marks]


def edited(path: str, text: str) -> bytes:
    """The notebook's file with what was edited in its program. Other cells, outputs and metadata stay as they are."""
    notebook = Path(path).resolve()
    content = notebook.read_bytes()
    book = read(content, _statement)
    return to_bytes(book, text, content, _begin(notebook, book))
