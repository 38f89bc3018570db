"""Writes down what the program computes in its first steps, so that a trial can be compared with the baseline.

Nothing is added to a graph and nothing is pulled while the program runs, but for a few snapshots of the weights: values
that pass by are kept as they are and read when the numbers are written. `measure.parity` reads the file.

- weights: every trainable variable in the order of creation, after 1, 2, 4 … 128 steps: a checksum of all its bytes
  and a sample of its elements
- series: scalars by call, with the steps that were made before it: the loss in the logs of `fit`, what a training
  function returns, the target of an eager tape, what `Session.run` fetches
- outputs: all elements of the first results of `predict`, of models and of functions, one after the other, however they
  are batched
"""

from __future__ import annotations

import functools
import json
import os
import threading
import weakref
import zlib
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from flatout.observe.observer import Observer
from flatout.observe.private_names import Missing, patch
from flatout.observe.probe import Probe
from flatout.observe.ticks import KERAS, TRACE

SNAPSHOTS = (1, 2, 4, 8, 16, 32, 64, 128)
MOST_STEPS = 128
MOST_OF_A_VARIABLE = 2_000
MOST_OF_ALL = 200_000
MOST_OUTPUTS = 100_000
"""Elements of one kind of output that are kept."""
MOST_SERIES = 40

wanted = False
"""Whether `tick` has anything left to do: the gate asks at every step."""


class _Seen:
    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.variables: list[Any] = []
        self.snapshots: dict[int, dict[int, tuple[str, int, Any]]] = {}
        self.series: dict[str, list[tuple[int, Any, int]]] = {}
        self.outputs: dict[str, list[Any]] = {}
        self.output_sizes: dict[str, int] = {}
        self.made = 0
        """Steps that the program has made, by the gate's count."""
        self.fit_steps = 0
        self.calls: dict[str, int] = {}
        self.session: Any = None
        self.kept = 0
        self.written = 0
        """How much was kept, and how much of it when the file was last written."""
        self.lock = threading.Lock()


class _Thread(threading.local):
    inside = False


_seen: _Seen | None = None
_thread = _Thread()


def begin(directory: str) -> None:
    """From now on, what is computed is kept for the file in this directory."""
    global _seen, wanted
    _seen = _Seen(directory)
    wanted = True


def on_tensorflow(observer: Observer, module: ModuleType) -> None:
    begin(observer.recorder.directory)
    for key, wrap in (
        ("variable-init", _wrap_variable),
        ("function-call", _wrap_function(observer)),
        ("concrete-call", _wrap_function(observer)),
        ("tape-gradient", _wrap_tape(observer)),
        ("session-run", _wrap_session),
    ):
        _try(observer, key, wrap)


def on_keras(observer: Observer, module: ModuleType) -> None:
    _try(observer, "fit-begin", _wrap_fit_begin)
    _try(observer, "fit-end", _wrap_fit)
    _try(observer, "predict-end", _wrap_predict)
    _try(observer, "predict-on-batch", _wrap_predict_on_batch)
    _try(observer, "model-call", _wrap_model(observer))


def on_tf_keras(observer: Observer, module: ModuleType) -> None:
    _try(observer, "legacy-fit-begin", _wrap_fit_begin)
    _try(observer, "legacy-fit-end", _wrap_fit)
    _try(observer, "legacy-predict-end", _wrap_predict)
    _try(observer, "legacy-predict-on-batch", _wrap_predict_on_batch)
    _try(observer, "legacy-model-call", _wrap_model(observer))


def _try(observer: Observer, key: str, wrap: Any) -> None:
    try:
        patch(key, wrap)
    except Missing as missing:
        observer.note(f"numbers are compared without {missing}")


# weights


def _wrap_variable(original: Any) -> Any:
    def __init__(self: Any, trainable: Any = None, *args: Any, **keywords: Any) -> None:
        original(self, trainable, *args, **keywords)
        if trainable and _seen is not None and type(self).__name__ != "_UnreadVariable":
            _seen.variables.append(weakref.ref(self))

    return __init__


def tick(count: int) -> None:
    """The program has made `count` steps. Called by the gate while `wanted`."""
    global wanted
    if _seen is None:
        return
    _seen.made = count
    if count in _seen.snapshots:
        return
    if count in SNAPSHOTS:
        try:
            _seen.snapshots[count] = _snapshot(_seen)
        except Exception:  # a variable without a value, a graph that is closed: compare without this one
            _seen.snapshots[count] = {}
        _seen.kept += 1
    if count >= SNAPSHOTS[-1]:
        wanted = False


def _snapshot(seen: _Seen) -> dict[int, tuple[str, int, Any]]:
    import numpy as np

    found: dict[int, tuple[str, int, Any]] = {}
    alive = [(index, one()) for index, one in enumerate(seen.variables)]
    most = max(1, min(MOST_OF_A_VARIABLE, MOST_OF_ALL // max(1, len(alive))))
    for index, array in _values(seen, [(index, one) for index, one in alive if one is not None]):
        flat = np.ascontiguousarray(array).reshape(-1)
        sample = flat[:: max(1, -(-flat.size // most))]
        name = f"{array.dtype}{list(array.shape)}"
        found[index] = (name, zlib.crc32(flat.view(np.uint8).data), _plain(sample))
    return found


def _values(seen: _Seen, variables: list[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
    from tensorflow.python.eager import context, record
    from tensorflow.python.ops import gen_resource_variable_ops

    if context.executing_eagerly():
        with record.stop_recording():
            for index, one in variables:
                try:
                    value = gen_resource_variable_ops.read_variable_op(one.handle, one.dtype)._numpy()
                except Exception:  # made in a graph, or without a value yet
                    continue
                yield index, value
    if seen.session is not None:
        session = seen.session()
        graph = None if session is None else session.graph
        mine = [(index, one._graph_element) for index, one in variables if _graph_of(one) is graph is not None]
        if mine:
            values = session._flatout_plain_run(session, [element for _, element in mine])
            yield from zip((index for index, _ in mine), values, strict=True)


def _graph_of(variable: Any) -> Any:
    element = getattr(variable, "_graph_element", None)
    return getattr(element, "graph", None) if element is not None else None


def _plain(array: Any) -> Any:
    """Of a type that numpy itself knows."""
    import numpy as np

    array = np.asarray(array)
    return array if array.dtype.kind in "fiub" and array.dtype.name != "bfloat16" else array.astype(np.float32)


# scalars and outputs


def _note_scalar(name: str, step: int, value: Any) -> None:
    if _seen is not None and step <= MOST_STEPS and (name in _seen.series or len(_seen.series) < MOST_SERIES):
        _seen.series.setdefault(name, []).append((step, value, _seen.made))
        _seen.kept += 1


def _note_output(name: str, value: Any) -> None:
    if _seen is None or _seen.output_sizes.get(name, 0) >= MOST_OUTPUTS or len(_seen.outputs) > MOST_SERIES:
        return
    size = 1
    for dimension in value.shape:
        size *= int(dimension)
    _seen.output_sizes[name] = _seen.output_sizes.get(name, 0) + size
    _seen.outputs.setdefault(name, []).append(value)
    _seen.kept += 1


def _note_results(name: str, results: Any, step: int) -> None:
    """Keep what a call returned."""
    from tensorflow.python.util import nest

    for place, value in enumerate(nest.flatten(results)):
        if not _is_floating(value):
            continue
        if len(value.shape) == 0:
            _note_scalar(f"{name}[{place}]", step, value)
        else:
            _note_output(f"{name}[{place}]", value)


def _is_floating(value: Any) -> bool:
    """A tensor that is there already, or an array."""
    dtype = getattr(value, "dtype", None)
    if hasattr(value, "_numpy"):
        return bool(dtype.is_floating) if dtype is not None else False
    return getattr(dtype, "kind", "") == "f" and hasattr(value, "shape")


def _wrap_fit_begin(original: Any) -> Any:
    def on_train_batch_begin(self: Any, batch: Any, logs: Any = None) -> Any:
        if wanted and isinstance(batch, int):
            self._flatout_first, self._flatout_before = batch, _iterations(self)
        return original(self, batch, logs)

    return on_train_batch_begin


def _wrap_fit(original: Any) -> Any:
    def on_train_batch_end(self: Any, batch: Any, logs: Any = None) -> Any:
        if wanted and _seen is not None:
            _seen.fit_steps += _steps_of_fit(self, batch)
            loss = logs.get("loss") if hasattr(logs, "get") else None
            if loss is not None:
                _note_scalar("fit loss", _seen.fit_steps, loss)
        return original(self, batch, logs)

    return on_train_batch_end


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


def _wrap_predict(original: Any) -> Any:
    def on_predict_batch_end(self: Any, batch: Any, logs: Any = None) -> Any:
        if hasattr(logs, "get"):
            _note_prediction(logs.get("outputs"))
        return original(self, batch, logs)

    return on_predict_batch_end


def _wrap_predict_on_batch(original: Any) -> Any:
    @functools.wraps(original)
    def predict_on_batch(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        _note_prediction(result)
        return result

    return predict_on_batch


def _note_prediction(results: Any) -> None:
    """Under one name, in whichever way it was asked for."""
    if wanted and _seen is not None and _seen.calls.get("predict", 0) < MOST_STEPS:
        _seen.calls["predict"] = _seen.calls.get("predict", 0) + 1
        _note_results("predict", results, 1)


def _outermost(observer: Observer, original: Any, name_of: Any) -> Any:
    """Keep what the outermost call of a function or model returns; calls inside `fit`, of others or of a trace are
    parts of something that is kept already."""
    from tensorflow.python.eager import context

    thread = observer.thread

    def __call__(self: Any, *args: Any, **keywords: Any) -> Any:
        if not wanted or _thread.inside or thread.busy & (KERAS | TRACE) or not context.executing_eagerly():
            return original(self, *args, **keywords)
        _thread.inside = True
        try:
            results = original(self, *args, **keywords)
        finally:
            _thread.inside = False
        if _seen is not None:
            name = name_of(self)
            step = _seen.calls.get(name, 0) + 1
            if step <= MOST_STEPS:
                _seen.calls[name] = step
                _note_results(name, results, step)
        return results

    return __call__


def _wrap_function(observer: Observer) -> Any:
    return lambda original: _outermost(observer, original, _function_name)


def _wrap_model(observer: Observer) -> Any:
    return lambda original: _outermost(observer, original, lambda model: "model")


def _function_name(function: Any) -> str:
    name = getattr(function, "_name", None) or getattr(function, "name", None) or "function"
    return str(name.decode("utf-8", "replace") if isinstance(name, bytes) else name)


def _wrap_tape(observer: Observer) -> Any:
    def wrap(original: Any) -> Any:
        def gradient(self: Any, target: Any, *args: Any, **keywords: Any) -> Any:
            if wanted and _seen is not None and hasattr(target, "_numpy") and not observer.thread.busy & KERAS:
                step = _seen.calls["tape"] = _seen.calls.get("tape", 0) + 1
                if step <= MOST_STEPS and target.dtype.is_floating and target.shape.rank == 0:
                    _note_scalar("tape target", step, target)
            return original(self, target, *args, **keywords)

        return gradient

    return wrap


def _wrap_session(original: Any) -> Any:
    def run(self: Any, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        if wanted and _seen is not None:
            _keep_session(_seen, self, original)
        results = original(self, fetches, feed_dict, options, run_metadata)
        if wanted and _seen is not None:
            name = f"run {_fetched(fetches)}"
            step = _seen.calls[name] = _seen.calls.get(name, 0) + 1
            if step <= MOST_STEPS:
                import numpy as np
                from tensorflow.python.util import nest

                for place, value in enumerate(nest.flatten(results)):
                    if isinstance(value, (np.floating, np.ndarray)) and np.issubdtype(value.dtype, np.floating):
                        if np.ndim(value) == 0:
                            _note_scalar(f"{name}[{place}]", step, value)
                        else:
                            _note_output(f"{name}[{place}]", value.copy())
        return results

    return run


def _keep_session(seen: _Seen, session: Any, run: Any) -> None:
    if seen.session is None or seen.session() is not session:
        while hasattr(run, "__wrapped__"):  # a probe would take our look at the weights for a step
            run = run.__wrapped__
        session._flatout_plain_run = run
        seen.session = weakref.ref(session)


def _fetched(fetches: Any) -> str:
    from tensorflow.python.util import nest

    return ",".join(str(getattr(one, "name", one))[:40] for one in nest.flatten(fetches))[:120]


# the file


def write() -> None:
    """All that was kept so far, in place of what was written before."""
    if _seen is None or _seen.kept == _seen.written:
        return
    import numpy as np

    with _seen.lock:
        _seen.written = _seen.kept
        arrays: dict[str, Any] = {}
        weights = {
            str(count): {
                str(index): [name, checksum, _put(arrays, f"weights/{count}/{index}", sample)]
                for index, (name, checksum, sample) in snapshot.items()
            }
            for count, snapshot in _seen.snapshots.items()
        }
        series: dict[str, int] = {}
        for name, found in _seen.series.items():
            _put(
                arrays, f"series/{len(series)}", np.array([[step, _scalar(value), made] for step, value, made in found])
            )
            series[name] = len(series)
        outputs: dict[str, int] = {}
        for name, parts in _seen.outputs.items():
            flat = np.concatenate([_plain(_numpy(part)).reshape(-1) for part in parts])[:MOST_OUTPUTS]
            _put(arrays, f"outputs/{len(outputs)}", flat)
            _seen.outputs[name] = [flat]  # read once, and let the tensors go
            outputs[name] = len(outputs)
        arrays["index"] = np.array(json.dumps({"weights": weights, "series": series, "outputs": outputs}))
        path = os.path.join(_seen.directory, "numbers.npz")
        with open(f"{path}.new", "wb") as stream:
            np.savez(stream, **arrays)
        os.replace(f"{path}.new", path)


def _put(arrays: dict[str, Any], key: str, array: Any) -> str:
    arrays[key] = array
    return key


def _numpy(value: Any) -> Any:
    return value._numpy() if hasattr(value, "_numpy") else value


def _scalar(value: Any) -> float:
    try:
        return float(_numpy(value))
    except (TypeError, ValueError):
        return float(value.numpy()) if hasattr(value, "numpy") else float("nan")


PROBE = Probe("values", tensorflow=on_tensorflow, keras=on_keras, tf_keras=on_tf_keras)
