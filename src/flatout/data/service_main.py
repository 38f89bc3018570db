"""A process of the tf.data service: `head` runs the dispatcher and the pipeline, `worker` computes elements.

It ends when its standard input is closed.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from typing import Any

from flatout.model.errors import FlatoutError, ServiceFailed


def head(settings: dict[str, Any], say: Any) -> None:
    import tensorflow as tf

    from flatout.data import service

    dataset = _make_dataset(settings["target"])
    config = tf.data.experimental.service.DispatcherConfig(port=settings["port"])
    try:
        dispatcher = tf.data.experimental.service.DispatchServer(config)
    except (RuntimeError, tf.errors.OpError) as error:
        raise ServiceFailed(
            f"The dispatcher cannot listen on port {settings['port']}: {error}. Give another --port."
        ) from None
    address = dispatcher.target.replace("localhost", settings["host"])
    number = None
    if dataset is not None:
        try:
            registered = tf.data.experimental.service.register_dataset(address, dataset).numpy()
            number = registered.decode() if isinstance(registered, bytes) else str(registered)
        except Exception as error:
            raise ServiceFailed(f"The pipeline cannot be served: {service.reason_against(dataset, error)}") from None
    say("address", {"address": address, "dataset_id": number})
    for line in sys.stdin:
        if line.strip() == "measure":
            found = service.measure(dataset, address)
            speedup = dataclasses.astuple(found.speedup) if found.speedup else None
            rates = {"local": found.local_per_second, "service": found.service_per_second}
            say("measured", {"speedup": speedup, **rates, "why_not": found.why_not})


def worker(settings: dict[str, Any], say: Any) -> None:
    import tensorflow as tf

    config = tf.data.experimental.service.WorkerConfig(
        dispatcher_address=settings["address"].split("://")[-1],
        worker_address=f"{settings['host']}:%port%",
        dispatcher_timeout_ms=60_000,
    )
    try:
        running = tf.data.experimental.service.WorkerServer(config)
    except (RuntimeError, tf.errors.OpError) as error:
        raise ServiceFailed(f"A worker cannot reach {settings['address']}: {str(error).splitlines()[0]}.") from None
    say("ready", {})
    sys.stdin.read()
    del running


def _make_dataset(target: str | None) -> Any:
    if target is None:
        return None
    from flatout.data.shards.stream_main import Failed, make_dataset

    try:
        return make_dataset(target, endless=True)
    except Failed as error:
        raise ServiceFailed(str(error)) from None


def main(role: str, settings: dict[str, Any]) -> None:
    with open(settings["answer"], "w", encoding="utf-8", buffering=1) as answer:

        def say(word: str, content: Any) -> None:
            answer.write(json.dumps([word, content]) + "\n")

        try:
            {"head": head, "worker": worker}[role](settings, say)
        except FlatoutError as error:
            say("failed", str(error))
    # An orderly exit would wait for clients that may never disconnect.
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
