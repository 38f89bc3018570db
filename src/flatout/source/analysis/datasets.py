"""The stages of a tf.data pipeline, followed back through method chains, variables and functions."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import accumulate

from flatout.source.analysis.call_summary import CallSummary, summarize
from flatout.source.analysis.scopes import Bind, Scope, Site
from flatout.source.analysis.syntax import argument, keyword, last_name

STAGES = frozenset(
    [
        "map",
        "batch",
        "padded_batch",
        "shuffle",
        "repeat",
        "cache",
        "prefetch",
        "interleave",
        "flat_map",
        "filter",
        "take",
        "skip",
        "shard",
        "apply",
        "with_options",
        "unbatch",
        "zip",
        "concatenate",
        "enumerate",
        "window",
        "ragged_batch",
        "rebatch",
        "bucket_by_sequence_length",
        "snapshot",
        "scan",
        "unique",
        "take_while",
        "group_by_window",
        "rejection_resample",
        "ignore_errors",
        "as_numpy_iterator",
    ]
)
CERTAIN = frozenset(["prefetch", "interleave", "padded_batch", "unbatch", "with_options", "ragged_batch"])
"""Methods that hardly any other class has."""
SOURCES = (
    "tensorflow.data.",
    "tensorflow_datasets.load",
    "keras.utils.image_dataset_from_directory",
    "keras.utils.text_dataset_from_directory",
    "keras.utils.audio_dataset_from_directory",
    "keras.utils.timeseries_dataset_from_array",
    "keras.preprocessing.image_dataset_from_directory",
    "keras.preprocessing.text_dataset_from_directory",
    "keras.preprocessing.timeseries_dataset_from_array",
)
RANDOM = ("tensorflow.image.random_", "tensorflow.random.", "tensorflow.random_", "tensorflow.image.sample_distorted")
NOT_RANDOM = ("tensorflow.random.stateless", "tensorflow.random.set_seed", "tensorflow.random.Generator")
PYTHON = ("tensorflow.py_function", "tensorflow.numpy_function", "tensorflow.py_func")
_MOST_HOPS = 24
_NAMED = re.compile(r"(^|_)(ds|dataset)s?\d*($|_)", re.IGNORECASE)


@dataclass(frozen=True)
class Stage:
    name: str
    call: ast.Call
    site: Site

    @property
    def function(self) -> CallSummary:
        """What the function given to the stage calls."""
        return summarize(argument(self.call, 0, "map_func" if self.name != "filter" else "predicate"), self.site)


@dataclass
class Chain:
    stages: list[Stage] = field(default_factory=list)
    """The source of the data first."""
    source: str = ""
    """Dotted name of what made the dataset; empty if unknown."""
    named: bool = False
    """Whether it begins with a variable that is named like a dataset."""
    source_call: ast.Call | None = None
    source_site: Site | None = None

    @property
    def certain(self) -> bool:
        """Whether this is a tf.data pipeline, and not something with methods of the same names."""
        if self.source:
            return self.source.startswith(SOURCES)
        names = [stage.name for stage in self.stages]
        if any(
            name in CERTAIN or _has_typical_arguments(stage) for name, stage in zip(names, self.stages, strict=True)
        ):
            return True
        if self.named and {"map", "batch", "shuffle", "repeat", "cache"} & set(names):
            return True
        # Other libraries have map, filter and shuffle too, but few have several of these together.
        return len({"map", "batch", "shuffle", "repeat", "cache"} & set(names)) >= 3

    def names(self) -> list[str]:
        return [stage.name for stage in self.stages]

    def last(self, *names: str) -> Stage | None:
        return next((stage for stage in reversed(self.stages) if stage.name in names), None)

    def since(self, stage: Stage) -> list[Stage]:
        """The stages after this one."""
        return self.stages[self.stages.index(stage) + 1 :]


def _has_typical_arguments(stage: Stage) -> bool:
    if stage.name in ("map", "interleave", "batch") and keyword(stage.call, "num_parallel_calls") is not None:
        return True
    return keyword(stage.call, "drop_remainder") is not None


_MAKES_CERTAIN = frozenset(
    name.encode()
    for name in (
        *(*CERTAIN, "num_parallel_calls", "drop_remainder", "tensorflow_datasets"),
        *(source.rpartition(".")[2] for source in SOURCES if source.startswith("keras.")),
    )
)
_SEVERAL = frozenset((b"map", b"batch", b"shuffle", b"repeat", b"cache"))
_NAME = re.compile(r"(?<![^\W_])(?:ds|datasets?|dss)\d*(?![^\W_])", re.IGNORECASE)
_DATA = re.compile(r"\.[\s\\]*data\b|\bimport\b[^\n]{0,200}\bdata\b|\bimport[ \t]*\([^)]{0,2000}\bdata\b")


def may_be_in(words: Collection[bytes], code: str) -> bool:
    """Whether code can have a chain that is `certain`, by its words: what takes longer to find out is not asked."""
    if not _MAKES_CERTAIN.isdisjoint(words):
        return True
    several = sum(name in words for name in _SEVERAL)
    if several >= 3 or (several and _NAME.search(code) is not None):
        return True
    return b"data" in words and _DATA.search(code) is not None


def upstream(node: ast.AST | None, site: Site) -> Chain:
    """The pipeline that is the value of an expression."""
    chain = Chain()
    last = _follow(node, site, chain, _MOST_HOPS, frozenset())
    if not chain.source and last is not None and _NAMED.search(last_name(last)):
        chain.named = not site.module.names.imports_any("datasets", "torch", "ray", "jax", "mxnet", "pyspark")
    chain.stages.reverse()
    return chain


def before(call: ast.Call, site: Site) -> Chain:
    """The pipeline that a method is called on."""
    return upstream(call.func.value if isinstance(call.func, ast.Attribute) else None, site)


def _follow(
    node: ast.AST | None, site: Site, chain: Chain, hops: int, seen: frozenset[tuple[int, str]]
) -> ast.AST | None:
    """Follows the value back as far as the file allows. Returns the expression at which it stopped."""
    while hops > 0 and node is not None:
        hops -= 1
        if isinstance(node, ast.Call):
            dotted = site.dotted(node.func)
            if dotted and dotted.startswith(("tensorflow.data", "tensorflow_datasets", "keras.")):
                chain.source, chain.source_call, chain.source_site = dotted, node, site
                return node
            made = site.module.function_of(node.func, site)
            if isinstance(node.func, ast.Attribute) and node.func.attr in STAGES and not dotted and made is None:
                chain.stages.append(Stage(node.func.attr, node, site))
                node = node.func.value
                continue
            if made is not None and not made.facts.yields:
                returned = _returned(made)
                if returned is None:
                    return node
                node, site = returned
                continue
            return node
        if isinstance(node, ast.IfExp):
            node = node.body
            continue
        if isinstance(node, ast.Name):
            if (id(site.scope), node.id + str(site.line)) in seen:
                return node
            seen |= {(id(site.scope), node.id + str(site.line))}
            found = binding(node.id, site)
            if found is None:
                found = _from_caller(node.id, site)
            if found is None or found.how not in ("assign",) or found.value is None:
                return node
            node, site = found.value, found.site
            if found.part is not None:
                returned = _part(node, site, found.part)
                if returned is None:
                    return node
                node, site = returned
            continue
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
            found = attribute_binding(node.attr, site)
            if found is None or found.value is None or found.part is not None:
                return node
            key = (id(found.site.scope), f"self.{node.attr}{found.site.line}")
            if key in seen:
                return node
            seen |= {key}
            node, site = found.value, found.site
            continue
        return node
    return node


def _returned(scope: Scope) -> tuple[ast.expr, Site] | None:
    """What a function returns, if it has at most two `return` statements with a value."""
    if isinstance(scope.node, ast.Lambda):
        return scope.node.body, Site(scope.module, scope)
    values = [(item.value, site) for item, site in scope.facts.returns if item.value is not None]
    return values[-1] if values and len(values) <= 2 else None


def _part(node: ast.expr, site: Site, part: int) -> tuple[ast.expr, Site] | None:
    """One element of a tuple, also of one that a function of this file returns."""
    if isinstance(node, ast.Call):
        made = site.module.function_of(node.func, site)
        returned = _returned(made) if made is not None else None
        if returned is None:
            return None
        node, site = returned
    if isinstance(node, ast.Tuple) and part < len(node.elts):
        return node.elts[part], site
    return None


def binding(name: str, site: Site) -> Bind | None:
    """The assignment that a name has its value from at a site: the last one before it that can reach it."""
    binds = site.scope.facts.binds.get(name)
    if binds:
        ends = site.module.once(_ends, site.scope, name)
        for number in range(bisect_left(ends, site.line) - 1, -1, -1):
            if _reaches(binds[number].site, site):
                return binds[number]
        if not site.loops:
            return None
    if name in site.scope.arguments:
        return None
    for scope in site.scope.around():
        if scope is site.scope or scope.is_class:
            continue
        if name in scope.facts.binds:
            return scope.facts.binds[name][-1]
        if name in scope.arguments:
            return None
    return None


def _ends(scope: Scope, name: str) -> list[int]:
    """For each binding of a name the first line of it and of those behind it, which grows from one to the next."""
    lines = [item.site.line for item in scope.facts.binds[name]]
    return list(accumulate(reversed(lines), min))[::-1]


def _reaches(there: Site, here: Site) -> bool:
    """Whether control can go from one site to a later one of the same scope."""
    if there.statement is None or here.statement is None or there.line >= here.line:
        return False
    if here.excludes(there):
        return False
    mine = {id(statement) for statement, _ in here.arms}
    return all(id(statement) in mine or not _leaves(statement, arm) for statement, arm in there.arms)


def _leaves(statement: ast.AST, arm: int) -> bool:
    """Whether an arm of an `if` ends with a `return`, `raise`, `continue` or `break`."""
    if not isinstance(statement, ast.If):
        return False
    body = statement.body
    while arm > 0:
        arm -= 1
        if arm == 0 and not (len(statement.orelse) == 1 and isinstance(statement.orelse[0], ast.If)):
            body = statement.orelse
            break
        if not statement.orelse or not isinstance(statement.orelse[0], ast.If):
            body = statement.orelse
            break
        statement = statement.orelse[0]
        body = statement.body
    return bool(body) and isinstance(body[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break))


def attribute_binding(name: str, site: Site) -> Bind | None:
    """`self.name = …` in the class around a site, if there is exactly one."""
    owner = next((scope for scope in site.scope.around() if scope.is_class), None)
    if owner is None:
        return None
    found = [bind for child in owner.children for bind in child.facts.attributes.get(name, ())]
    return found[0] if len(found) == 1 else None


def _from_caller(name: str, site: Site) -> Bind | None:
    """The value of an argument, if the file calls the function exactly once."""
    scope = site.scope
    if not scope.is_function or name not in scope.arguments or isinstance(scope.node, ast.Lambda):
        return None
    calls = [
        (call, where)
        for call, where in site.module.calls_by_name.get(scope.name, ())
        if site.module.function_of(call.func, where) is scope
    ]
    if len(calls) != 1:
        return None
    call, where = calls[0]
    arguments = scope.arguments
    if scope.owner is not None and arguments[:1] in (["self"], ["cls"]):
        arguments = arguments[1:]
    if name not in arguments:
        return None
    given = argument(call, arguments.index(name), name)
    return Bind(given, where) if given is not None else None


def draws_at_random(done: CallSummary) -> tuple[str, ast.Call, Site] | None:
    for item in done.calls:
        if item[0].startswith(RANDOM) and not item[0].startswith(NOT_RANDOM):
            return item
    return None


def runs_python(done: CallSummary) -> tuple[str, ast.Call, Site] | None:
    return next((item for item in done.calls if item[0] in PYTHON), None)


def decodes(done: CallSummary) -> bool:
    """Whether it decodes images or sound, which takes many times the bytes of the encoded data."""
    return any(
        name.startswith(("tensorflow.io.decode_", "tensorflow.image.decode_", "tensorflow.audio.decode_"))
        and name.rpartition(".")[2] not in ("decode_raw", "decode_base64", "decode_json_example", "decode_csv")
        for name, _, _ in done.calls
    )


def iterated_dataset(node: ast.AST, site: Site) -> Chain | None:
    """The dataset that a `for` iterates over, directly or inside enumerate, zip, tqdm, iter."""
    if isinstance(node, ast.Call) and last_name(node.func) in ("enumerate", "zip", "tqdm", "trange", "iter", "track"):
        for item in node.args:
            found = iterated_dataset(item, site)
            if found is not None:
                return found
        return None
    if isinstance(node, ast.Call) and last_name(node.func) in ("experimental_distribute_dataset", "as_numpy_iterator"):
        inner = node.args[0] if node.args else getattr(node.func, "value", None)
        return iterated_dataset(inner, site) if inner is not None else None
    chain = upstream(node, site)
    return chain if chain.certain else None


def value_of(name: str, site: Site) -> tuple[ast.expr, Site] | None:
    """The expression that a name has its value from, in its scope or in the only call of its function."""
    found = binding(name, site) or _from_caller(name, site)
    if found is None or found.value is None or found.how != "assign" or found.part is not None:
        return None
    return found.value, found.site
