"""Whether `@tf.function` above a function keeps what the function does, as far as its file shows. No trial will tell.

It must take its data as arguments, return in one place, touch no state of Python, compute with TensorFlow alone and
make no variables. What a trace would freeze is judged as for the edits of `tune` (`frozen_state`, `graph_fit`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Sequence

from flatout.source.editing import frozen_state
from flatout.source.editing.dataflow import LOOPS, bound_in, called_name, names_in
from flatout.source.editing.graph_fit import GraphFit, every, fit_of
from flatout.source.editing.project import Code, Project

_COUNTERS = re.compile(
    r"^(epoch|step|iteration|iter|it|i|j|n|k|t|idx|index|count|counter|turn|episode|lr|learning_rate|rate|epsilon|eps|beta|"
    r"alpha|gamma|tau|temperature|noise|weight|factor|coef\w*|\w+_(step|epoch|iter|iteration|index|idx|rate|coef|count|"
    r"size|num|steps|name|mode)|num_\w+|n_\w+|batch_size|size|mode|name|phase|verbose|flag|is_\w+|use_\w+|do_\w+)$",
    re.IGNORECASE,
)
"""Arguments that hold numbers or words of Python: a new value is a new trace."""
_OBJECTS = re.compile(
    r"(^|_)(model|net|network|optimi[sz]er|opt|tape|agent|buffer|memory|env|environment|writer|logger|args|config|cfg|"
    r"generator|discriminator|actor|critic|encoder|decoder|policy|strategy|iterator|loader|dataset|ds|history|metrics?|"
    r"callbacks?|trainer|params|hparams|loss_fn|loss_function|fn|func|model\d)s?\d?$",
    re.IGNORECASE,
)
"""Arguments that hold an object: another one makes variables in a second trace, which TensorFlow refuses."""
_PLAIN = {"int", "float", "bool", "str", "dict", "list", "List", "Dict", "Optional", "Callable"}
_GRAPHS = ("tensorflow", "keras", "tf_keras", "tensorflow_probability", "numpy", "math", "functools")
_MAKES = re.compile(r"(tensorflow\.|keras\.|tf_keras\.)(\w+\.)*(?P<name>[A-Z]\w+)$")
_NOT_MADE = {"GradientTape", "TensorShape", "TensorSpec", "TensorArray", "SparseTensor", "IndexedSlices", "AUTOTUNE"}
_PURE = {
    "range",
    "len",
    "zip",
    "enumerate",
    "tuple",
    "list",
    "dict",
    "isinstance",
    "super",
    "reversed",
    "sum",
    "min",
    "max",
}
_OF_ARRAYS = {
    *("T", "all", "any", "argmax", "argmin", "argsort", "astype", "clip", "cumsum", "dot", "flatten", "max", "mean"),
    *("min", "nbytes", "nonzero", "prod", "ravel", "repeat", "reshape", "round", "size", "squeeze", "std", "sum"),
    *("swapaxes", "take", "transpose", "var"),
}
"""Attributes of arrays that tensors have only after `experimental_enable_numpy_behavior()`."""
_MODELS = re.compile(
    r"model|net|actor|critic|encoder|decoder|generator|discriminator|loss|policy|criterion|embed|layer|head|"
    r"backbone|optimi[sz]er|(^|_)(gen|disc|dis|opt|q|v|f|g|d)\d?(_|$)",
    re.IGNORECASE,
)


def reason_against(project: Project, path: str, line: int) -> str | None:
    """Why a decorator alone may change what the function on this line does; None where nothing speaks against it."""
    code = project.at(path, line)
    if code is None or isinstance(code.node, (ast.Lambda, ast.AsyncFunctionDef)):
        return "its source is not a plain function"
    return next(_reasons(project, code), None)


def _reasons(project: Project, code: Code) -> Iterator[str]:
    node = code.node
    assert isinstance(node, ast.FunctionDef)
    if node.decorator_list:
        yield "it has a decorator already"
    yield from _of_arguments(node, code)
    yield from _of_flow(node)
    fit = fit_of(project.modules[code.path])
    given = {item.arg for item in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
    yield from arrays_among(given, node.body, fit)
    obstacle = fit.obstacle(node.body, frozenset({node.name}))
    if obstacle is not None:
        yield obstacle.text
    own = bound_in(node.body) | set(code.local)
    for statement in every(node.body):
        unused = fit.unused_result(statement, own) if isinstance(statement, ast.Expr) else None
        if unused is not None:
            yield unused.text
    for reached in project.reached([code]):
        yield from _of_calls(project, reached, reached is code)
    effect = frozen_state.effect(project, [code])
    if effect is not None:
        yield effect
    state = frozen_state.frozen(project, [code])
    if state is not None:
        yield state.text


def _of_arguments(node: ast.FunctionDef, code: Code) -> Iterator[str]:
    given = node.args
    if given.vararg is not None or given.kwarg is not None:
        yield "it takes any arguments"
    arguments = [item for item in (*given.posonlyargs, *given.args, *given.kwonlyargs) if item.arg != code.this]
    used = {name for part in node.body for name in names_in(part)}
    data = [item for item in arguments if item.arg in used]
    if not data:
        yield "it takes no data as an argument: a trace would keep the data of the first call"
    for item in arguments:
        note = called_name(item.annotation) if item.annotation is not None else ""
        if isinstance(item.annotation, ast.Subscript):
            note = called_name(item.annotation.value)
        if note in _PLAIN or _COUNTERS.match(item.arg):
            yield f"its argument {item.arg} may be a Python value: each new one is a new trace"
        if _OBJECTS.search(item.arg):
            yield f"its argument {item.arg} may be another object in another call"
    if given.defaults or any(default is not None for default in given.kw_defaults):
        yield "an argument with a default may be a Python value"


def arrays_among(arguments: Collection[str], body: Sequence[ast.stmt], fit: GraphFit) -> Iterator[str]:
    """What NumPy's arrays have and tensors have not: in a graph, the arguments are tensors."""
    if "experimental_enable_numpy_behavior" in fit.calls:
        return
    given = set(arguments)
    for inner in every(body):
        if isinstance(inner, ast.Assign) and isinstance(inner.value, ast.Name) and inner.value.id in given:
            given |= bound_in([inner])  # `images, labels = batch`
    for inner in every(body):
        if not isinstance(inner, ast.Attribute) or inner.attr not in _OF_ARRAYS:
            continue
        if isinstance(inner.value, ast.Name) and inner.value.id in given:
            yield f"line {inner.lineno} uses {ast.unparse(inner)[:60]}, which no tensor has"


def _of_flow(node: ast.FunctionDef) -> Iterator[str]:
    returns = [inner for inner in every(node.body) if isinstance(inner, ast.Return)]
    if len(returns) > 1 or (returns and returns[0] is not node.body[-1]):
        yield f"line {returns[0].lineno} returns on one path only"
    given = {item.arg for item in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)} - {"self", "cls"}
    local = given | bound_in(node.body)
    for inner in every(node.body):
        test = inner.test if isinstance(inner, (ast.If, ast.While, ast.IfExp, ast.Assert)) else None
        if test is not None and set(names_in(test)) & local:
            yield f"line {inner.lineno} decides by a value that a graph computes"  # type: ignore[attr-defined]
        if isinstance(inner, (*LOOPS, ast.comprehension)):
            source = getattr(inner, "iter", None)
            if isinstance(inner, ast.While) or (source is not None and set(names_in(source)) & local):
                yield f"line {getattr(inner, 'lineno', node.lineno)} goes through a value that a graph computes"


def _of_calls(project: Project, code: Code, is_step: bool) -> Iterator[str]:
    for call in (inner for part in code.body for inner in ast.walk(part) if isinstance(inner, ast.Call)):
        dotted = project.dotted(call.func, code.path)
        name = called_name(call.func)
        made = _MAKES.match(dotted)
        if code.name in ("__init__", "build"):
            continue
        if made is not None and made["name"] not in _NOT_MADE and (is_step or "Variable" in made["name"]):
            yield f"line {call.lineno} makes a {made['name']}, which a graph must not do in each call"
        if dotted and dotted.split(".")[0] not in _GRAPHS:
            yield f"line {call.lineno} calls {ast.unparse(call.func)[:60]}, which is not in this file"
        if dotted or not is_step or not isinstance(call.func, (ast.Name, ast.Attribute)):
            continue
        if project.meant(call.func, code):
            continue
        yield from _of_unknown(project, call, name, code)


def _of_unknown(project: Project, call: ast.Call, name: str, code: Code) -> Iterator[str]:
    """What is called is no function of this file, and no library's."""
    if isinstance(call.func, ast.Name):
        if name in _PURE or name in project.bases:
            return
        if name[:1].isupper() or not _MODELS.search(name):
            yield f"line {call.lineno} calls {name}, whose source is not in this file"
    elif isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
        own = call.func.value.id == code.this
        if own and not _MODELS.search(name):
            yield f"line {call.lineno} calls {ast.unparse(call.func)[:60]}, whose source is not in this file"
