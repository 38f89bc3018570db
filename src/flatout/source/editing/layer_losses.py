"""Whether a program reads the losses that layers add (`model.losses`). A traced call leaves them behind in its graph.

`tf.keras.losses` is a module, and `self.losses`, a list that an agent keeps, is its own: Keras lets no layer or model
set an attribute of that name.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from flatout.source.editing.dataflow import called_name
from flatout.source.editing.graph_fit import fit_of


def are_read(text: str) -> bool:
    if ".losses" not in text and "get_losses_for" not in text:
        return False
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return True
    fit = fit_of(module)
    keepers = dict(_keepers(module))
    own = {id(node) for found in keepers.values() for node in found}
    objects = {
        name
        for name, values in fit.bound.items()
        if values and all(isinstance(value, ast.Call) and called_name(value.func) in keepers for value in values)
    }
    for node in ast.walk(module):
        if isinstance(node, ast.Attribute) and node.attr == "get_losses_for":
            return True
        if not isinstance(node, ast.Attribute) or node.attr != "losses" or id(node) in own or fit.dotted(node):
            continue
        if not (isinstance(node.value, ast.Name) and node.value.id in objects):
            return True
    return False


def _keepers(module: ast.Module) -> Iterator[tuple[str, list[ast.Attribute]]]:
    """The classes that set `self.losses`, with all uses of it in their methods."""
    for holder in (node for node in ast.walk(module) if isinstance(node, ast.ClassDef)):
        found = [
            node
            for node in ast.walk(holder)
            if isinstance(node, ast.Attribute) and node.attr == "losses" and ast.unparse(node.value) == "self"
        ]
        if any(isinstance(node.ctx, ast.Store) for node in found):
            yield holder.name, found
