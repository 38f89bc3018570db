"""What the names of a file mean by its imports: `tf.keras.Model` → `keras.Model`."""

from __future__ import annotations

import ast
import re

from flatout.source.api_names import KNOWN_PACKAGES, canonical

_FROM = re.compile(r"^[ \t]*from[ \t]+(\.*[\w.]*)[ \t]+import[ \t]+\(?[ \t]*([\w, \t]*)", re.MULTILINE)
_IMPORT = re.compile(r"^[ \t]*import[ \t]+([\w., \t]+)", re.MULTILINE)
_NOT_OWN = ("tensorflow", "keras", "numpy", "matplotlib", "os", "sys", "sklearn", "pandas", "__future__", "typing")
_PASSED_ON = {"tf": "tensorflow"}
"""`from .common import tf`, `from common import *`: a module of the project hands on what it imported."""


class Names:
    """The imports of a file, including those inside functions, and aliases of imported names."""

    def __init__(self) -> None:
        self._raw: dict[str, str] = {}
        self._stars: list[str] = []
        self.modules: set[str] = set()
        """Names that mean whole modules: `import model`, `import project.model as model`, `from . import model`."""
        self._handed_on = False
        """Whether a module of the project may have handed on TensorFlow under its usual name."""

    def add_import(self, node: ast.Import | ast.ImportFrom) -> None:
        if isinstance(node, ast.Import):
            for item in node.names:
                name = item.asname or item.name.split(".")[0]
                self._raw.setdefault(name, item.name if item.asname else name)
                self.modules.add(name)
            return
        package = "." * node.level + (node.module or "")
        for item in node.names:
            if item.name == "*":
                if package.split(".")[0] in KNOWN_PACKAGES:
                    self._stars.append(package)
                else:
                    self._handed_on = True
            elif item.name in _PASSED_ON and package.split(".")[0] not in KNOWN_PACKAGES:
                self._raw.setdefault(item.asname or item.name, _PASSED_ON[item.name])
            else:
                self._raw.setdefault(item.asname or item.name, f"{package}.{item.name}")
                if not package.strip("."):
                    self.modules.add(item.asname or item.name)

    def add_alias(self, name: str, value: ast.expr) -> None:
        """`AUTOTUNE = tf.data.AUTOTUNE`, `layers = tf.keras.layers`, also `tf = tf.compat.v1`."""
        raw = self.raw(value)
        known = self._raw.get(name)
        if raw and not raw.startswith(".") and (known is None or raw.startswith(f"{known}.")):
            self._raw[name] = raw

    def raw(self, node: ast.AST) -> str:
        """The dotted name as imported; empty if no import reaches it."""
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
            if not self._handed_on or not parts or node.id not in _PASSED_ON:
                return ""
            root = _PASSED_ON[node.id]
        parts.append(root)
        return ".".join(reversed(parts))

    def dotted(self, node: ast.AST) -> str:
        """As `raw`, by its canonical name."""
        raw = self.raw(node)
        return canonical(raw) if raw else ""

    def imports_any(self, *packages: str) -> bool:
        if self._handed_on and any(name not in self._raw and full in packages for name, full in _PASSED_ON.items()):
            return True
        return any(raw.split(".")[0] in packages for raw in (*self._raw.values(), *self._stars))

    def imports_beyond(self, packages: tuple[str, ...], allowed: tuple[str, ...]) -> bool:
        """Whether it imports one of the packages, other than by the modules that are allowed."""
        return any(
            raw.split(".")[0] in packages and not any(raw == name or raw.startswith(f"{name}.") for name in allowed)
            for raw in (*self._raw.values(), *self._stars)
        )

    def imports_from(self, *modules: str) -> bool:
        """Whether it imports one of these modules, or something of them."""
        return any(
            raw == name or raw.startswith(f"{name}.") for name in modules for raw in (*self._raw.values(), *self._stars)
        )

    def only_of(self, packages: frozenset[str]) -> bool:
        """Whether all that it imports comes from these packages: nothing of its own project."""
        return all(raw.split(".")[0] in packages for raw in (*self._raw.values(), *self._stars))

    @property
    def has_separate_keras(self) -> bool:
        """`import keras`, and not that of TensorFlow."""
        return any(raw.split(".")[0] == "keras" for raw in (*self._raw.values(), *self._stars))

    @property
    def of_version_one(self) -> bool:
        """`import tensorflow.compat.v1 as tf`"""
        return any(raw.startswith("tensorflow.compat.v1") for raw in self._raw.values())


def imported_modules(text: str) -> list[str]:
    """`from .layers import conv` → .layers, .layers.conv; without packages that everybody has."""
    found = []
    for match in _FROM.finditer(text):
        package = match[1]
        if package.split(".")[0] not in _NOT_OWN:
            names = [part.split(" as ")[0].strip() for part in match[2].split(",")]
            joint = "" if package.endswith(".") else "."
            found += [package, *(f"{package}{joint}{name}" for name in names if name)]
    for match in _IMPORT.finditer(text):
        names = [part.split(" as ")[0].strip() for part in match[1].split(",")]
        found += [name for name in names if name and name.split(".")[0] not in _NOT_OWN]
    return sorted(set(found))
