"""Where the source trains or predicts, and which of these places a run has not come to yet."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass

TRAINS = frozenset({"fit", "fit_generator", "train_on_batch"})
PREDICTS = frozenset({"predict", "predict_on_batch"})
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LOOPS = (ast.For, ast.AsyncFor, ast.While)


@dataclass(frozen=True)
class TrainingSite:
    file: str
    first: int
    last: int
    trains: bool
    """A training step, or a loop of them; otherwise a prediction that is made again and again."""

    def is_seen(self, lines: Set[int]) -> bool:
        return any(self.first <= line <= self.last for line in lines)


def unseen(texts: Mapping[str, str], seen: Mapping[str, Set[int]]) -> list[TrainingSite]:
    """Sites in these files (text by path) none of whose lines is among those that a run was seen to come to."""
    words: dict[str, int] = {}
    for text in texts.values():
        for word in re.findall(r"\w+", text):
            words[word] = words.get(word, 0) + 1
    return [
        site
        for file, text in texts.items()
        for site in _sites(file, text, words)
        if not site.is_seen(seen.get(file, frozenset()))
    ]


def _sites(file: str, text: str, words: Mapping[str, int]) -> Iterator[TrainingSite]:
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    yield from _inside(file, module, None, words)


def _inside(file: str, node: ast.AST, unit: ast.stmt | None, words: Mapping[str, int]) -> Iterator[TrainingSite]:
    """`unit`: the function or the outermost loop around, whose lines stand for those of a gradient tape."""
    for child in ast.iter_child_nodes(node):
        inner = unit
        if isinstance(child, FUNCTIONS):
            if words.get(child.name, 0) < 2 and not child.name.startswith("__"):
                continue  # nothing calls it
            inner = child
        elif isinstance(child, LOOPS) and unit is None:
            inner = child
        elif isinstance(child, ast.Call):
            site = _call(file, child, inner)
            if site is not None:
                yield site
        yield from _inside(file, child, inner, words)


def _call(file: str, call: ast.Call, unit: ast.stmt | None) -> TrainingSite | None:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name == "GradientTape":
        whole = unit or call
        first = min((item.lineno for item in getattr(whole, "decorator_list", ())), default=whole.lineno)
        return TrainingSite(file, first, whole.end_lineno or whole.lineno, trains=True)
    method = isinstance(call.func, ast.Attribute)
    if method and name in TRAINS:
        return TrainingSite(file, call.lineno, call.end_lineno or call.lineno, trains=True)
    if method and name in PREDICTS and unit is not None:
        return TrainingSite(file, call.lineno, call.end_lineno or call.lineno, trains=False)
    return None
