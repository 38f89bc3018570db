"""`direct-batch` in a running program."""

from __future__ import annotations

import functools
import inspect
from types import ModuleType
from typing import Any

from flatout.cures._batch_graphs import BatchGraphs
from flatout.cures._keras_arguments import caller_location
from flatout.cures._one_batch import Excluded, plain_logs
from flatout.cures._spec import Hooks
from flatout.observe.injection import Injection
from flatout.observe.private_names import patch
from flatout.observe.single_batches import is_batch


def on_keras(injection: Injection, module: ModuleType) -> None:
    _install(injection, "train")
    _install(injection, "test")


def _install(injection: Injection, kind: str) -> None:
    method = f"{kind}_on_batch"
    excluded, graphs = Excluded(injection, method), BatchGraphs(f"{kind}_function")

    def wrap(original: Any) -> Any:
        if not sets_metrics_back(original):
            injection.note(f"this Keras sets no metrics back in {method}: they add up over its calls")
            return original

        @functools.wraps(original)
        def call(self: Any, x: Any, y: Any = None, sample_weight: Any = None, *rest: Any, **more: Any) -> Any:
            data = (x, y, sample_weight)
            run = None
            if not rest and not any(value for name, value in more.items() if name != "return_dict"):  # class weights
                try:
                    if self not in excluded and graphs.is_ready(self) and is_batch(data):
                        run = graphs.traced(self, data)
                except Exception as error:  # nothing has been trained yet
                    excluded.add(self, error)
            if run is None:
                return original(self, *data, *rest, **more)
            logs = plain_logs(run())
            injection.changed(f"{method} sets metrics back in the graph of its step{caller_location()}")
            return logs if more.get("return_dict") else self._flatten_metrics_in_order(logs)

        return call

    patch(f"{kind}-on-batch", wrap)


def sets_metrics_back(method: Any) -> bool:
    """Whether a call for one batch forgets the batches before. Keras does so from 3.15 on."""
    return "reset_metrics" in inspect.unwrap(method).__code__.co_names


HOOKS = Hooks(keras=on_keras)
