"""`prepared-runs` in a running program."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from flatout.cures._keras_arguments import caller_location
from flatout.cures._spec import Hooks
from flatout.cures.prepared_runs._prepared import Runs
from flatout.observe.injection import Injection
from flatout.observe.private_names import patch


def on_tensorflow(injection: Injection, module: ModuleType) -> None:
    runs = Runs(lambda: injection.changed(f"fetches and feeds are looked up once{caller_location()}"))

    def wrap(original: Any) -> Any:
        def _run(self: Any, handle: Any, fetches: Any, feed_dict: Any, options: Any, run_metadata: Any) -> Any:
            prepared = runs.prepare(self, fetches, feed_dict) if handle is None else None
            if prepared is None:
                return original(self, handle, fetches, feed_dict, options, run_metadata)
            plan, fed = prepared
            run = self._call_tf_sessionrun
            values = self._do_call(run, options, fed, plan.tensors, plan.targets, run_metadata)
            return plan.handler.build_results(self, values)

        return _run

    patch("session-inner-run", wrap)


HOOKS = Hooks(tensorflow=on_tensorflow)
