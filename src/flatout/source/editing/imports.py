"""The imports of a file: how it writes names of TensorFlow and Keras, and where to add an import."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst
from libcst.helpers import get_full_name_for_node

from flatout.source.api_names import canonical_public
from flatout.source.editing import statements
from flatout.source.editing.document import FUNCTIONS, Document

IMPORTS = (cst.Import, cst.ImportFrom)


@dataclass(frozen=True)
class Binding:
    """`import tensorflow as tf` binds `tf` to `tensorflow`."""

    name: str
    stands_for: str
    node: cst.CSTNode


def bindings(document: Document, at: cst.CSTNode | None = None) -> Iterator[Binding]:
    """Imports that are visible at a node: those of the module and of the functions around it."""
    around = list(document.around(at)) if at is not None else []
    for node in document.all(*IMPORTS):
        function = document.nearest(node, *FUNCTIONS, cst.ClassDef)
        if function is None or function in around:
            yield from _bound(node)


def _bound(node: cst.CSTNode) -> Iterator[Binding]:
    if not isinstance(node, IMPORTS) or isinstance(node.names, cst.ImportStar):
        return
    package = ""
    if isinstance(node, cst.ImportFrom):
        if node.relative or node.module is None:
            return
        package = (get_full_name_for_node(node.module) or "") + "."
    for alias in node.names:
        dotted = get_full_name_for_node(alias.name) or ""
        if alias.asname is not None:
            yield Binding(get_full_name_for_node(alias.asname.name) or "", package + dotted, node)
        elif package:
            yield Binding(dotted, package + dotted, node)
        else:
            yield Binding(dotted.split(".")[0], dotted.split(".")[0], node)


def spell(document: Document, wanted: str, at: cst.CSTNode | None = None) -> str:
    """How this file would write a name such as `tensorflow.function` or `keras.mixed_precision.set_global_policy`.

    If no import of the file reaches it, one is added.
    """
    seen = list(bindings(document, at))
    package = wanted.split(".")[0]
    best = ""
    for binding in seen:
        known = canonical_public(binding.stands_for)
        if known == wanted or wanted.startswith(known + "."):
            written = binding.name + wanted[len(known) :]
            if not best or len(written) < len(best):
                best = written
    if best:
        return best
    if package == "keras":
        raw = {b.stands_for.split(".")[0] for b in seen if canonical_public(b.stands_for).split(".")[0] == "keras"}
        if not raw or (raw == {"tensorflow"} and _calls(document, seen, "tensorflow")):
            whole = _calls(document, seen, "tensorflow")
            if whole:
                return f"{whole}.{wanted}"
        line = {"tensorflow": "from tensorflow import keras", "tf_keras": "import tf_keras as keras"}.get(
            next(iter(raw), "keras"), "import keras"
        )
        add_import(document, line)
        return wanted
    taken = {node.value for node in document.all(cst.Name)}
    if "tf" in taken:
        add_import(document, "import tensorflow")
        return wanted
    add_import(document, "import tensorflow as tf")
    return "tf" + wanted.removeprefix("tensorflow")


def _calls(document: Document, seen: Sequence[Binding], package: str) -> str:
    return next((b.name for b in seen if canonical_public(b.stands_for) == package), "")


def add_import(document: Document, line: str) -> None:
    """Add an import below the last import at the top of the file, or below the docstring."""
    if line in document.imported:
        return
    document.imported.add(line)
    last = last_import(document)
    if last is not None:
        statements.after(document, last, line)
        return
    head = _head(document)
    body = document.tree.body
    if head:
        statements.after(document, body[len(head) - 1], "", line)
    elif body:
        statements.before(document, body[0], line, "")
    else:
        document.insert(len(document.source), line + document.newline)


def add_stdlib_import(document: Document, module: str) -> None:
    """`import os` among the imports of the standard library, in alphabetical order; above those of other packages."""
    line = f"import {module}"
    foreign = first_foreign_import(document)
    body = document.tree.body
    above = body[: body.index(foreign)] if foreign is not None else body
    own = [statement for statement in above if (found := imported_packages(statement)) and "__future__" not in found]
    later = next((statement for statement in own if _belongs_below(statement, module)), None)
    if later is not None:
        statements.before(document, later, line)
    elif own:
        statements.after(document, own[-1], line)
    elif foreign is not None:
        statements.before(document, foreign, line, "")
    else:
        add_import(document, line)


def spell_stdlib(document: Document, module: str, name: str) -> str:
    """How this file would write `functools.cache`; the module is imported where no import reaches it."""
    seen = list(bindings(document))
    for binding in seen:
        if binding.stands_for == f"{module}.{name}":
            return binding.name
    for binding in seen:
        if binding.stands_for == module:
            return f"{binding.name}.{name}"
    add_stdlib_import(document, module)
    return f"{module}.{name}"


def _belongs_below(statement: cst.CSTNode, module: str) -> bool:
    """Whether an import comes behind `import module`: every `from …` does, and modules later in the alphabet."""
    is_from = isinstance(statement, cst.SimpleStatementLine) and isinstance(statement.body[0], cst.ImportFrom)
    return is_from or imported_packages(statement)[0] > module


def last_import(document: Document) -> cst.CSTNode | None:
    """The last import of the module before its first definition; an import inside `try` or `if` counts as a whole."""
    last = None
    for statement in document.tree.body:
        if isinstance(statement, (cst.FunctionDef, cst.ClassDef)) and last is not None:
            break
        if imported_packages(statement):
            last = statement
    return last


def first_foreign_import(document: Document) -> cst.SimpleStatementLine | cst.BaseCompoundStatement | None:
    """The first import of something outside the standard library."""
    for statement in document.tree.body:
        if any(root not in sys.stdlib_module_names for root in imported_packages(statement)):
            return statement
    return None


def imported_packages(statement: cst.CSTNode) -> list[str]:
    """Packages that a statement of the module imports, `try` and `if` included, functions and classes not."""
    if isinstance(statement, cst.SimpleStatementLine):
        return [root for small in statement.body for root in _roots(small)]
    if isinstance(statement, (cst.If, cst.Try)) and isinstance(statement.body, cst.IndentedBlock):
        return [root for inner in statement.body.body for root in imported_packages(inner)]
    return []


def _roots(small: cst.CSTNode) -> list[str]:
    if isinstance(small, cst.ImportFrom):
        return [
            (get_full_name_for_node(small.module) or "").split(".")[0] if small.module and not small.relative else "."
        ]
    if isinstance(small, cst.Import):
        return [(get_full_name_for_node(alias.name) or "").split(".")[0] for alias in small.names]
    return []


def _head(document: Document) -> list[cst.CSTNode]:
    """The docstring, if there is one."""
    body = document.tree.body
    if body and isinstance(body[0], cst.SimpleStatementLine):
        first = body[0].body[0]
        if isinstance(first, cst.Expr) and isinstance(first.value, (cst.SimpleString, cst.ConcatenatedString)):
            return [body[0]]
    return []


def autotune(document: Document, at: cst.CSTNode | None = None) -> str:
    """`tf.data.AUTOTUNE`, or the module's own name for it."""
    for statement in document.tree.body:
        if isinstance(statement, cst.SimpleStatementLine) and isinstance(statement.body[0], cst.Assign):
            assign = statement.body[0]
            target = assign.targets[0].target
            if isinstance(target, cst.Name) and document.dotted(assign.value).endswith(".AUTOTUNE"):
                return target.value
    return spell(document, "tensorflow.data.AUTOTUNE", at)
