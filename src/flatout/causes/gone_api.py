"""The program calls a profiling, compilation or precision interface that this TensorFlow no longer has.

## What it is
Names that old tutorials use and that later versions removed, renamed or left without effect.

- `tf.profiler.experimental.Profiler`: `tf.profiler.experimental.Profile` or `start` / `stop`
- `tf.function(experimental_compile=True)`: `jit_compile=True` (the old name warns)
- `tf.function(experimental_relax_shapes=True)`: `reduce_retracing=True` (the old name warns)
- `tf.keras.mixed_precision.experimental.set_policy`: `keras.config.set_dtype_policy`
- `tf.train.experimental.enable_mixed_precision_graph_rewrite`: `keras.config.set_dtype_policy`
- `tf.data.experimental.StatsAggregator`, `latency_stats`: `flatout show --view input`
- `options.experimental_optimization.map_vectorization`: batch before map: see `late-batch`
- `tf.contrib.*`, `tf.estimator`: Keras, or a custom loop
- `tf.keras.utils.multi_gpu_model`: `tf.distribute.MirroredStrategy`
- `strategy.experimental_run_v2`: `strategy.run`
- `dataset.make_one_shot_iterator()`: `for batch in dataset`
- `tf.Session`, `tf.placeholder`, `tf.ConfigProto`: a `tf.function`; `tf.compat.v1` keeps them as they are

## Why it costs
A call that fails ends the program. One that is caught by a `try` or left without effect is worse: the
speed-up that it was meant to bring is missing, and nothing reports it.

## How it looks
```python
try:
    tf.keras.mixed_precision.experimental.set_policy("mixed_float16")
except AttributeError:
    pass                                   # float32 ever since
```

## The cure
```python
keras.config.set_dtype_policy("mixed_float16")
```
- An edit of the source. What was inactive becomes active: treat it as a new change, with the equivalence of
  that change (here: precision), and measure.

## When it is not worth it
When the program is pinned to an old TensorFlow in which the call still works.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from flatout.causes._spec import Cause
from flatout.model import queries
from flatout.model.case import Case, Finding, Fix
from flatout.model.evidence.program import ProgramError
from flatout.source import api_versions
from flatout.source.analysis.patterns import Match, pattern
from flatout.source.analysis.scopes import Site
from flatout.source.analysis.syntax import keyword, last_name, takes_unknown
from flatout.source.repairs import DeleteStatement, Rename, RenameArgument, RenameMethod, Repair

GONE = {
    r"tensorflow\.profiler.*has no attribute 'Profiler'|'Profiler'": (
        "tf.profiler.Profiler",
        "tf.profiler.experimental.start(logdir)",
    ),
    r"'ProfileOptionBuilder'": (
        "tf.profiler.ProfileOptionBuilder",
        "tf.profiler.experimental.ProfilerOptions",
    ),
    r"'jit_scope'|experimental\.jit_scope is not supported": (
        "tf.xla.experimental.jit_scope",
        "tf.function(jit_compile=True)",
    ),
    r"has no attribute 'xla'": ("tf.xla", "tf.function(jit_compile=True)"),
    r"'Session'": ("tf.Session", "tf.function, or tf.compat.v1.Session"),
    r"'ConfigProto'": ("tf.ConfigProto", "tf.config"),
    r"'contrib'": ("tf.contrib", "the core API or an add-on package"),
    r"'placeholder'": ("tf.placeholder", "arguments of a tf.function"),
    r"'fit_generator'": ("Model.fit_generator", "Model.fit"),
    r"'predict_generator'": ("Model.predict_generator", "Model.predict"),
    r"experimental_compile": ("tf.function(experimental_compile=…)", "tf.function(jit_compile=…)"),
    r"experimental_relax_shapes": (
        "tf.function(experimental_relax_shapes=…)",
        "tf.function(reduce_retracing=…)",
    ),
    r"'experimental_run_tf_function'": ("compile(experimental_run_tf_function=…)", "nothing: leave it out"),
    r"enable_mixed_precision_graph_rewrite": (
        "the mixed precision graph rewrite",
        "keras.mixed_precision.set_global_policy",
    ),
    r"'string_input_producer'|'shuffle_batch'|'QueueRunner'": ("input queues", "tf.data"),
}
"""What the exception says, the call that is gone, and what replaces it."""

_OF_AN_OBJECT = re.compile(r"object (?:'\w+' )?has no attribute")
"""Says that an instance lacks it, perhaps of a class of the program's own; all but methods of models are in modules."""

_OF_A_MODULE = re.compile(r"(?:\bmodule|\bfrom) '(\w+)")
"""Names the package that lacks it."""
_PACKAGES = ("tensorflow", "keras", "tf_keras")


def in_run(case: Case) -> Iterator[Finding]:
    for item in case.evidence_of(ProgramError):
        if item.type not in (
            "AttributeError",
            "TypeError",
            "ImportError",
            "ModuleNotFoundError",
            "ValueError",
            "RuntimeError",
        ):
            continue
        package = _OF_A_MODULE.search(item.note)
        if package is not None and package.group(1) not in _PACKAGES:
            continue
        for said, (gone, instead) in GONE.items():
            of_an_object = _OF_AN_OBJECT.search(item.note) and not gone.startswith("Model.")
            if re.search(said, item.note) and not of_an_object:
                yield from queries.finding(
                    "gone-api",
                    case,
                    f"{gone} {'no longer works' if item.value == 'RuntimeError' else 'does not exist'} "
                    "in this TensorFlow.",
                    cost_ms=None,
                    where=item.where,
                    evidence=[item],
                    fixes=[Fix(f"Use {instead}.", equivalence="semantic")],
                    estimate="the program ended here",
                )
                return


# ── how it looks in source ───────────────────────────────────────────────────────────────────────────────────────

NAMES = {
    "tensorflow.profiler.Profiler": ((2, 0), "tf.profiler.experimental.start(logdir) and stop()", ""),
    "tensorflow.profiler.ProfileOptionBuilder": ((2, 0), "tf.profiler.experimental.ProfilerOptions", ""),
    "tensorflow.profiler.experimental.Profiler": ((2, 0), "tf.profiler.experimental.Profile", "Profile"),
    "keras.mixed_precision.experimental.set_policy": (
        (2, 9),
        "keras.mixed_precision.set_global_policy",
        "keras.mixed_precision.set_global_policy",
    ),
    "keras.mixed_precision.experimental.Policy": (
        (2, 9),
        "keras.mixed_precision.Policy",
        "keras.mixed_precision.Policy",
    ),
    "keras.mixed_precision.experimental.LossScaleOptimizer": ((2, 9), "keras.mixed_precision.LossScaleOptimizer", ""),
    "tensorflow.train.experimental.enable_mixed_precision_graph_rewrite": (
        (2, 6),
        "keras.mixed_precision.set_global_policy",
        "",
    ),
    "tensorflow.data.experimental.StatsAggregator": ((2, 6), "flatout run", ""),
    "tensorflow.data.experimental.latency_stats": ((2, 6), "flatout run", ""),
    "tensorflow.data.experimental.bytes_produced_stats": ((2, 6), "flatout run", ""),
    "tensorflow.data.experimental.map_and_batch_with_legacy_function": ((2, 0), "map and batch", ""),
    "keras.utils.multi_gpu_model": ((2, 4), "tf.distribute.MirroredStrategy", ""),
}
"""What is gone, since which TensorFlow, what replaces it, and the new name where renaming is enough.

`api_versions` has the last word on the version; here it is for names that TensorFlow 2 never had, and for the reader.

The new names of mixed precision are there from 2.4 on.
"""
ARGUMENTS = {
    "experimental_compile": ((2, 5), "jit_compile"),
    "experimental_relax_shapes": ((2, 9), "reduce_retracing"),
}
"""Arguments of tf.function that were renamed."""
ASSIGNED = (
    "map_vectorization",
    "autotune_buffers",
    "autotune_cpu_budget",
    "hoist_random_uniform",
    "vectorization_enabled",
)
_METHODS = {
    "experimental_run_v2": ((2, 4), "run"),
    "make_one_shot_iterator": ((2, 0), ""),
    "make_initializable_iterator": ((2, 0), ""),
}


_VERSION_ONE = {
    "Session": "tf.function",
    "InteractiveSession": "eager execution",
    "placeholder": "arguments of a tf.function",
    "ConfigProto": "tf.config",
}


_LAST_NAMES = frozenset(name.rpartition(".")[2] for name in NAMES)


@pattern(
    "name",
    nodes=(ast.Expr, ast.Assign, ast.With, ast.Return, ast.FunctionDef),
    words=tuple(_LAST_NAMES),
    in_tests=True,
)
def _name(node: ast.stmt, site: Site) -> Iterator[Match]:
    """A dotted name that is gone, in a call, an argument or a decorator."""
    parts: list[ast.AST] = [node]
    if isinstance(node, ast.With):
        parts = [item.context_expr for item in node.items]
    elif isinstance(node, ast.FunctionDef):
        parts = list(node.decorator_list)
    for part in parts:
        for inner in ast.walk(part):
            if isinstance(inner, ast.Attribute):
                if inner.attr not in _LAST_NAMES:
                    continue
            elif not isinstance(inner, ast.Name):
                continue
            if "compat.v1" in site.raw(inner):
                continue
            found = NAMES.get(site.dotted(inner))
            if found is None or _in_try(site):
                continue
            since = api_versions.gone_since(site.dotted(inner), found[0])
            if site.module.version < since:
                continue
            gone = site.raw(inner).replace("tensorflow", "tf", 1)
            yield Match(
                inner,
                f"{gone} is not there in TensorFlow {since[0]}.{since[1]} and later.",
                f"Use {found[1]}.",
                "semantic",
                repair=_renamed(found[2], part, inner, site),
                confidence="high" if site.module.is_pinned else "medium",
            )
            return  # one per statement is enough


def _renamed(new: str, part: ast.AST, name: ast.AST, site: Site) -> Repair | None:
    """Where the call gives nothing that the new name does not take: one argument, by position."""
    calls = [call for call in ast.walk(part) if isinstance(call, ast.Call) and call.func is name]
    if not _stays_importable(new, name, site):
        return None
    if "." not in new or not calls or calls[0].keywords or len(calls[0].args) != 1 or takes_unknown(calls[0]):
        return None
    return Repair(
        Rename(new), safe=site.module.is_pinned and site.module.version >= (2, 4), assumes="TensorFlow 2.4 or later"
    )


def _stays_importable(new: str, name: ast.AST, site: Site) -> bool:
    """Whether the new name is in what the file imports. `from keras.mixed_precision import experimental` fails by
    itself, however its members are called."""
    while isinstance(name, ast.Attribute):
        name = name.value
    raw = site.raw(name)
    return "." not in raw or new.startswith(f"{site.dotted(name)}.")


@pattern("argument", calls=("function", "compile"), words=tuple(ARGUMENTS), in_tests=True, default=False)
def _argument(call: ast.Call, site: Site) -> Iterator[Match]:
    """`@tf.function(experimental_compile=True)`"""
    if site.dotted(call.func) != "tensorflow.function":
        return
    for old, (since, new) in ARGUMENTS.items():
        if keyword(call, old) is not None and site.module.version >= since:
            yield Match(
                call,
                f"tf.function calls {old} {new} since TensorFlow {since[0]}.{since[1]}; the old name warns.",
                f"Write {new}.",
                repair=Repair(
                    RenameArgument(old, new),
                    safe=site.module.is_pinned,
                    assumes=f"TensorFlow {since[0]}.{since[1]} or later",
                )
                if keyword(call, new) is None
                else None,
                report_at=keyword(call, old),
                confidence="low",
            )


@pattern("method", calls=tuple(_METHODS), in_tests=True)
def _method(call: ast.Call, site: Site) -> Iterator[Match]:
    """`strategy.experimental_run_v2(…)`, `dataset.make_one_shot_iterator()`"""
    name = last_name(call.func)
    since, new = _METHODS[name]
    if not isinstance(call.func, ast.Attribute) or site.dotted(call.func) or site.module.version < since:
        return
    if site.module.names.of_version_one or "disable_v2_behavior" in site.module.text:
        return  # the old datasets have them
    if site.module.functions.get(name):
        return  # a class of this file has a method of that name
    if site.arms or _in_try(site):
        return  # a choice between versions
    yield Match(
        call,
        f"{name} is not there in TensorFlow {since[0]}.{since[1]} and later.",
        f"Use {new}." if new else "Go through the dataset itself: for batch in dataset, or iter(dataset).",
        "exact" if new else "semantic",
        repair=Repair(RenameMethod(new), safe=site.module.is_pinned, assumes="TensorFlow 2.2 or later")
        if new
        else None,
        report_at=call.func,
        confidence="high" if site.module.is_pinned else "medium",
    )


@pattern("option", nodes=(ast.Assign,), words=ASSIGNED, in_tests=True)
def _option(node: ast.Assign, site: Site) -> Iterator[Match]:
    """`options.experimental_optimization.map_vectorization.enabled = True`"""
    target = node.targets[0]
    if not isinstance(target, ast.Attribute) or "experimental_optimization" not in ast.unparse(target):
        return
    names = [part.attr for part in ast.walk(target) if isinstance(part, ast.Attribute) and part.attr in ASSIGNED]
    if names and site.module.version >= (2, 9):
        yield Match(
            node,
            f"The option {names[0]} of tf.data is gone: the line fails, or has no effect.",
            "Delete it; to map whole batches, batch before map.",
            repair=Repair(DeleteStatement(), assumes="TensorFlow 2.9 or later, where the option does nothing"),
        )


@pattern("version-one", calls=tuple(_VERSION_ONE), default=False)
def _version_one(call: ast.Call, site: Site) -> Iterator[Match]:
    """`tf.Session()`, `tf.placeholder(…)`: a program for TensorFlow 1, reported once per file."""
    if not _is_version_one(call, site):
        return
    others = [
        other
        for name in _VERSION_ONE
        for other, where in site.module.calls_by_name.get(name, ())
        if _is_version_one(other, where)
    ]
    if min(others, key=lambda other: (other.lineno, other.col_offset)) is call:
        name = last_name(call.func)
        yield Match(
            call,
            f"tf.{name} is not there in TensorFlow 2: the program is written for TensorFlow 1.",
            f"Use {_VERSION_ONE[name]}; tf.compat.v1.{name} keeps it running as it is.",
            "semantic",
            report_at=call.func,
        )


def _is_version_one(call: ast.Call, site: Site) -> bool:
    name = last_name(call.func)
    return site.raw(call.func) == f"tensorflow.{name}" and name in _VERSION_ONE and not site.arms


def _in_try(site: Site) -> bool:
    """Whether the program is prepared for the name to be missing."""
    if any(isinstance(item, ast.Try) for item, _ in site.arms):
        return True
    return any(
        isinstance(node, ast.Try)
        and node.handlers
        and node.body[0].lineno <= site.line <= (node.body[-1].end_lineno or 0)
        for node, _ in site.scope.facts.others
    )


CAUSE = Cause(
    group="api",
    in_run=in_run,
    patterns=(_name, _argument, _method, _option, _version_one),
    ends_program=True,
)
