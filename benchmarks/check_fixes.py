"""All edits of `flatout check --fix --unsafe-fixes` on public files: do they parse, and do programs behave as before?

    python benchmarks/check_fixes.py parse FOLDER...                 # every edit of every file, and whether it parses
    python benchmarks/check_fixes.py run FOLDER... [--programs 60]   # programs before and after, on real TensorFlow

`run` takes edited files in random order, with a fixed seed. TensorFlow is imported once; each program runs in a
process of its own that is forked from there, with stubs for data, files and missing packages, for some seconds, behind
the fence of flatout's own trials: it can write nothing but a temporary folder, and has no network. A
program counts if it reaches an edited line. Its error and its text output (numbers within 2 %) must be the same after
the edits, as far as both got.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import json
import multiprocessing
import os
import random
import re
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from flatout.process.fence.means import NOTHING, Fence, decide

SECONDS = 12
_NUMBER = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?|-?\d+e[-+]?\d+")
_PLACE = re.compile(r"0x[0-9a-f]+|line \d+|/tmp/\S+|\d+(\.\d+)? ?m?s(/step)?\b|\d\d:\d\d(:\d\d)?")


@dataclass
class Edited:
    path: str
    before: str
    after: str
    names: tuple[str, ...]
    safe: bool
    parses: bool


def edited_files(folders: list[str], unsafe: bool, counts: Counter[str]) -> Iterator[Edited]:
    from flatout.check.checker import Checker
    from flatout.check.selection import select
    from flatout.check.text_repair import fix
    from flatout.source.notebooks.text import NotANotebook, read

    checker = Checker(select(["all"]))
    for path in _files(folders):
        counts["files"] += 1
        content = Path(path).read_bytes()
        try:
            made = fix(content, path, checker, lambda item: item.repair is not None and (unsafe or item.repair.safe))
        except (SyntaxError, RecursionError, ValueError):
            continue
        if made.content == content:
            continue
        try:
            texts = [
                read(part).text if path.endswith(".ipynb") else part.decode("utf-8", "replace")
                for part in (content, made.content)
            ]
        except NotANotebook:
            counts["notebooks that do not read"] += 1
            continue
        safe = all(item.repair is not None and item.repair.safe for item in made.applied)
        names = tuple(sorted({item.full_name for item in made.applied}))
        yield Edited(path, texts[0], texts[1], names, safe, _parses(texts[1]))


def _files(folders: list[str]) -> Iterator[str]:
    for folder in folders:
        if os.path.isfile(folder):
            yield folder
        for root, _, names in sorted(os.walk(folder)):
            for name in sorted(names):
                if name.endswith((".py", ".ipynb")):
                    yield os.path.join(root, name)


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True


def parse(folders: list[str]) -> None:
    """All edits of all files, and the safe ones alone of files that have both kinds."""
    counts: Counter[str] = Counter()
    patterns: Counter[str] = Counter()
    broken = []
    for item in edited_files(folders, True, counts):
        counts["edited"] += 1
        patterns.update(item.names)
        versions = [item]
        if not item.safe:
            versions += edited_files([item.path], False, Counter())
        counts["with safe edits"] += any(version.safe for version in versions)
        broken += [version.path for version in versions if not version.parses]
    print("| files | edited | of them with safe edits | do not parse after it |")
    print("|---|---|---|---|")
    print(f"| {counts['files']} | {counts['edited']} | {counts['with safe edits']} | {len(broken)} |")
    print(*(f"{path} does not parse" for path in broken), sep="\n")
    for name, count in patterns.most_common():
        print(f"| {name} | {count} files |")


def run(folders: list[str], programs: int, seed: int) -> None:
    counts: Counter[str] = Counter()
    items = [item for item in edited_files(folders, True, counts) if item.path.endswith(".py") and item.parses]
    random.Random(seed).shuffle(items)
    import tensorflow as tf  # noqa: F401  before the first fork: the children share it

    fence = decide(NOTHING)
    rows = []
    for item in items:
        if len(rows) >= programs:
            break
        first = _outcome(item, item.before, fence)
        if not first or not first["reached"]:
            counts["edited line not reached"] += 1
            continue
        second = _outcome(item, item.after, fence)
        if not second or not _comparable(first, second):
            counts["printed nothing in time"] += 1
            continue
        differs = _difference(first, second)
        rows.append((item, differs))
        print(
            f"| {'safe' if item.safe else 'unsafe'} | {', '.join(item.names)} | {differs or 'same'} | {item.path} |",
            flush=True,
        )
    for safe in (True, False):
        mine = [differs for item, differs in rows if item.safe is safe]
        kind = "safe" if safe else "unsafe"
        print(f"\n{kind}: {len(mine)} programs, {sum(bool(differs) for differs in mine)} behave otherwise")
    print(f"{counts['edited line not reached']} more did not reach an edited line")
    print(f"{counts['printed nothing in time']} more printed nothing to compare in {SECONDS} s")


def _comparable(first: dict[str, object], second: dict[str, object]) -> bool:
    """Whether both came to an end, or have printed something by then."""
    return all(item["error"] != "timeout" or item["lines"] for item in (first, second))


def _difference(first: dict[str, object], second: dict[str, object]) -> str:
    if first["error"] != second["error"] and "timeout" not in (first["error"], second["error"]):
        return f"error: {first['error']} / {second['error']}"[:160]
    left, right = first["lines"], second["lines"]
    assert isinstance(left, list)
    assert isinstance(right, list)
    if "timeout" in (first["error"], second["error"]):
        both = min(len(left), len(right))
        left, right = left[:both], right[:both]
    for one, other in zip(left, right, strict=False):
        if one != other and not _close(one, other):
            return f"output: {one[:60]!r} / {other[:60]!r}"
    return "" if len(left) == len(right) else f"output: {len(left)} / {len(right)} lines"


def _close(one: str, other: str) -> bool:
    """Whether two lines differ in nothing but the last digits of their numbers."""
    if _NUMBER.sub("#", one) != _NUMBER.sub("#", other):
        return False
    pairs = zip(_NUMBER.findall(one), _NUMBER.findall(other), strict=True)
    return all(abs(float(a) - float(b)) <= 2e-2 * max(abs(float(a)), abs(float(b)), 1e-2) for a, b in pairs)


def _outcome(item: Edited, text: str, fence: Fence) -> dict[str, object] | None:
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder, "outcome.json")
        child = multiprocessing.get_context("fork").Process(
            target=_child, args=(item, text, folder, str(result), fence)
        )
        child.start()
        child.join(SECONDS + 6)
        if child.is_alive():
            child.kill()
            child.join()
        try:
            found = json.loads(result.read_text())
        except (OSError, ValueError):
            return None
        assert isinstance(found, dict)
        return found


def _child(item: Edited, text: str, folder: str, result: str, fence: Fence) -> None:
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    from _fix_stubs import run_program

    from flatout.process.fence.main import put_up

    os.environ["TMPDIR"] = tempfile.tempdir = folder  # AutoGraph writes there
    put_up((folder,), fence.landlock, fence.mounts, fence.network, 0)
    edited = _edited_lines(item.before, item.after)
    run_program(text, item.path, folder, result, SECONDS, edited if text == item.before else frozenset())


def _edited_lines(before: str, after: str) -> frozenset[int]:
    """Lines of the text before that an edit changes, or that stand next to what it adds."""
    lines: set[int] = set()
    matcher = difflib.SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False)
    for tag, start, end, _, _ in matcher.get_opcodes():
        if tag != "equal":
            lines.update(range(start + 1, max(end, start + 2) + 1))
    return frozenset(lines)


def normalized(text: str) -> list[str]:
    return [_PLACE.sub("…", line).rstrip() for line in text.splitlines() if line.strip()]


def main() -> None:
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("parse", "run"))
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--programs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=33)
    given = parser.parse_args()
    if given.what == "parse":
        parse(given.folders)
    else:
        run(given.folders, given.programs, given.seed)


if __name__ == "__main__":
    main()
