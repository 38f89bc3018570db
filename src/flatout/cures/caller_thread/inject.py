"""`caller-thread` in a running program."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from flatout.cures._keras_arguments import caller_location
from flatout.cures._spec import Hooks
from flatout.observe.injection import Injection
from flatout.observe.private_names import patch


def on_tensorflow(injection: Injection, module: ModuleType) -> None:
    def wrap(original: Any) -> Any:
        def __init__(self: Any, target: Any = "", graph: Any = None, config: Any = None) -> None:
            own = None if target else _in_the_caller(config)
            if own is not None:
                injection.changed(f"the session runs its ops in the calling thread{caller_location()}")
            original(self, target, graph, config if own is None else own)

        return __init__

    patch("session-init", wrap)


def _in_the_caller(config: Any) -> Any:
    """A copy of the configuration with the setting; None where the program has chosen its threads itself."""
    try:
        from tensorflow.core.protobuf.config_pb2 import ConfigProto
        from tensorflow.python.eager import context

        given = context.context().config if config is None else config  # as the session itself does
        if not isinstance(given, ConfigProto) or given.inter_op_parallelism_threads:
            return None
        if given.use_per_session_threads or given.session_inter_op_thread_pool:
            return None
        own = ConfigProto()
        own.CopyFrom(given)
        own.inter_op_parallelism_threads = -1
    except Exception:  # a configuration of another kind: the session itself will say what is wrong with it
        return None
    return own


HOOKS = Hooks(tensorflow=on_tensorflow)
