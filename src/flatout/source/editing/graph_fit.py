"""Whether statements can run inside of a `tf.function`: the first reason against it, with its line."""

from __future__ import annotations

import ast
import builtins
import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from flatout.source import side_effects
from flatout.source.editing import python_values
from flatout.source.editing.dataflow import FUNCTIONS, LOOPS, bound_in, called_name, definitions, names_in
from flatout.source.editing.receivers import Receivers

UPDATES = {"assign", "assign_add", "assign_sub", "apply_gradients", "apply", "update_state"}
"""Methods that end a step. A graph can run them too."""
VARIABLES = {"trainable_variables", "trainable_weights", "variables", "weights"}
_LIBRARIES = re.compile(r"(tensorflow\w*|tf_\w+|keras\w*)\.")
"""Packages of operations. What any other one does for its effect alone, it does in Python."""
_VALUES = re.compile(r"((tensorflow\.)?keras|tf_keras)\.backend\.(batch_)?[gs]et_value\b")
"""Functions of Keras that need values."""
_TO_PYTHON = {"numpy", "item", "tolist"}
_OF_PYTHON = {"float", "int", "bool", "str", "next", "iter", "format"}
_DRAWS = {
    *("sample", "get_next", "get_batch", "next_batch", "sample_batch", "draw", "choice", "choices", "shuffle"),
    *("permutation", "normal", "standard_normal", "uniform", "random", "randint", "rand", "randn", "integers", "read"),
}
"""Calls with a new result each time. A trace would freeze the first one."""
_HOST_METHODS = {
    *("render", "save", "save_weights", "flush", "log", "close", "add_scalar", "put", "send", "recv", "predict"),
    *("evaluate", "fit", "predict_on_batch", "train_on_batch", "on_batch_end", "on_train_batch_end", "get_weights"),
    *("set_weights", "as_default", "refresh", "record", "recall", "remember", "imshow", "savefig", "plot"),
}
"""Methods of Python objects with an effect on every call."""
_ENVIRONMENT = re.compile(r"_*(\w*_)?(env|environment|game|gym|simulator|world)s?$")
_QUIET = {"watch", "append", "extend", "insert", "gradient", "stop_recording", "reset", "minimize"}
"""Methods whose result may be unused in a graph: the tape's, and those of lists that the step makes itself."""
_NOT_IN_A_FUNCTION = (ast.Return, ast.Break, ast.Continue, ast.Import, ast.ImportFrom, ast.ClassDef, *FUNCTIONS)
_ARRAY_METHODS = {"astype", "copy", "append", "extend", "insert", "format", "items", "keys", "values", "get", "clear"}
_DATA_OPS = re.compile(r"tensorflow\.(random|constant|convert_to_tensor|errors|data|summary|print|io)\b")
_MAKES_VARIABLES = re.compile(
    r"(tensorflow|(tensorflow\.|tf_)?keras)\.(Variable|metrics\.[A-Z]\w*|optimizers\.(\w+\.)*[A-Z]\w*|"
    r"layers\.(\w*Dense|\w*Conv\w*|Embedding|LSTM|GRU|\w*Normalization))$"
)
_KNOWN_IN_A_TRACE = {"shape", "ndim", "dtype", "name", "rank"}
SHAPES_OF_NUMPY = ("numpy.shape", "numpy.ndim")
"""Functions that read what a trace knows of a tensor."""
_HOST_OPS = re.compile(r"tensorflow\.(summary|print|io|train|profiler)\b")
"""Operations of TensorFlow that belong behind the step, not into it."""


@dataclass(frozen=True)
class Obstacle:
    """What a graph cannot hold."""

    line: int
    what: str
    state: str = ""
    """The attribute that is in the way, because it changes from step to step."""

    @property
    def text(self) -> str:
        return f"line {self.line} {self.what}"


def fit_of(module: ast.Module) -> GraphFit:
    """Made once for a module, which is walked for it."""
    found = module.__dict__.get("_graph_fit")
    if not isinstance(found, GraphFit):
        found = module.__dict__["_graph_fit"] = GraphFit(module)
    return found


class GraphFit:
    """Judges statements of one module."""

    def __init__(self, module: ast.Module) -> None:
        self.module = module
        self.modules = side_effects.imported(module)
        self.definitions = definitions(module)

    @functools.cached_property
    def catches(self) -> bool:
        """Whether something in the file goes on, or cleans up, after an exception of more than an import."""
        tries = [node for node in ast.walk(self.module) if isinstance(node, ast.Try)]
        imports = (ast.Import, ast.ImportFrom)
        return any(not isinstance(statement, imports) for node in tries for statement in node.body)

    @functools.cached_property
    def bound(self) -> dict[str, list[ast.expr]]:
        """The expressions that each name of the file is bound to, a loop's by what it iterates."""
        found: dict[str, list[ast.expr]] = {}
        for node in ast.walk(self.module):
            if isinstance(node, ast.Assign):
                names, value = {name for target in node.targets for name in _stored(target)}, node.value
            elif isinstance(node, (ast.AugAssign, ast.AnnAssign)) and node.value is not None:
                names, value = _stored(node.target), node.value
            elif isinstance(node, ast.For):
                names, value = _stored(node.target), node.iter
            else:
                continue
            for name in names:
                found.setdefault(name, []).append(value)
        return found

    @functools.cached_property
    def calls(self) -> dict[str, list[ast.Call]]:
        """The calls of the file, by the name of what they call."""
        found: dict[str, list[ast.Call]] = {}
        for node in ast.walk(self.module):
            if isinstance(node, ast.Call):
                found.setdefault(called_name(node.func), []).append(node)
        return found

    @functools.cached_property
    def attributes(self) -> dict[str, list[ast.expr]]:
        """The expressions that attributes of each name are assigned, or changed by."""
        found: dict[str, list[ast.expr]] = {}
        for node in ast.walk(self.module):
            pairs: list[tuple[ast.expr, ast.expr]] = []
            if isinstance(node, ast.Assign):
                pairs = [(target, node.value) for target in node.targets]
            elif isinstance(node, (ast.AugAssign, ast.AnnAssign)) and node.value is not None:
                pairs = [(node.target, node.value)]
            for target, value in pairs:
                for part, item in _taken_apart(target, value):
                    if isinstance(part, ast.Attribute):
                        found.setdefault(part.attr, []).append(item)
        return found

    def obstacle(
        self, body: Sequence[ast.stmt], seen: frozenset[str] = frozenset(), fresh: frozenset[str] = frozenset()
    ) -> Obstacle | None:
        """The first thing in these statements, and in the functions of the file that they call.

        `seen`: functions around them; `fresh`: objects that statements before them have made.
        """
        effect = side_effects.reason_against_block(body, self.modules, fresh)
        if effect:
            match = re.match(r"line (\d+) (.*)", effect)
            return Obstacle(int(match.group(1)), match.group(2)) if match else Obstacle(body[0].lineno, effect)
        own = bound_in(body) | fresh
        computed = own - python_values.names(body, self.modules)
        inside = {id(inner) for loop in every(body) if isinstance(loop, LOOPS) for inner in ast.walk(loop)}
        for node in every(body):
            if isinstance(node, (ast.Break, ast.Continue)) and id(node) in inside:
                continue
            if isinstance(node, _NOT_IN_A_FUNCTION) and not (seen and isinstance(node, ast.Return)):
                return Obstacle(node.lineno, _KEYWORDS.get(type(node), "defines a function or a class"))
            found = self._call(node, own, seen) if isinstance(node, ast.Call) else None
            found = found or (self._raised(node, computed) if isinstance(node, (ast.If, ast.Assert)) else None)
            found = found or (self.unused_result(node, own) if isinstance(node, ast.Expr) and not seen else None)
            if found is not None:
                return found
        return None

    def _call(self, call: ast.Call, own: set[str], seen: frozenset[str]) -> Obstacle | None:
        name, dotted = called_name(call.func), self.dotted(call.func)
        text = ast.unparse(call.func)[:60]
        if isinstance(call.func, ast.Name) and name in _OF_PYTHON and not all(map(_is_constant, call.args)):
            return Obstacle(call.lineno, f"calls {name}")
        root = side_effects.root(call.func)
        method = isinstance(call.func, ast.Attribute) and not dotted
        if method and name in _TO_PYTHON:
            return Obstacle(call.lineno, f"calls {text}()")
        if method and name in _DRAWS and root not in own:
            return Obstacle(call.lineno, f"calls {text}, which gives something new each time")
        if dotted.startswith("numpy.") and not self._constant(call):
            return Obstacle(call.lineno, f"calls {text}")
        if _HOST_OPS.match(dotted) or _VALUES.match(dotted) or dotted.startswith("tensorflow.GradientTape."):
            return Obstacle(call.lineno, f"calls {text}")
        if _MAKES_VARIABLES.match(dotted):
            return Obstacle(call.lineno, f"calls {text}, whose variables only a first call may make")
        if method and (name in _HOST_METHODS or self.is_environment(call.func)):
            return Obstacle(call.lineno, f"calls {text}")
        if name in seen or len(seen) > 4:
            return None
        for function in self.called(call):
            found = self.obstacle(function.body, seen | {name})
            if found is not None:
                return found
        return None

    def _raised(self, node: ast.If | ast.Assert, own: set[str]) -> Obstacle | None:
        """`if tf.math.is_nan(loss): raise …`: a trace goes into both branches, and raises whatever the value is.
        `assert loss < 10` becomes an operation, which raises something else than an `AssertionError`."""
        branches = [node] if isinstance(node, ast.Assert) else [*node.body, *node.orelse]
        raised = next((inner for inner in every(branches) if isinstance(inner, (ast.Raise, ast.Assert))), None)
        if raised is None:
            return None
        static = {
            id(inner)
            for part in ast.walk(node.test)
            if (isinstance(part, ast.Attribute) and part.attr in _KNOWN_IN_A_TRACE)
            or (isinstance(part, ast.Compare) and all(isinstance(op, (ast.Is, ast.IsNot)) for op in part.ops))
            or (isinstance(part, ast.Call) and called_name(part) in ("isinstance", "hasattr", "len", "callable"))
            for inner in ast.walk(part)
        }
        asked = [inner for inner in ast.walk(node.test) if id(inner) not in static]
        computed = any(
            isinstance(inner, ast.Call) and self.dotted(inner.func).startswith("tensorflow.") for inner in asked
        )
        if computed or any(isinstance(inner, ast.Name) and inner.id in own for inner in asked):
            return Obstacle(raised.lineno, "raises by a value that the step computes")
        return None

    def unused_result(self, statement: ast.Expr, own: set[str]) -> Obstacle | None:
        """A call for its effect alone, other than an update, a metric or an op."""
        call = statement.value
        if not isinstance(call, ast.Call):
            return None
        dotted, name = self.dotted(call.func), called_name(call.func)
        if dotted and not _LIBRARIES.match(f"{dotted}.") and not self._passes_variables(call):
            return Obstacle(statement.lineno, f"calls {ast.unparse(call.func)[:60]}")
        if dotted:
            return None
        if name in UPDATES or name in _QUIET or self.definitions.get(name):
            return None
        if isinstance(call.func, ast.Attribute) and side_effects.root(call.func) in own:
            return None
        if isinstance(call.func, ast.Name) and (self.is_metric(name) or name in own):
            return None
        if isinstance(call.func, ast.Attribute) and self.is_metric(ast.unparse(call.func)):
            return None
        return Obstacle(statement.lineno, f"calls {ast.unparse(call.func)[:60]}")

    @staticmethod
    def _passes_variables(call: ast.Call) -> bool:
        """Whether a function elsewhere may be the update: `update(optimizer, gradients, model.trainable_variables)`."""
        attributes = (node.attr for node in ast.walk(call) if isinstance(node, ast.Attribute))
        return any(name in VARIABLES for name in attributes)

    def called(self, call: ast.Call) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        """Functions of this file that a call may run and that are not traced."""
        name = called_name(call.func)
        known = [function for function in self.meant(call) if not is_traced(function)]
        if not isinstance(call.func, ast.Attribute):
            return known
        # `self.actor(states)` is no call of a function `actor` that builds it, unless the attribute is the function.
        held = any(isinstance(value, ast.Name) and value.id == name for value in self.attributes.get(name, ()))
        return [function for function in known if held or id(function) in self._methods]

    def meant(self, call: ast.Call) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        """Functions of this file with the name that a call calls; of methods those of the class of its object, where
        that is known."""
        known = self.definitions.get(called_name(call.func), [])
        classes = self._receivers.classes_of(call.func) if known else None
        if classes is None or not classes <= {*self._classes, *self.modules}:
            return known
        above = {one for name in classes for one in self._above(name)}
        return [function for function in known if self._holders.get(id(function)) in above]

    @functools.cached_property
    def _receivers(self) -> Receivers:
        return Receivers([self.module])

    @functools.cached_property
    def _classes(self) -> dict[str, ast.ClassDef]:
        return {node.name: node for node in ast.walk(self.module) if isinstance(node, ast.ClassDef)}

    @functools.cached_property
    def _holders(self) -> dict[int, str]:
        """Methods, by identity, and the names of their classes."""
        return {id(node): holder.name for holder in self._classes.values() for node in holder.body}

    def _above(self, name: str) -> set[str]:
        """A class, and those of this file that it inherits from."""
        found, waiting = {name}, [name]
        while waiting:
            holder = self._classes.get(waiting.pop())
            bases = {called_name(base) for base in holder.bases} - found if holder is not None else set()
            found |= bases
            waiting += bases
        return found

    @functools.cached_property
    def _methods(self) -> set[int]:
        """Functions in a class, and those in other functions."""
        inner = (ast.ClassDef, *FUNCTIONS)
        holders = (node for node in ast.walk(self.module) if isinstance(node, inner))
        return {id(node) for holder in holders for node in ast.walk(holder) if node is not holder}

    def makes_data(self, call: ast.Call) -> bool:
        """Whether a call is one of Python, of NumPy or of what draws data: nothing that a gradient goes through."""
        name, dotted = called_name(call.func), self.dotted(call.func)
        if dotted:
            return not dotted.startswith(("tensorflow.", "keras.")) or bool(_DATA_OPS.match(dotted))
        if isinstance(call.func, ast.Name):
            return hasattr(builtins, name)
        return name in _DRAWS | _HOST_METHODS | _TO_PYTHON | _ARRAY_METHODS or self.is_environment(call.func)

    def is_environment(self, called: ast.expr) -> bool:
        """`env.step(…)`, `self.env.reset()`."""
        if not isinstance(called, ast.Attribute) or called.attr not in ("step", "reset"):
            return False
        return bool(_ENVIRONMENT.match(called_name(called.value)))

    def _constant(self, call: ast.Call) -> bool:
        """Whether NumPy computes from constants and shapes: `np.log(2.0)`, `np.prod(x.shape[1:])`."""
        dotted = self.dotted(call.func)
        if dotted.startswith("numpy.random"):
            return False
        if dotted in SHAPES_OF_NUMPY:
            return True
        shapes = {
            id(inner)
            for part in ast.walk(call)
            if isinstance(part, ast.Attribute) and part.attr in ("shape", "ndim")
            for inner in ast.walk(part)
        }
        arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
        names = (node for value in arguments for node in ast.walk(value) if isinstance(node, ast.Name))
        return all(node.id in self.modules or id(node) in shapes or node.id.isupper() for node in names)

    def is_metric(self, name: str) -> bool:
        """Whether a name or an attribute is always assigned a metric."""
        made = self._made.get(name, ())
        return bool(made) and all(".metrics." in self.dotted(call.func) for call in made)

    def updates_metric(self, statement: ast.stmt) -> bool:
        """Whether a statement is nothing but `mean(loss)`, or `mean.update_state(loss)`."""
        value = statement.value if isinstance(statement, ast.Expr) else None
        called = value.func if isinstance(value, ast.Call) else None
        if isinstance(called, ast.Attribute) and called.attr == "update_state":
            called = called.value
        return called is not None and self.is_metric(ast.unparse(called))

    @functools.cached_property
    def _made(self) -> dict[str, list[ast.Call]]:
        """The calls that names and attributes are assigned, anywhere in the file."""
        found: dict[str, list[ast.Call]] = {}
        for node in ast.walk(self.module):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                for name in {ast.unparse(target) for target in node.targets}:
                    found.setdefault(name, []).append(node.value)
        return found

    def has_tape(self, statement: ast.stmt, depth: int = 0, traced: bool = False) -> bool:
        """Also if a function of this file that it calls has one; `traced`: also one that is traced."""
        for node in ast.walk(statement):
            if is_tape(node):
                return True
            if isinstance(node, ast.Call) and depth < 2:
                for function in self.meant(node) if traced else self.called(node):
                    if any(self.has_tape(inner, depth + 1, traced) for inner in function.body):
                        return True
        return False

    def dotted(self, node: ast.expr) -> str:
        """`tf.nn.relu` → `tensorflow.nn.relu`; empty if the name is no import."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self.modules:
            return ""
        return ".".join([self.modules[node.id], *reversed(parts)])


_KEYWORDS: dict[type[ast.AST], str] = {
    ast.Return: "returns from the function around the step",
    ast.Break: "leaves the loop",
    ast.Continue: "goes on with the next iteration",
    ast.Import: "imports a module",
    ast.ImportFrom: "imports a module",
}


def _is_constant(value: ast.expr) -> bool:
    """`float("inf")` is a number, wherever it is computed."""
    return isinstance(value, ast.Constant)


def _taken_apart(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """`self.a, self.b = 0, x` as two pairs; a call gives the whole of its value to each target."""
    if not isinstance(target, (ast.Tuple, ast.List)):
        yield target, value
        return
    same = isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts)
    values = value.elts if same and isinstance(value, (ast.Tuple, ast.List)) else [value] * len(target.elts)
    for part, item in zip(target.elts, values, strict=True):
        yield from _taken_apart(part, item)


def every(body: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    return (node for statement in body for node in ast.walk(statement))


def is_tape(node: ast.AST) -> bool:
    return isinstance(node, ast.With) and any(called_name(item.context_expr) == "GradientTape" for item in node.items)


def is_traced(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any("function" in ast.unparse(decorator) for decorator in function.decorator_list)


def opened(node: ast.With) -> list[str]:
    """Names that a `with` binds."""
    return [name for item in node.items if item.optional_vars is not None for name in names_in(item.optional_vars)]


def _stored(target: ast.expr) -> set[str]:
    """Not `self` of `self.count`, nor `rows` of `rows[0]`."""
    found = (node for node in ast.walk(target) if isinstance(node, ast.Name))
    return {node.id for node in found if isinstance(node.ctx, ast.Store)}
