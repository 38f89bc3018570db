"""What the names of a file stand for, by its imports: `tf.keras.Model` → `keras.Model`."""

from __future__ import annotations

import ast

_SAME = (
    ("tensorflow.compat.v2", "tensorflow"),
    ("tensorflow.compat.v1", "tensorflow"),
    ("tensorflow._api.v2", "tensorflow"),
    ("tensorflow.python.keras", "keras"),
    ("tensorflow.python.eager.def_function", "tensorflow"),
    ("tensorflow.python.eager.backprop", "tensorflow"),
    ("tensorflow.python.data.ops.dataset_ops.DatasetV2", "tensorflow.data.Dataset"),
    ("tensorflow.python.data.ops.dataset_ops", "tensorflow.data"),
    ("tensorflow.keras", "keras"),
    ("keras.api", "keras"),
    ("keras.src", "keras"),
    ("tf_keras", "keras"),
    ("tf_slim", "tensorflow.contrib.slim"),
)
"""Packages that hold the same names."""
OURS = ("tensorflow", "keras", "tf_keras", "tensorflow_datasets", "tf_slim")


def common(dotted: str) -> str:
    for package, same in _SAME:
        if dotted.startswith(package) and (len(dotted) == len(package) or dotted[len(package)] == "."):
            dotted = same + dotted[len(package) :]
    return dotted


class Names:
    """The imports of a file, those inside functions included, and plain aliases of what was imported."""

    def __init__(self) -> None:
        self._raw: dict[str, str] = {}
        self._stars: list[str] = []

    def add_import(self, node: ast.Import | ast.ImportFrom) -> None:
        if isinstance(node, ast.Import):
            for item in node.names:
                name = item.asname or item.name.split(".")[0]
                self._raw.setdefault(name, item.name if item.asname else name)
            return
        package = "." * node.level + (node.module or "")
        for item in node.names:
            if item.name == "*":
                if package.split(".")[0] in OURS:
                    self._stars.append(package)
            else:
                self._raw.setdefault(item.asname or item.name, f"{package}.{item.name}")

    def add_alias(self, name: str, value: ast.expr) -> None:
        """`AUTOTUNE = tf.data.AUTOTUNE`, `layers = tf.keras.layers`, also `tf = tf.compat.v1`."""
        raw = self.raw(value)
        known = self._raw.get(name)
        if raw and not raw.startswith(".") and (known is None or raw.startswith(f"{known}.")):
            self._raw[name] = raw

    def raw(self, node: ast.AST) -> str:
        """The dotted name as imported; empty for what no import reaches."""
        parts: list[str] = []
        while type(node) is ast.Attribute:
            parts.append(node.attr)
            node = node.value
        if type(node) is not ast.Name:
            return ""
        root = self._raw.get(node.id)
        if root is None:
            if not parts and self._stars and node.id[:1].isupper():
                return f"{self._stars[0]}.{node.id}"
            return ""
        parts.append(root)
        return ".".join(reversed(parts))

    def dotted(self, node: ast.AST) -> str:
        """As `raw`, under the name that all packages with the same contents share."""
        raw = self.raw(node)
        return common(raw) if raw else ""

    def imports_any(self, *packages: str) -> bool:
        return any(raw.split(".")[0] in packages for raw in (*self._raw.values(), *self._stars))

    @property
    def of_version_one(self) -> bool:
        """`import tensorflow.compat.v1 as tf`"""
        return any(raw.startswith("tensorflow.compat.v1") for raw in self._raw.values())


def last_name(node: ast.AST) -> str:
    """`b` of `a.b` and of `b`."""
    if type(node) is ast.Attribute:
        return node.attr
    return node.id if type(node) is ast.Name else ""
