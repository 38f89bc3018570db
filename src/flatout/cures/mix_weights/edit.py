"""`mix-weights`: copies and mixtures of weights become assignments in one traced function."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from flatout.cures._keras_call_edits import defines
from flatout.cures._trial_edit import sources
from flatout.cures.mix_weights import OFTEN
from flatout.model.case import Case
from flatout.model.evidence.steps import EagerLine
from flatout.source.editing import case_facts, imports, statements, tf_functions
from flatout.source.editing.document import Document, free, read
from flatout.source.editing.weight_mixing import Group, Mixing, groups, read_elsewhere
from flatout.source.editing.weight_names import Names

_SETS = ("set-weights", "assign")
_SAME = {"trainable_weights": "trainable_variables"}
_FREEZES = re.compile(r"\.trainable\s*=[^=]")
_SUBCLASS = re.compile(r"^\s*class \w+\([^)]*\bModel\b", re.MULTILINE)
_CATCHES = re.compile(r"\b(ValueError|Exception|BaseException)\b")
_BUILDS = re.compile(r"\bInput(Layer)?\(|\b(batch_)?input_(shape|dim)\b|\.build\(")


class _Kind(NamedTuple):
    """Copies that one function makes."""

    attribute: str
    """Of both models; empty where the function is given lists of variables."""
    mixed: bool
    changing: bool
    """Whether the share is another one each time: it is a tensor then, as each number of Python would be a trace. So is
    one of NumPy."""


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    lines = _lines(case, path, "get-weights", *_SETS)
    document = read(source) if lines else None
    if document is None:
        return None
    module = ast.parse(source)
    against, names = _Against(document, module, source, path, case), Names(module)
    found = [group for group in groups(module) if lines & set(group.lines)]
    chosen = [group for group in found if not against.reason(group)]
    if not chosen:
        return None
    written = _Functions(document, names, against.attributes)
    for group in chosen:
        start, end = document.offset(group.first.lineno), _end(document, group)
        indentation = document.indentation(start)
        rows = [f"{indentation}{written.call(mixing, group.first.lineno)}" for mixing in group.mixings]
        document.replace(start, end, document.newline.join(rows))
    first = min(group.first.lineno for group in chosen)
    outer = next(item for item in document.tree.body if first in document.lines(item))
    if not isinstance(outer, statements.WHOLE):
        return None
    statements.define(document, outer, *written.lines())
    return document.result()


def by_hand(source: str, path: str, case: Case) -> str | None:
    """Why the copies of this file stay as they are."""
    module, document = ast.parse(source), read(source)
    if document is None:
        return None
    found, against = groups(module), _Against(document, module, source, path, case)
    for line in sorted(_lines(case, path, *_SETS)):
        inside = next((group for group in found if line in group.lines), None)
        why = against.reason(inside) if inside is not None else _unknown(module, line)
        if why:
            return f"line {line} {why}"
    return None


def _unknown(module: ast.Module, line: int) -> str:
    name = read_elsewhere(module, line)
    if name:
        return f"copies weights by way of {name}, which other lines read as well"
    return (
        "sets weights to something else than those of another model, or a mixture of both whose shares add up to one: "
        "write one @tf.function that assigns all of them"
    )


def _lines(case: Case, path: str, *kinds: str) -> set[int]:
    return {
        item.where.line
        for item in case.evidence_of(EagerLine)
        if item.of in kinds and item.calls >= OFTEN
        if item.where is not None and item.where.line and case_facts.same_file(path, item.where.file)
    }


def _end(document: Document, group: Group) -> int:
    """Where its last statement ends; `ast` counts columns in bytes."""
    start = document.offset(group.lines[-1])
    row = document.source[start : document.line_end(start)].encode()
    return start + len(row[: group.last.end_col_offset].decode())


def _is_guarded(module: ast.Module, group: Group) -> bool:
    """Whether the program goes on where models do not fit each other: variables in pairs would be copied as far as
    there are some."""
    for node in ast.walk(module):
        if not isinstance(node, ast.Try) or not node.handlers:
            continue
        if not node.body[0].lineno <= group.first.lineno <= (node.body[-1].end_lineno or 0):
            continue
        caught = [handler.type for handler in node.handlers]
        if any(one is None or _CATCHES.search(ast.unparse(one)) for one in caught):
            return True
    return False


class _Attributes:
    """Through which attribute a function reaches the weights of both models. A graph keeps the weights that a model had
    when it was traced: none, if it had not been called yet."""

    def __init__(self, source: str, case: Case) -> None:
        texts = (source, *(text for _, text in sources(case)))
        self.freezes = any(map(_FREEZES.search, texts))
        sequential = any("Sequential(" in text for text in texts) and not any(map(_BUILDS.search, texts))
        self.late = sequential or any(map(_SUBCLASS.search, texts))

    def of(self, mixing: Mixing) -> str:
        """Empty where the function is given lists of variables."""
        target, source = (_SAME.get(one.attribute, one.attribute) for one in (mixing.target, mixing.source))
        changes = self.late or (self.freezes and target == "trainable_variables")
        return target if target == source and not changes else ""


class _Against:
    """Why copies have to stay as they are."""

    def __init__(self, document: Document, module: ast.Module, source: str, path: str, case: Case) -> None:
        self.document, self.names, self.attributes = document, Names(module), _Attributes(source, case)
        self.module = module
        self.own = defines(case, source, "def get_weights(")
        self.read = {
            item.where.line
            for item in case.evidence_of(EagerLine)
            if item.of == "get-weights" and item.where is not None and case_facts.same_file(path, item.where.file)
        }

    def reason(self, group: Group) -> str:
        """Its lines hold something else (`if x: …` in front, something behind a semicolon), the weights are those of an
        object with a `get_weights` of its own, or it is not known of a list that it holds variables."""
        start = self.document.offset(group.first.lineno)
        end = _end(self.document, group)
        behind = self.document.source[end : self.document.line_end(end)].strip()
        before = self.document.source[start : start + group.first.col_offset].strip()
        if before or (behind and not behind.startswith("#")):
            return "copies weights beside another statement of the same line"
        if self.own and any(one.source.read for one in group.mixings) and not self.read & set(group.lines):
            return "copies weights that a get_weights of the program's own gives"
        if _is_guarded(self.module, group):
            return "copies weights where an error of set_weights is caught"
        for mixing in group.mixings:
            for owner in (mixing.target.owner, mixing.source.owner):
                if self.names.is_made_anew(owner, group.first.lineno):
                    return f"copies weights of {owner}, which is made anew each time: each would be a trace of its own"
            for one in () if self.attributes.of(mixing) else (mixing.target, mixing.source):
                if not one.read and not self.names.are_variables(one.variables, group.first.lineno):
                    return (
                        f"assigns to or from {one.variables}, of which this file does not show that it holds variables"
                    )
        return ""


@dataclass
class _Functions:
    """The functions that are written, by what they do."""

    document: Document
    names: Names
    attributes: _Attributes

    def __post_init__(self) -> None:
        self.known: dict[_Kind, str] = {}
        self.traced = imports.spell(self.document, tf_functions.TRACED)

    def call(self, mixing: Mixing, line: int) -> str:
        target, source, share = mixing.target, mixing.source, mixing.share
        attribute = self.attributes.of(mixing)
        kind = _Kind(attribute, bool(share), self._is_tensor(share, line))
        if kind not in self.known:
            wanted, taken = "mix_weights" if share else "copy_weights", self.known.values()
            self.known[kind] = free(self.document, wanted if wanted not in taken else f"{wanted}_{len(taken) + 1}")
        if kind.changing:
            cast = imports.spell(self.document, "tensorflow.cast")
            share = f"{cast}({share}, {cast.removesuffix('cast')}float64)"
        given = (target.owner, source.owner) if attribute else (target.variables, source.variables)
        return f"{self.known[kind]}({', '.join(self._as_written(part) for part in (*given, share) if part)})"

    def _is_tensor(self, share: str, line: int) -> bool:
        """A scalar of NumPy is one to a graph: in doubles, which tf_keras' variables cannot be multiplied by."""
        return bool(share) and (self.names.change(share, line) or self.names.is_of_numpy(share, line))

    def _as_written(self, text: str) -> str:
        """With the quotes of the file."""
        other = text.replace("'", '"')
        return other if other in self.document.source else text

    def lines(self) -> Iterator[str]:
        """Two blank lines between them."""
        for number, (kind, name) in enumerate(self.known.items()):
            yield from ("", "")[: 2 * number]
            yield from self._of_models(kind, name) if kind.attribute else self._of_lists(kind, name)

    def _of_models(self, kind: _Kind, name: str) -> Iterator[str]:
        indent = self.document.indent
        yield f"@{self.traced}"
        yield f"def {name}(target, source{', share' if kind.mixed else ''}):"
        yield f"{indent}for old, new in zip(target.{kind.attribute}, source.{kind.attribute}):"
        yield f"{indent}{indent}old.assign({self._value(kind)})"

    def _of_lists(self, kind: _Kind, name: str) -> Iterator[str]:
        """A graph for each pair of lists: as arguments of a graph Keras' variables would be arrays."""
        indent, share = self.document.indent, "share" if kind.mixed else ""
        graphs = free(self.document, f"{name}_graphs")
        yield f"{graphs} = {{}}"
        yield from ("", "")
        yield f"def {name}(target, source{', share' if kind.mixed else ''}):"
        yield f"{indent}pairs = list(zip(target, source))"
        yield f"{indent}key = tuple((id(old), id(new)) for old, new in pairs)"
        yield f"{indent}if key not in {graphs}:"
        yield ""
        yield f"{indent}{indent}@{self.traced}"
        yield f"{indent}{indent}def graph({share}):"
        yield f"{indent}{indent}{indent}for old, new in pairs:"
        yield f"{indent}{indent}{indent}{indent}old.assign({self._value(kind)})"
        yield ""
        yield f"{indent}{indent}{graphs}[key] = graph"
        yield f"{indent}{graphs}[key]({share})"

    def _value(self, kind: _Kind) -> str:
        if kind.changing:
            cast = imports.spell(self.document, "tensorflow.cast")
            return f"{cast}(share, old.dtype) * new + {cast}(1 - share, old.dtype) * old"
        return "share * new + (1 - share) * old" if kind.mixed else "new"
