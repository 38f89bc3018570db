"""`model.predict` is called in a loop on small inputs, and its set-up is paid each time.

## What it is
`predict` is made for one large data set: it builds a data pipeline, callbacks and a progress bar, splits
the input into batches and collects the results. In a loop over single inputs all of that is done per call.
`fit` for a handful of samples in a loop pays the same price; `train_on_batch` does not.

## Why it costs
The set-up takes milliseconds, the model often less. On one machine a small model took 130,430 µs per
`predict` call in a loop, 3087 µs per direct call `model(x)`, and 597 µs through a `tf.function`.

## How it looks
```python
for request in requests:
    scores = model.predict(request[np.newaxis], verbose=0)[0]
    answer(scores)
```

## The cure
When all inputs are known, one call for all of them:
```python
scores = model.predict(np.stack(requests), batch_size=256)
```
When they come one by one, call the model itself, traced once:
```python
forward = tf.function(lambda values: model(values, training=False))
for request in requests:
    answer(forward(tf.constant(request[np.newaxis]))[0].numpy())
```
`training=False` matters: a bare `model(x)` leaves the choice to the default, and `predict` always uses
False. `model.predict_on_batch` skips most of the set-up as well. For serving, `flatout optimize` compares
more routes.
- `direct-predict`: the same model on the same rows, without the set-up of a whole `predict`. Calling it for many
  rows at once is an edit of the source: reassociated, as the batch size chooses the kernels.
- `direct-fit`: the same for `fit` and `evaluate` on one batch; reassociated, as `fit` shuffles the rows of its batch.

## When it is not worth it
When the loop runs a few times, or over large arrays: the set-up is then a small part of each call.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from flatout.causes._keras_calls import MANY, again_and_again, has_own_loop
from flatout.causes._spec import Cause
from flatout.model import queries
from flatout.model.case import Case, Finding, Fix
from flatout.model.evidence.program import KerasCall
from flatout.source.analysis import loops, programs
from flatout.source.analysis.keras_models import is_keras_model
from flatout.source.analysis.patterns import Confidence, Match, pattern
from flatout.source.analysis.rare_turns import is_rare
from flatout.source.analysis.scopes import Loop, Scope, Site
from flatout.source.analysis.syntax import constant, keyword, last_name, loaded_names, stored_names
from flatout.source.repairs import LeverEdit, Repair


def in_run(case: Case) -> Iterator[Finding]:
    if case.steps is None:
        return
    for item in again_and_again(case):
        calls, batches = item.calls, item.batches
        per_call = item.per_call_ms
        cost, estimate = _cost(case, item, per_call)
        outside = _is_outside(case, item) or (calls < case.steps.count and has_own_loop(case, item))
        found = queries.finding(
            "predict-in-loop",
            case,
            f"model.{item.method} is called {calls} times for {batches} batches; "
            "each call sets up a dataset, an iterator and callbacks.",
            cost_ms=None if outside else cost,
            where=item.where,
            evidence=[queries.number(item.method, per_call, "ms", "per call", "hook")],
            fixes=_fixes(item),
            estimate=estimate,
        )
        yield from queries.outside_steps(case, found, cost * case.steps.count) if outside else found


def _is_outside(case: Case, seen: KerasCall) -> bool:
    """Before or after all steps, or between two calls of `fit` that make many steps each: then it costs the run, and no
    step."""
    if seen.outside:
        return True
    if queries.step_kind(case) != "fit" or seen.method == "fit":
        return False
    return any(item.method == "fit" and item.batches > 2 * item.calls for item in case.evidence_of(KerasCall))


def _cost(case: Case, seen: KerasCall, per_call: float) -> tuple[float, str]:
    if seen.method == "predict" and queries.step_kind(case) == "predict":
        return queries.step_ms(case) - queries.part_ms(case, "compute"), "the step less its computing"
    often = seen.calls / max(case.steps.count if case.steps else 0, 1)
    if seen.method in ("fit", "evaluate"):
        batch = (seen.batch_ms or 0.0) * seen.batches / seen.calls
        return max(per_call - batch, 0.0) * often, "the calls less the batches in them"
    # Within another step: a call of the model itself would do the same in the time that is computing.
    if seen.batches > MANY * seen.calls:
        return per_call * often * 0.5, "an estimate: half of the calls"
    return per_call * often * 0.9, "an estimate: 90 % of the calls"


_DIRECT = {
    "predict": ("direct-predict", "Call model.predict_on_batch(x): the same rows without the set-up."),
    "fit": ("direct-fit", "Call model.train_on_batch(x, y): the same update without the set-up."),
    "evaluate": ("direct-fit", "Call model.test_on_batch(x, y): the same metrics without the set-up."),
}
_BY_BATCHES = Fix(
    "Shuffle the rows, go through them in batches of batch_size, and call model.train_on_batch for each: as many "
    "updates without the set-up.",
    equivalence="semantic",
)
_TOGETHER = {
    "predict": Fix("Or predict once, on all samples together.", equivalence="reassociated"),
    "fit": Fix("Or collect the samples and fit once, on all of them together.", equivalence="semantic"),
    "evaluate": Fix("Or evaluate less often, or once at the end.", equivalence="semantic"),
}


def _fixes(seen: KerasCall) -> list[Fix]:
    """A lever is named only where all calls ask for nothing but a batch of arrays: others it leaves as they are."""
    lever, text = _DIRECT[seen.method]
    fits = seen.single is None or seen.single == seen.calls
    if seen.method == "fit" and not fits and seen.batches > seen.calls:
        return [_BY_BATCHES, _TOGETHER["fit"]]  # all rows in one call would be one update, where fit makes several
    return [Fix(text, lever=lever if fits else None, equivalence="reassociated"), _TOGETHER[seen.method]]


# ── how it looks in source ───────────────────────────────────────────────────────────────────────────────────────

_PICTURE = re.compile(
    r"^(imwrite|savefig|imsave|save_img|(_?(save|write|show)_.*)?(image|mask|result|picture)s?)$|visuali|draw"
)
"""Calls that draw or write a picture for each input: they take longer than the set-up of `predict`."""
_WAITS = re.compile(r"(?<![\w.])input\(|sleep\(|waitKey\(|VideoCapture|cv2\.imshow\(")
"""Loops that wait for a user, a clock or a camera."""
_ASIDE = re.compile(
    r"warm_?up|bench|sampling|show|display|visuali|(sample|save|summari[sz]e)_(image|pred|pict|result|output|generat|fig)"
)
_SHORT = 15
"""Lines of a function that answers one input, such as the choice of an action."""
_FEW = 32
"""A loop with fewer turns is not reported: a plot for each of ten classes."""
_SOME = 200
"""Calls of a script that take some seconds in all."""


@pattern("predict", calls=("predict",), often_in=programs.predicts_often)
def _predict(call: ast.Call, site: Site) -> Iterator[Match]:
    """`model.predict(x)` in a loop, or in a function that is called in one."""
    model = call.func.value if isinstance(call.func, ast.Attribute) else None
    if model is None or not call.args or not is_keras_model(model, call, site):
        return
    loop = _loop_of_calls(model, site)
    if loop is not None:
        seldom = _is_printed(call, site) or _few_in_all(site) or _takes_batches_once(call, site)
        yield _match(call, "in each turn of the loop", "low" if seldom else "high")
    elif not site.loops and _step_like(site) and loops.called_in_loop(site.scope, matters=_matters):
        shown = _is_printed(call, site)
        yield _match(call, f"in {site.scope.name}, which is called in a loop", "low" if shown else "medium")


@pattern("fit-every-step", calls=("fit",), words=("predict", "fit"))
def _fit_every_step(call: ast.Call, site: Site) -> Iterator[Match]:
    """`model.fit` for a handful of samples in a loop that predicts with the same model, or over a dataset."""
    model = call.func.value if isinstance(call.func, ast.Attribute) else None
    if model is None or not call.args or not is_keras_model(model, call, site):
        return
    loop = loops.eager_loop(site)
    if loop is None or loops.is_short(loop, _FEW) or loops.names_epochs(loop) or isinstance(loop, ast.ListComp):
        return
    written = ast.unparse(model)
    if loaded_names(model) & (loops.target_names(loop) | site.module.once(stored_names, loop)):
        return
    predicts = any(text.startswith(f"{written}.") for text in site.module.once(_predictions, loop, site.scope))
    once = keyword(call, "epochs") is None or constant(keyword(call, "epochs")) == 1
    if once and (predicts or (isinstance(loop, ast.For) and loops.over_data(loop, site))):
        yield Match(
            call,
            "fit sets up a dataset, callbacks and metrics in each turn of the loop, for a few samples.",
            "Collect a batch and call fit once, or use train_on_batch.",
            "reassociated",
            report_at=call.func,
        )


def _predictions(loop: Loop, scope: Scope) -> frozenset[str]:
    """How the calls of `predict` in a loop are written."""
    calls = loops.direct_calls(loop, scope)
    return frozenset(ast.unparse(call.func) for call, _ in calls if last_name(call.func) == "predict")


def _takes_batches_once(call: ast.Call, site: Site) -> bool:
    """Whether a script goes once through its batches: `for images, labels in rows: model.predict(images)`"""
    if site.scope.is_function or len(site.loops) != 1 or not isinstance(call.args[0], ast.Name):
        return False
    loop = site.loops[0]
    if not isinstance(loop, ast.For) or not isinstance(loop.iter, (ast.Name, ast.Attribute)):
        return False
    target: ast.expr = loop.target
    if isinstance(target, ast.Name):  # `rows, labels = batch` in the loop
        target = site.module.once(_first_taken_from, loop, target.id) or target
    return isinstance(target, ast.Tuple) and any(
        isinstance(item, ast.Name) and item.id == call.args[0].id for item in target.elts[:1]
    )


def _first_taken_from(loop: ast.For, name: str) -> ast.expr | None:
    """What the first statement in a loop gives the value of a name to."""
    for item in loop.body:
        if isinstance(item, ast.Assign) and isinstance(item.value, ast.Name) and item.value.id == name:
            return item.targets[0]
    return None


def _few_in_all(site: Site) -> bool:
    """Whether a program predicts some dozen times in all: a hundred words, some days to come.

    In a function that trains or reads a model itself, those times are beside that."""
    count = loops.all_turns(site)
    scope: Scope | None = site.scope
    while count is not None and scope is not None and scope.is_function and not _has_fit_at_all(scope):
        within = scope.parent if scope.parent is not None and scope.parent.is_function else None
        times = _calls_within(scope, within) if within is not None else loops.all_calls(scope)
        count = count * times if times is not None else None
        scope = within
    return count is not None and count <= _SOME


def _calls_within(scope: Scope, outer: Scope) -> int | None:
    """How often one call of the outer function calls the inner one; None if unknown."""
    called = [
        site for call, site in scope.module.calls_by_name.get(scope.name, ()) if last_name(call.func) == scope.name
    ]
    if not called or any(site.scope is not outer for site in called):
        return None
    turns = [loops.all_turns(site) for site in called]
    return sum(turn for turn in turns if turn is not None) if None not in turns else None


def _has_fit_at_all(scope: Scope) -> bool:
    """Whether a function trains or reads a model, also by one that it defines."""
    inside = [scope, *(child for child in scope.children if child.is_function)]
    return any(last_name(call.func) in ("fit", "load_model") for item in inside for call, _ in item.facts.calls)


def _is_printed(call: ast.Call, site: Site) -> bool:
    """Whether each result is printed for a reader: an example, a file that the user has asked about."""
    return call in site.module.once(_printed, site.scope, site.loops)


def _printed(scope: Scope, around: tuple[Loop, ...]) -> set[ast.AST]:
    """The nodes in the innermost of some loops whose value is printed there, also by names that it is given to."""
    shown = {
        node
        for call, where in scope.facts.calls
        if last_name(call.func) in ("print", "format_map") and where.loops[: len(around)] == around
        for node in ast.walk(call)
    }
    names = {node.id for node in shown if isinstance(node, ast.Name)}
    inside = [(bind, name) for name, binds in scope.facts.binds.items() for bind in binds]
    inside.sort(key=lambda item: item[0].site.line)
    passed_on: set[str] = set()  # names of which a later statement makes something that is printed
    for bind, name in reversed(inside):
        if bind.value is None or bind.site.loops != around or _trains(bind.value):
            continue
        if name in names or name in passed_on:
            shown.update(ast.walk(bind.value))
            passed_on |= loaded_names(bind.value)
    return shown


def _trains(value: ast.expr) -> bool:
    """A loss that a prediction went into is no prediction: `critic.train_on_batch(made, wrong)`."""
    return any(isinstance(node, ast.Call) and last_name(node.func) == "train_on_batch" for node in ast.walk(value))


def _match(call: ast.Call, when: str, confidence: Confidence) -> Match:
    return Match(
        call,
        f"predict is called {when}; each call sets up a dataset, an iterator and callbacks.",
        "Predict once for all inputs; where they come one by one, call the model itself through a tf.function.",
        "reassociated",
        repair=Repair(LeverEdit("direct-predict"), assumes="one call has one batch of rows") if _plain(call) else None,
        report_at=call.func,
        confidence=confidence,
    )


def _matters(loop: Loop, site: Site) -> bool:
    source = loops.iterated(loop)
    if source is not None and _ASIDE.search(ast.unparse(source)):
        return False  # `range(FLAGS.num_show)`
    if is_rare(site, loop):
        return False  # a preview at every hundredth turn
    if loops.is_short(loop, _FEW, site):
        return False
    return not site.module.once(_waits_or_shows, loop) and not site.module.once(_draws, loop, site.scope)


def _waits_or_shows(loop: Loop) -> bool:
    """Whether it waits for something else anyway, or plots."""
    return _WAITS.search(loops.without_flags(loop)) is not None or loops.shows(loop)


def _draws(loop: Loop, scope: Scope) -> bool:
    return any(
        _PICTURE.search(last_name(call.func)) and not loops.is_guarded(where, loop)
        for call, where in loops.direct_calls(loop, scope)
    )


def _plain(call: ast.Call) -> bool:
    """Whether it takes nothing but a batch and prints nothing, so that the edit can replace it."""
    silent = constant(keyword(call, "verbose"))
    return silent in (0, False) and {item.arg for item in call.keywords} <= {"verbose", "batch_size", "x"}


def _loop_of_calls(model: ast.expr, site: Site) -> ast.AST | None:
    """The loop that calls predict of one and the same model many times."""
    loop = loops.eager_loop(site)
    if loop is None or loops.is_short(loop, _FEW, site):
        return None
    if not _matters(loop, site) or _ASIDE.search(site.scope.name):
        return None
    root = loaded_names(model)
    if root & loops.target_names(loop) or (root - {"self"}) & site.module.once(stored_names, loop):
        return None  # another model in each turn
    return None if site.module.once(_is_of_another_kind, loop, site.scope) else loop


def _is_of_another_kind(loop: Loop, scope: Scope) -> bool:
    """Whether it fills a figure, trains whole models, or goes through epochs."""
    if _fills_figure(loop, scope) or _fits(loop, scope):
        return True
    return loops.names_epochs(loop) and not isinstance(loop, ast.While) and not _steps(loop, scope)


def _fills_figure(loop: Loop, scope: Scope) -> bool:
    """`figure[i, j] = digit` in the loop, and `plt.imshow(figure)` behind it: one picture for a reader."""
    filled = {
        node.value.id
        for node in ast.walk(loop)
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name)
    }
    return bool(filled) and any(
        last_name(call.func) in ("imshow", "imsave", "imwrite", "matshow")
        and any(loaded_names(item) & filled for item in call.args)
        for call, _ in scope.facts.calls
    )


def _fits(loop: Loop, scope: Scope) -> bool:
    """A loop that trains whole models, such as one over folds."""
    for call, where in loops.calls_in(loop, scope):
        if last_name(call.func) in ("fit", "fit_generator") and where.loops[-1] is loop:
            epochs = keyword(call, "epochs")
            if epochs is None or constant(epochs) != 1:
                return True
    return False


def _steps(loop: Loop, scope: Scope) -> bool:
    """Whether the turns are single steps, although GANs call them epochs: `train_on_batch` is in the same turn."""
    return any(last_name(call.func) == "train_on_batch" for call, _ in loops.direct_calls(loop, scope))


def _has_fit(site: Site) -> bool:
    return any(last_name(call.func) in ("fit", "compile", "load_model") for call, _ in site.scope.facts.calls)


def _step_like(site: Site) -> bool:
    """A function that answers one input: no loop of its own, and short."""
    if not site.scope.is_function or site.scope.name in ("main", "evaluate", "test", "run"):
        return False
    if _ASIDE.search(site.scope.name) or loops.shows(site.scope.node):
        return False
    first, last = site.scope.extent()
    short = last - first < _SHORT
    return not site.scope.facts.loops and (short or not site.arms) and not _has_fit(site)


CAUSE = Cause(
    group="graph",
    explains=("gpu-idle", "input-bound", "launch-bound", "step-overhead"),
    cures=("direct-predict", "direct-fit"),
    replaces=("step-overhead/python-between",),
    in_run=in_run,
    patterns=(_predict, _fit_every_step),
)
