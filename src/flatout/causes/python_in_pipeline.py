"""The pipeline calls back into Python for every element, one call at a time under the interpreter lock.

## What it is
`Dataset.from_generator`, `tf.py_function` and `tf.numpy_function` leave TensorFlow's graph and run Python
code in the training process.

## Why it costs
Every element pays for a call into the interpreter and for converting its values to tensors and back, and
all such calls share one interpreter lock with the training loop itself. On one machine `from_generator`
took 310 µs per element where `from_tensor_slices` took 2.2 µs. TensorFlow never makes such a map parallel
by itself, and asking for it with `num_parallel_calls` helps only while the Python code has let go of the
lock (file access, many numpy routines).

## How it looks
```python
def rows():
    for sample, label in zip(samples, labels):
        yield sample / 255.0, label

dataset = tf.data.Dataset.from_generator(
    rows, output_signature=(tf.TensorSpec((28, 28), tf.float32), tf.TensorSpec((), tf.int64))
).batch(64)
```

## The cure
Write the same with TensorFlow operations, so that the elements never enter Python:
```python
dataset = (
    tf.data.Dataset.from_tensor_slices((samples, labels))
    .batch(64)
    .map(lambda sample, label: (tf.cast(sample, tf.float32) / 255.0, label))
)
```
Where Python is needed (a foreign file format, a library), let one call do a whole batch, do it once and
keep the result (`cache`, or record shards with `flatout data`), or move it into other processes.
- `cache`, and `keep-batches` for a `PyDataset`: exact, if the Python code gives the same values in every epoch.
- `parallel-map`: semantic for a function with state of its own: the order of its calls changes.
- `vectorize-map` needs a function that accepts a batch.

## When it is not worth it
When elements are large and few: 300 µs beside a batch that takes 50 ms to compute is nothing, and
TensorFlow's own prefetch already lets the generator run while the step computes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from flatout.causes._spec import Cause
from flatout.model import queries
from flatout.model.case import Case, Finding, Fix, Stage
from flatout.source.analysis import datasets, generators, loops, programs
from flatout.source.analysis.call_summary import summarize_scope
from flatout.source.analysis.patterns import Confidence, Match, pattern
from flatout.source.analysis.scopes import Scope, Site
from flatout.source.analysis.syntax import argument, keyword, last_name, loaded_names
from flatout.source.analysis.traced_functions import traced


def in_run(case: Case) -> Iterator[Finding]:
    contended, crowded = queries.contended_ms(case), queries.crowded_ms(case)
    hot = queries.hot_stage(case, contended + crowded)
    if hot is None:
        return
    python = [stage for stage in hot.pipeline.stages if stage.stateful == "python"]
    stage = max(python, key=lambda item: item.share or 0.0, default=None)
    if stage is None or (stage.share or 0.0) < 0.3:
        return
    function = f"the Python function `{stage.function}()`" if stage.function else "a Python function"
    what = "a Python generator" if stage.name == "FlatMap" else function
    if stage.detail.by_keras:
        what = "a Python data source given to Keras (a generator, or a PyDataset)"
    why = f"The step waits for {what}, which makes one element at a time under Python's global lock (GIL)."
    evidence = queries.wait_evidence(case, hot)
    if contended > hot.wait_ms:
        why = f"The step's own Python waits for {what}: both need Python's global lock (GIL), and one runs at a time."
        evidence.append(queries.number("contended-python", contended, "ms", "beside the pipeline's Python", "trace"))
    if crowded > hot.wait_ms + contended:
        why = f"{what[0].upper()}{what[1:]} keeps a core busy that computing needs, one element at a time."
    if crowded:
        evidence.append(queries.number("crowded", crowded, "ms", "of computing that waits for a core", "process clock"))
    yield from queries.finding(
        "python-in-pipeline",
        case,
        why,
        cost_ms=hot.wait_ms + contended + crowded,
        where=stage.where,
        evidence=evidence,
        fixes=[
            Fix("Rewrite that Python with TensorFlow ops, or prepare the data once and store it as TFRecord files."),
            Fix("Where it must stay Python, keep its result.", lever=_keeping(stage)),
        ],
        estimate="the wait that the trace shows, the step's own Python while that of the pipeline runs, and what the "
        "core of the pipeline's Python would add to computing",
    )


def _keeping(stage: Stage) -> str:
    return "keep-batches" if stage.detail.by_keras else "cache"


# ── how it looks in source ───────────────────────────────────────────────────────────────────────────────────────

_SLOW = ("numpy", "cv2", "PIL", "skimage", "scipy", "librosa", "imageio", "pandas", "soundfile", "albumentations")
_WORKS = re.compile(r"load|read|imread|resize|augment|process|decode|parse|crop|normali|transform|token", re.IGNORECASE)
_GIVES = re.compile(r"gen|loader|reader|iter", re.IGNORECASE)
_MADE_UP = re.compile(r"toy|dummy|synth|fake|sinus|sine|gen_series|random_walk", re.IGNORECASE)
"""Names of generators that make numbers up: they cost little, and show something else."""
_FLOWS = ("flow", "flow_from_directory", "flow_from_dataframe")
"""Methods of an ImageDataGenerator."""
_BUILT_IN = ("iter", "enumerate")
_FEW = 200
_STAGES = ("map", "flat_map", "interleave", "filter", "apply")


@pattern("generator", calls=("from_generator",), seldom=True)
def _generator(call: ast.Call, site: Site) -> Iterator[Match]:
    """`Dataset.from_generator` over a generator of this file that works in numpy, or only hands arrays on."""
    made = generators.function_of(call, site)
    if made is None:
        yield from _from_another_file(call, site)
        return
    if _is_cached(call, site) or _is_shown(made):
        return
    work = sorted({name.split(".")[0] for name in summarize_scope(made).names()} & set(_SLOW))
    if work:
        why = f"prepares each element in Python with {' and '.join(work)}"
    elif any(last_name(inner.func) in ("iterrows", "itertuples") for _, inner, _ in summarize_scope(made).calls):
        why = "takes each row out of a pandas table"
    elif any(_WORKS.search(last_name(inner.func)) for _, inner, _ in summarize_scope(made).calls):
        why = "prepares each element in Python"
    elif generators.hands_on(made):
        why = "only hands elements on, through the interpreter one by one"
    else:
        return
    name = made.owner.name if made.owner is not None and made.name == "__call__" else made.name
    yield Match(
        call,
        f"The generator {name} {why}, on one core and under Python's global lock (GIL).",
        "Use from_tensor_slices for arrays in memory and TensorFlow ops in map; else keep the result (cache, records).",
        report_at=call.func,
        confidence="low" if _MADE_UP.search(name) or _is_tried(site) or _is_written(site) else "medium",
    )


def _is_tried(site: Site) -> bool:
    """Whether it stands under `if __name__ == "__main__"` of a file that trains nothing: a module tries itself."""
    if not any(isinstance(part, ast.If) and "__name__" in loaded_names(part.test) for part, _ in site.arms):
        return False
    return not any(name in site.module.calls_by_name for name in ("fit", "apply_gradients", "train_on_batch", "train"))


def _is_written(site: Site) -> bool:
    """Whether the dataset is there to be written to a file, once."""
    target = site.statement.targets[0] if isinstance(site.statement, ast.Assign) else None
    return isinstance(target, ast.Name) and any(
        any(isinstance(item, ast.Name) and item.id == target.id for item in call.args)
        for call, _ in site.module.calls_by_name.get("write", ())
    )


def _from_another_file(call: ast.Call, site: Site) -> Iterator[Match]:
    """`from_generator(PhotoGenerator(paths), …)`, where the class comes from another file of the project."""
    given = argument(call, 0, "generator")
    if isinstance(given, ast.Lambda):
        given = given.body
    method = ""
    if isinstance(given, ast.Attribute) and isinstance(given.value, ast.Name):
        method, given = given.attr, given.value  # `photos.iterate` of an object that another file's class made
    if isinstance(given, ast.Name):
        bound = datasets.value_of(given.id, site)
        given = bound[0] if bound is not None else given
    if not isinstance(given, ast.Call) or _is_cached(call, site):
        return
    if not site.dotted(call.func).startswith("tensorflow.data."):
        return
    flows = last_name(given.func) in _FLOWS
    elsewhere = site.raw(given.func) or (
        isinstance(given.func, ast.Name)
        and given.func.id not in site.module.classes
        and given.func.id not in site.module.functions
    )
    if not flows and not (elsewhere and _GIVES.search(f"{last_name(given.func)} {method}")):
        return
    if site.dotted(given.func).startswith(("keras.", "tensorflow.")) or last_name(given.func) in _BUILT_IN:
        return
    made_up = _MADE_UP.search(f"{last_name(given.func)} {method}") is not None
    yield Match(
        call,
        f"{last_name(given.func)} prepares each element in Python, on one core and under Python's global lock (GIL).",
        "Use from_tensor_slices for arrays in memory and TensorFlow ops in map; else keep the result (cache, records).",
        report_at=call.func,
        confidence="low" if made_up or _is_tried(site) or _is_written(site) or _is_prefetched(call, site) else "medium",
    )


def _is_prefetched(call: ast.Call, site: Site) -> bool:
    """Whether it runs ahead of the steps: it costs only where it is slower than they are, and this file hides that."""
    return any(
        datasets.before(later, where).source_call is call
        for later, where in site.module.calls_by_name.get("prefetch", ())
    )


@pattern("other-generator", calls=("from_generator",), default=False)
def _other_generator(call: ast.Call, site: Site) -> Iterator[Match]:
    """Any `Dataset.from_generator`."""
    if (
        site.dotted(call.func).startswith("tensorflow.data.")
        and not any(_generator.detect(call, site))
        and not _is_cached(call, site)
    ):
        yield Match(
            call,
            "Elements come from Python one by one, under its global lock (GIL).",
            "Read them with TensorFlow ops where that is possible, or keep the result (cache, records).",
            report_at=call.func,
        )


@pattern("python-function", calls=("py_function", "numpy_function", "py_func"), often_in=programs.feeds_training)
def _python_function(call: ast.Call, site: Site) -> Iterator[Match]:
    """`tf.py_function` in the function of a dataset's stage, or in a step that Keras traces."""
    name = site.dotted(call.func)
    if name not in datasets.PYTHON:
        return
    others = [other for other, _ in site.scope.facts.calls if site.dotted(other.func) in datasets.PYTHON]
    if min(others, key=lambda other: (other.lineno, other.col_offset)) is not call:
        return  # reported once per function
    where = _stage_around(call, site)
    if where is not None:
        yield Match(
            call,
            f"{name.replace('tensorflow', 'tf')} takes every element of this pipeline through Python, "
            "under its global lock (GIL).",
            "Write it with TensorFlow ops; where Python must be, call it once per batch, or cache its result.",
            report_at=call.func,
            confidence=_sureness(call, where, site),
        )
        return
    method = next((scope for scope in site.scope.around() if scope.owner is not None), None)
    decorated = any(scope in traced(site.module).made for scope in site.scope.around())
    if decorated and not site.arms:
        yield Match(
            call,
            f"{name.replace('tensorflow', 'tf')} leaves the graph for Python in every call of this tf.function.",
            "Write it with TensorFlow ops.",
            report_at=call.func,
            confidence="low" if _given_function(call, site) or _called_seldom(site) else "medium",
        )
        return
    if method is not None and method.name in ("call", "train_step") and _of_keras(method):
        yield Match(
            call,
            f"{name.replace('tensorflow', 'tf')} leaves the graph for Python in every step, and the device waits.",
            "Write it with TensorFlow ops.",
            report_at=call.func,
            confidence="low" if _offers_python(method) else "high",
        )


@pattern(
    "decorated", nodes=(ast.FunctionDef,), words=("py_function", "numpy_function"), often_in=programs.feeds_training
)
def _decorated(node: ast.FunctionDef, site: Site) -> Iterator[Match]:
    """`@tf.py_function(Tout=…)` above a function that a dataset's stage calls."""
    mark = next((item for item in node.decorator_list if _is_python(item, site)), None)
    if mark is None:
        return
    for name in _STAGES:
        for stage, where in site.module.calls_by_name.get(name, ()):
            if where.dotted(stage.func) or not _leads_to(node.name, stage, where):
                continue
            yield Match(
                node,
                f"{node.name} takes every element of this pipeline through Python, under its global lock (GIL).",
                "Write it with TensorFlow ops; where Python must be, call it once per batch, or cache its result.",
                report_at=mark,
            )
            return


def _is_python(decorator: ast.expr, site: Site) -> bool:
    inner = decorator.func if isinstance(decorator, ast.Call) else decorator
    if site.dotted(inner) == "functools.partial" and isinstance(decorator, ast.Call) and decorator.args:
        inner = decorator.args[0]
    return site.dotted(inner) in datasets.PYTHON


def _leads_to(name: str, stage: ast.Call, site: Site) -> bool:
    given = argument(stage, 0, "map_func")
    if given is None:
        return False
    if last_name(given) == name:
        return True
    return any(last_name(inner.func) == name for _, inner, _ in datasets.Stage("map", stage, site).function.calls)


def _sureness(call: ast.Call, stage: ast.Call, site: Site) -> Confidence:
    """Low where the function is an argument (an interface that offers Python), sleeps, or is cached behind."""
    given = argument(call, 0, "func")
    if _given_function(call, site):
        return "low"
    made = site.module.function_of(given, site) if given is not None else None
    if made is not None and any(last_name(inner.func) == "sleep" for inner, _ in made.facts.calls):
        return "low"
    if made is not None and _only_reads(made) and keyword(stage, "num_parallel_calls") is not None:
        return "low"
    return "low" if _is_kept(stage, site) or _has_no_input(call) else "high"


def _only_reads(made: Scope) -> bool:
    """Whether a function reads an array from a file and hands it on: numpy lets go of the lock while it reads."""
    names = {site.dotted(call.func) or last_name(call.func) for call, site in made.facts.calls}
    return "numpy.load" in names and names <= {
        "numpy.load",
        "decode",
        "astype",
        "str",
        "numpy",
        "numpy.squeeze",
        "numpy.float32",
    }


def _has_no_input(call: ast.Call) -> bool:
    """`tf.py_function(wait, [], [])`: it stands for something else."""
    given = argument(call, 1, "inp")
    return isinstance(given, (ast.List, ast.Tuple)) and not given.elts


def _is_kept(stage: ast.Call, site: Site) -> bool:
    """Whether a cache comes behind a stage, also through `self.rows = rows.map(…)` and `self.rows.batch(8).cache()`."""
    targets: list[str] = []
    for other, where in site.module.calls_by_name.get(last_name(stage.func), ()):
        if other is stage and isinstance(where.statement, ast.Assign):
            targets = [ast.unparse(target) for target in where.statement.targets]
    for cache, where in site.module.calls_by_name.get("cache", ()):
        if any(item.call is stage for item in datasets.before(cache, where).stages):
            return True
        if any(ast.unparse(cache.func).startswith(f"{name}.") for name in targets if name.startswith("self.")):
            return True
    return any(
        _caches(other, where) and any(item.call is stage for item in datasets.before(other, where).stages)
        for other, where in site.module.calls_by_name.get("apply", ())
    )


def _caches(call: ast.Call, site: Site) -> bool:
    """`rows.apply(prepare)`, where that function of the file caches."""
    made = site.module.function_of(call.args[0], site) if call.args else None
    return made is not None and any(last_name(inner.func) == "cache" for inner, _ in made.facts.calls)


def _called_seldom(site: Site) -> bool:
    """Whether the file calls the function some times in all: it shows what a py_function does."""
    named = next((scope for scope in site.scope.around() if scope.is_function and scope.name != "<lambda>"), None)
    count = loops.all_calls(named) if named is not None else None
    return count is not None and count < _FEW


def _given_function(call: ast.Call, site: Site) -> bool:
    """Whether the Python function is an argument: an interface that offers Python."""
    given = argument(call, 0, "func")
    return isinstance(given, ast.Name) and any(given.id in scope.arguments for scope in site.scope.around())


def _offers_python(method: Scope) -> bool:
    """A layer that takes a Python function of the user's: `def __init__(self, …, py_fn)`."""
    first = method.owner.method("__init__") if method.owner is not None else None
    return first is not None and any(re.search(r"fn$|func(tion)?$|callable", name) for name in first.arguments)


def _is_shown(made: Scope) -> bool:
    """A generator that sleeps, or counts to some hundred: it shows how generators are used."""
    if any(last_name(call.func) == "sleep" for call, _ in made.facts.calls):
        return True
    counts = [loops.turns(loop, site) for loop, site in made.facts.loops if not site.loops]
    return bool(counts) and all(count is not None and count < _FEW for count in counts)


def _of_keras(method: Scope) -> bool:
    bases = getattr(method.owner.node, "bases", ()) if method.owner is not None else ()
    return any(last_name(base).endswith(("Layer", "Model", "Cell")) for base in bases)


def _is_cached(call: ast.Call, site: Site) -> bool:
    calls = site.module.calls_by_name
    return any(datasets.before(cache, where).source_call is call for cache, where in calls.get("cache", ())) or any(
        _caches(other, where) and datasets.before(other, where).source_call is call
        for other, where in calls.get("apply", ())
    )


def _stage_around(call: ast.Call, site: Site) -> ast.Call | None:
    """The stage of a dataset whose function leads to a call."""
    for name in _STAGES:
        for stage, where in site.module.calls_by_name.get(name, ()):
            if not isinstance(stage.func, ast.Attribute) or where.dotted(stage.func):
                continue
            done = datasets.Stage(name, stage, where).function
            # Nothing but a dataset maps a function of TensorFlow.
            if any(inner is call for _, inner, _ in done.calls):
                return stage
    return None


CAUSE = Cause(
    group="input",
    cures=("cache", "keep-batches", "parallel-map", "vectorize-map"),
    explains=("gpu-idle", "input-bound", "step-overhead", "uncached-prefix"),
    replaces=("oversized-buffer/epoch-start",),
    in_run=in_run,
    patterns=(_generator, _other_generator, _python_function, _decorated),
)
