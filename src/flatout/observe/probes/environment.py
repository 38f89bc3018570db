"""What TensorFlow says of itself and its devices in this process."""

from __future__ import annotations

import contextlib
from types import ModuleType
from typing import Any

from flatout.observe.observer import Observer, Probe


def on_tensorflow(observer: Observer, module: ModuleType) -> None:
    def write() -> None:
        # Late: a request for devices initialises them, and when that happens is the program's decision.
        tf: Any = module
        facts: dict[str, Any] = {"version": tf.__version__, "build": {}, "devices": []}
        with contextlib.suppress(Exception):
            facts["build"] = dict(tf.sysconfig.get_build_info())
        inner: Any = None
        with contextlib.suppress(Exception):
            inner = __import__("tensorflow.python.eager.context", fromlist=["context"]).context()
        if getattr(inner, "_initialized", False):
            with contextlib.suppress(Exception):
                facts["devices"] = [device.name for device in tf.config.list_logical_devices()]
                facts["physical"] = [device.name for device in tf.config.list_physical_devices()]
            with contextlib.suppress(Exception):
                facts["intra_op_threads"] = tf.config.threading.get_intra_op_parallelism_threads()
                facts["inter_op_threads"] = tf.config.threading.get_inter_op_parallelism_threads()
            with contextlib.suppress(Exception):
                facts["soft_placement"] = tf.config.get_soft_device_placement()
            with contextlib.suppress(Exception):
                for device in tf.config.list_physical_devices("GPU"):
                    facts.setdefault("memory_growth", {})[device.name] = tf.config.experimental.get_memory_growth(
                        device
                    )
                    facts.setdefault("gpu", []).append(tf.config.experimental.get_device_details(device))
        observer.recorder.fact("tensorflow", **facts)

    observer.hooks.at_flush.append(write)


PROBE = Probe("environment", tensorflow=on_tensorflow)
