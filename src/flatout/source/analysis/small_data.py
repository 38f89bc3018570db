"""Whether all the data of a program are a few numbers that its text shows: what it computes takes seconds anyway."""

from __future__ import annotations

import ast
import re
import sys

from flatout.source.analysis import loops
from flatout.source.analysis.scopes import Module, Site
from flatout.source.analysis.syntax import last_name

_FEW = 1000
"""Rows, or numbers of one array, that a program may draw or write out."""
_LOADS = re.compile(
    r"^(load|read|open|fetch|glob|walk|scandir|listdir|list_files|get_file|imread|genfromtxt|flow)(_|$)|^load[A-Z]|^read[A-Z]|"
    r"_from_directory$|from_generator$|^(TFRecord|TextLine|FixedLengthRecord)Dataset$|csv|^(make|make_env|Env|VideoCapture|File|"
    r"memmap|loadtxt|loadmat|urlretrieve|urlopen|iglob|parse_args|rglob|input|Image|connect|download)$|"
    r"_(data|dataset|images|batch|env)$"
)
"""Functions by which a program gets data, or may get them."""
_SMALL = re.compile(
    r"\bload_(iris|wine|diabetes|breast_cancer|boston|linnerud)\b|\bboston_housing(_\w+)?\b|\bauto-mpg\b|\biris(_training|_test)?\.(csv|data)\b|"
    r"\bairline-passengers\b|\bpima-indians\b|\bfetch_california_housing\b|\bcalifornia_housing\b|\bheart\.csv\b|\btitanic\b"
)
"""Data sets of some hundred or thousand rows, which every course has."""
_DRAWS = (
    "numpy.random.",
    "numpy.linspace",
    "numpy.arange",
    "tensorflow.random.",
    "tensorflow.linspace",
    "tensorflow.range",
    "sklearn.datasets.make_",
)
_HOLDS = (
    "numpy.array",
    "numpy.asarray",
    "tensorflow.constant",
    "tensorflow.data.Dataset.from_tensor_slices",
)
KNOWN = frozenset(
    {
        *("tensorflow", "keras", "tf_keras", "tensorflow_probability", "tensorflow_addons", "tensorboard"),
        *("numpy", "scipy", "pandas", "sklearn", "matplotlib", "mpl_toolkits", "pylab", "seaborn", "plotly", "PIL"),
        *("tqdm", "IPython", "six", "absl", *sys.stdlib_module_names),
    }
)
"""Packages that are not of the user's own project."""


def has_small_data(module: Module) -> bool:
    """Whether the text draws or writes out all data that its program works on, or names one of the small data sets.

    A module that imports others of its project, or has neither data nor a way to get any, may be given more."""
    known = module.__dict__.get("_small_data")
    if known is None:
        known = module.__dict__["_small_data"] = _is_small(module)
    return known


def _is_small(module: Module) -> bool:
    if _SMALL.search(module.text):
        return not any(_gets_large(name) for name in module.calls_by_name)
    if not module.names.only_of(KNOWN):
        return False
    if any(_LOADS.search(name) and name not in module.functions for name in module.calls_by_name):
        return False
    found = False
    for scope in module.everything():
        for binds in scope.facts.binds.values():
            for bind in binds:
                small = _is_few(bind.value, bind.site) if bind.value is not None else None
                if small is False:
                    return False
                found = found or (small is True and not scope.is_function)
    return found


def _gets_large(name: str) -> bool:
    return (
        re.search(r"_from_directory$|^(TFRecord|TextLine)Dataset$|from_generator$|^(glob|imread|listdir)$", name)
        is not None
    )


def _is_few(value: ast.expr, site: Site) -> bool | None:
    """Whether a value is a small array of numbers or words that it shows; None where it is no such array."""
    while isinstance(value, (ast.BinOp, ast.Subscript)):
        if isinstance(value, ast.Subscript):
            value = value.value
        else:
            value = value.right if isinstance(value.left, ast.Constant) else value.left
    if isinstance(value, (ast.List, ast.Tuple)):
        return True if len(value.elts) > 1 and _written_out(value) else None
    if not isinstance(value, ast.Call):
        return None
    made = site.dotted(value.func)
    if made == "tensorflow.Variable":
        return None  # a weight
    if made.startswith(_DRAWS):
        sizes = [loops.number(node, site) for node in _sizes(value)]
        return None if not sizes else all(size is not None and size <= _FEW for size in sizes)
    if made.startswith(_HOLDS) and value.args:
        return _is_few(value.args[0], site)
    if isinstance(value.func, ast.Attribute) and last_name(value.func) in ("astype", "reshape"):
        return _is_few(value.func.value, site)
    inner = value.args[0] if made.startswith(("numpy.", "tensorflow.")) and value.args else None
    return _is_few(inner, site) if isinstance(inner, (ast.Call, ast.BinOp)) else None


def _sizes(call: ast.Call) -> list[ast.expr]:
    """What tells how many numbers are drawn: whole arguments, and the parts of a shape."""
    found: list[ast.expr] = []
    for node in [
        *call.args,
        *(item.value for item in call.keywords if item.arg in ("size", "shape", "n_samples", "num")),
    ]:
        parts = node.elts if isinstance(node, (ast.List, ast.Tuple)) else [node]
        found += [part for part in parts if not (isinstance(part, ast.Constant) and isinstance(part.value, float))]
    # `labels.shape` is that of another array, which is looked at itself.
    return [part for part in found if not isinstance(part, ast.UnaryOp) and last_name(part) != "shape"]


def _written_out(value: ast.List | ast.Tuple) -> bool:
    for item in value.elts:
        if isinstance(item, (ast.List, ast.Tuple)):
            if not _written_out(item):
                return False
        elif not isinstance(item, (ast.Constant, ast.UnaryOp)):
            return False
    return True
