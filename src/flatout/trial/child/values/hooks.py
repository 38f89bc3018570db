"""Sees the values of a program pass by: what variables are made, what calls return, what `fit` logs."""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Any

from flatout.observe.observer import Observer, Probe
from flatout.observe.private_names import Missing, Wrap, patch
from flatout.observe.ticks import KERAS, TRACE
from flatout.trial.child.values.kept import Values
from flatout.trial.child.values.leaves import leaves
from flatout.trial.child.values.tapes import tapes


class _Thread(threading.local):
    inside = False
    in_model = False


_thread = _Thread()


def probe_of(values: Values) -> Probe:
    """The probe that fills `values`."""

    def on_tensorflow(observer: Observer, module: ModuleType) -> None:
        values.begin(values.directory)
        results_of_functions = _outermost(observer, values, _function_name)
        _try(observer, "variable-init", _variables(values))
        _try(observer, "ref-variable-init", _ref_variables(values))
        _try(observer, "function-call", results_of_functions)
        _try(observer, "concrete-call", results_of_functions)
        _try(observer, "tape-gradient", _tape_targets(observer, values))
        _try(observer, "session-run", _session_results(values))

    def on_keras(observer: Observer, module: ModuleType, prefix: str = "") -> None:
        _try(observer, f"{prefix}fit-begin", _fit_begin(values))
        _try(observer, f"{prefix}fit-end", _fit_loss(values))
        _try(observer, f"{prefix}predict-end", _predicted(values))
        _try(observer, f"{prefix}predict-on-batch", _predicted_on_batch(values))
        if not prefix:
            _try(observer, "train-on-batch", _trained_on_batch(values))
            _try(observer, "evaluate-end", _evaluated(values))
            _try(observer, "evaluation-end", _validated(values))
        _try(observer, f"{prefix}model-call", _outermost(observer, values, lambda model: "model"))
        if values.dense:
            _try(observer, f"{prefix}model-call", _scores(observer, values))

    def on_tf_keras(observer: Observer, module: ModuleType) -> None:
        on_keras(observer, module, "legacy-")
        _try(observer, "legacy-batch-counters", _batch_counters)

    return Probe("values", on_tensorflow, on_keras, on_tf_keras)


def _try(observer: Observer, key: str, wrap: Wrap) -> None:
    try:
        patch(key, wrap)
    except Missing as missing:
        observer.note(f"values are compared without {missing}")


def _batch_counters(original: Any) -> Any:
    """tf_keras counts batches in variables. How many of them validation and `predict` take is no result."""

    def _init_batch_counters(self: Any) -> None:
        original(self)
        for name in ("_test_counter", "_predict_counter"):
            if (counter := getattr(self, name, None)) is not None:
                counter._flatout_not_compared = True

    return _init_batch_counters


def _variables(values: Values) -> Wrap:
    def wrap(original: Any) -> Any:
        def __init__(self: Any, trainable: Any = None, *args: Any, **keywords: Any) -> None:
            original(self, trainable, *args, **keywords)
            if type(self).__name__ == "_UnreadVariable":
                return
            if trainable:
                values.variables.append(weakref.ref(self))
            elif values.dense:
                values.others.append(weakref.ref(self))

        return __init__

    return wrap


def _ref_variables(values: Values) -> Wrap:
    """Variables as `disable_v2_behavior` makes them."""

    def wrap(original: Any) -> Any:
        def __init__(self: Any, *args: Any, **keywords: Any) -> None:
            original(self, *args, **keywords)
            if getattr(self, "_trainable", False):
                values.variables.append(weakref.ref(self))
            elif values.dense:
                values.others.append(weakref.ref(self))

        return __init__

    return wrap


# ── fit and predict ──────────────────────────────────────────────────────────────────────────────────────────────────


def _fit_begin(values: Values) -> Wrap:
    def wrap(original: Any) -> Any:
        def on_train_batch_begin(self: Any, batch: Any, logs: Any = None) -> Any:
            if values.wanted and isinstance(batch, int):
                self._flatout_first, self._flatout_before = batch, _iterations(self)
            return original(self, batch, logs)

        return on_train_batch_begin

    return wrap


def _fit_loss(values: Values) -> Wrap:
    def wrap(original: Any) -> Any:
        def on_train_batch_end(self: Any, batch: Any, logs: Any = None) -> Any:
            if values.wanted:
                values.fit_steps += _steps_of_fit(self, batch)
                loss = logs.get("loss") if hasattr(logs, "get") else None
                if loss is not None:
                    values.keep_scalar("fit loss", values.fit_steps, loss)
            return original(self, batch, logs)

        return on_train_batch_end

    return wrap


def _trained_on_batch(values: Values) -> Wrap:
    """The loss under the name of `fit`: either may stand for the other."""

    def wrap(original: Any) -> Any:
        @functools.wraps(original)
        def train_on_batch(self: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(self, *args, **kwargs)
            if values.wanted:
                values.fit_steps += 1
                loss = result.get("loss") if isinstance(result, dict) else result
                loss = loss[0] if isinstance(loss, (list, tuple)) and loss else loss
                if isinstance(loss, float) or getattr(loss, "ndim", None) == 0:
                    values.keep_scalar("fit loss", values.fit_steps, loss)
            return result

        return train_on_batch

    return wrap


def _steps_of_fit(callbacks: Any, batch: Any) -> int:
    """How many steps this batch stands for: by what the optimizer has counted. Of several steps in one call, the last
    call of an epoch may make fewer than Keras tells the callbacks."""
    before: int | None = getattr(callbacks, "_flatout_before", None)
    now = _iterations(callbacks)
    if before is not None and now is not None and now > before:
        return now - before
    first = getattr(callbacks, "_flatout_first", batch)
    return max(1, batch - first + 1) if isinstance(batch, int) else 1


def _iterations(callbacks: Any) -> int | None:
    model: Any = getattr(callbacks, "_model", None) or getattr(callbacks, "model", None)
    try:
        return int(model.optimizer.iterations.numpy())
    except Exception:  # no optimizer that counts
        return None


def _evaluated(values: Values) -> Wrap:
    """In a run that is only compared: what an evaluation has come to, batch by batch. Of a validation in `fit` the last
    batch has what it comes to (`_validated`): a change may cut it into other batches."""

    def wrap(original: Any) -> Any:
        def on_test_batch_end(self: Any, batch: Any, logs: Any = None) -> Any:
            if values.dense and values.wanted and hasattr(logs, "items"):
                if hasattr(self, "_flatout_first"):  # this list has seen a batch of the training
                    self._flatout_validated = logs
                else:
                    _keep_evaluation(values, logs)
            return original(self, batch, logs)

        return on_test_batch_end

    return wrap


def _validated(values: Values) -> Wrap:
    def wrap(original: Any) -> Any:
        def on_test_end(self: Any, logs: Any = None) -> Any:
            last = getattr(self, "_flatout_validated", None)
            if last is not None:
                self._flatout_validated = None
                _keep_evaluation(values, last)
            return original(self, logs)

        return on_test_end

    return wrap


def _keep_evaluation(values: Values, logs: Any) -> None:
    call = values.count_call("evaluation")
    for name, value in logs.items() if call is not None else ():
        if getattr(value, "ndim", None) == 0 or isinstance(value, float):
            values.keep_scalar(f"evaluation {name}", call or 0, value)


def _predicted(values: Values) -> Wrap:
    def wrap(original: Any) -> Any:
        def on_predict_batch_end(self: Any, batch: Any, logs: Any = None) -> Any:
            if hasattr(logs, "get"):
                _keep_prediction(values, logs.get("outputs"))
            return original(self, batch, logs)

        return on_predict_batch_end

    return wrap


def _predicted_on_batch(values: Values) -> Wrap:
    def wrap(original: Any) -> Any:
        @functools.wraps(original)
        def predict_on_batch(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            _keep_prediction(values, result)
            return result

        return predict_on_batch

    return wrap


def _keep_prediction(values: Values, results: Any) -> None:
    """Under one name, in whichever way the program predicts."""
    if values.wanted and values.count_call("predict") is not None:
        values.keep_results("predict", results, 1)


# ── calls of functions and models ────────────────────────────────────────────────────────────────────────────────────


def _outermost(observer: Observer, values: Values, name_of: Callable[[Any], str]) -> Wrap:
    """Keep what the outermost call of a function or model returns; calls inside `fit`, of others or of a trace are
    parts of something that is kept already."""
    from tensorflow.python.eager import context

    thread, eager = observer.thread, context.executing_eagerly

    def wrap(original: Any) -> Any:
        def __call__(self: Any, *args: Any, **keywords: Any) -> Any:
            if not values.wanted or _thread.inside or thread.busy & (KERAS | TRACE) or not eager():
                return original(self, *args, **keywords)
            _thread.inside = True
            try:
                results = original(self, *args, **keywords)
            finally:
                _thread.inside = False
            name = name_of(self)
            call = values.count_call(name)
            if call is not None:
                values.keep_results(name, results, call)
            return results

        return __call__

    return wrap


def _scores(observer: Observer, values: Values) -> Wrap:
    """What the outermost model returns, eager or traced; not inside of `fit` or `predict`, nor where a tape looks on:
    what is trained shows in its weights."""
    record, thread = tapes(), observer.thread

    def wrap(original: Any) -> Any:
        def __call__(self: Any, *args: Any, **keywords: Any) -> Any:
            outer = not _thread.in_model and values.wanted and not thread.busy & KERAS
            if not outer or values.scores is None or record.could_possibly_record():
                return original(self, *args, **keywords)
            _thread.in_model = True
            try:
                results = original(self, *args, **keywords)
            finally:
                _thread.in_model = False
            values.scores.keep(results)
            return results

        return __call__

    return wrap


def _function_name(function: Any) -> str:
    name = getattr(function, "_name", None) or getattr(function, "name", None) or "function"
    return str(name.decode("utf-8", "replace") if isinstance(name, bytes) else name)


def _tape_targets(observer: Observer, values: Values) -> Wrap:
    thread = observer.thread

    def wrap(original: Any) -> Any:
        def gradient(self: Any, target: Any, *args: Any, **keywords: Any) -> Any:
            if values.wanted and values.targets is not None:
                values.targets.keep(target)
            elif values.wanted and hasattr(target, "_numpy") and not thread.busy & KERAS:
                call = values.count_call("tape")
                if call is not None and target.dtype.is_floating and target.shape.rank == 0:
                    values.keep_scalar("tape target", call, target)
            return original(self, target, *args, **keywords)

        return gradient

    return wrap


# ── sessions of TF1 ──────────────────────────────────────────────────────────────────────────────────────────────────


def _session_results(values: Values) -> Wrap:
    def wrap(original: Any) -> Any:
        def run(self: Any, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
            if values.wanted:
                _keep_session(values, self, original)
            results = original(self, fetches, feed_dict, options, run_metadata)
            if values.wanted:
                _keep_fetched(values, fetches, results)
            return results

        return run

    return wrap


def _keep_session(values: Values, session: Any, run: Any) -> None:
    if values.session is None or values.session() is not session:
        while hasattr(run, "__wrapped__"):  # a probe would take our look at the weights for a step
            run = run.__wrapped__
        session._flatout_plain_run = run
        values.session = weakref.ref(session)


def _keep_fetched(values: Values, fetches: Any, results: Any) -> None:
    import numpy as np

    name = f"run {','.join(str(getattr(one, 'name', one))[:40] for one in leaves(fetches))[:120]}"
    call = values.count_call(name)
    if call is None:
        return
    for index, value in enumerate(leaves(results)):
        if isinstance(value, (np.floating, np.ndarray)) and np.issubdtype(value.dtype, np.floating):
            if np.ndim(value) == 0:
                values.keep_scalar(f"{name}[{index}]", call, value)
            else:
                values.keep_output(f"{name}[{index}]", value.copy())
