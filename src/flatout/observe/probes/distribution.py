"""Datasets that a strategy distributes: by which policy, and whether this process reads a part of the data only."""

from __future__ import annotations

import contextlib
import hashlib
from types import ModuleType
from typing import Any

from flatout.observe import stages
from flatout.observe.observer import Observer, Probe
from flatout.observe.private_names import Missing, patch
from flatout.source import users_code

MOST = 20
MOST_FILES = 100_000


def on_tensorflow(observer: Observer, module: ModuleType) -> None:
    datasets = Distributed(observer)
    for key, wrap in (("distribute-dataset", datasets.wrap_dataset), ("distribute-function", datasets.wrap_function)):
        try:
            patch(key, wrap)
        except Missing as name:
            observer.note(f"how datasets are divided between ranks is not seen: {name}")


class Distributed:
    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        self.known: set[Any] = set()

    def wrap_dataset(self, original: Any) -> Any:
        def experimental_distribute_dataset(strategy: Any, dataset: Any, *args: Any, **kwargs: Any) -> Any:
            self.note(strategy, dataset, int(getattr(strategy.extended, "_num_workers", 1) or 1), False)
            return original(strategy, dataset, *args, **kwargs)

        return experimental_distribute_dataset

    def wrap_function(self, original: Any) -> Any:
        def distribute_datasets_from_function(strategy: Any, dataset_fn: Any, *args: Any, **kwargs: Any) -> Any:
            def make(context: Any) -> Any:
                dataset = dataset_fn(context)
                self.note(strategy, dataset, int(getattr(context, "num_input_pipelines", 1) or 1), True)
                return dataset

            return original(strategy, make, *args, **kwargs)

        return distribute_datasets_from_function

    def note(self, strategy: Any, dataset: Any, pipelines: int, from_function: bool) -> None:
        try:
            chain = [stage for stage, _ in stages.chain(dataset)]
            where = next((stage._flatout_where for stage in chain if hasattr(stage, "_flatout_where")), None)
            key = (where, from_function, len(chain))
            if key in self.known or len(self.known) >= MOST:
                return
            self.known.add(key)
            self.observer.shared.describe_pipeline(dataset)
            names = [stages.kind(stage) for stage in chain]
            self.observer.recorder.fact(
                "distributed",
                strategy=type(strategy).__name__,
                replicas=int(strategy.num_replicas_in_sync),
                pipelines=pipelines,
                from_function=from_function,
                policy=_policy(dataset),
                shards="Shard" in names,
                service=any("Service" in name for name in names),
                batch=next((batch for stage in chain if (batch := _batch(stage)) is not None), None),
                cardinality=_cardinality(chain[-1]),
                where=where or users_code.here(2),
                **_source(chain),
            )
        except Exception as error:
            self.observer.note(f"a distributed dataset could not be described: {type(error).__name__}: {error}")


def _policy(dataset: Any) -> str | None:
    with contextlib.suppress(Exception):
        return str(dataset.options().experimental_distribute.auto_shard_policy.name).lower()
    return None


def _batch(stage: Any) -> int | None:
    value = stages.constant(getattr(stage, "_batch_size", None))
    return int(value) if isinstance(value, (int, float)) else None


def _cardinality(source: Any) -> int | None:
    with contextlib.suppress(Exception):
        return int(source.cardinality())
    return None


def _source(chain: list[Any]) -> dict[str, Any]:
    """The files that are read, as far as they are known before reading: how many, and which."""
    import tensorflow as tf

    for stage in reversed(chain):
        given = getattr(stage, "_filenames", None)
        if given is None:
            given = next((t for t in getattr(stage, "_tensors", ()) if t.dtype.name == "string"), None)
        with contextlib.suppress(Exception):
            value = tf.get_static_value(given) if given is not None else None
            if value is not None and value.size <= MOST_FILES:
                names = sorted(bytes(name) for name in value.ravel().tolist())
                return {"files": len(names), "source": hashlib.sha256(b"\0".join(names)).hexdigest()[:16]}
    return {"files": None, "source": ""}


PROBE = Probe("distribution", tensorflow=on_tensorflow)
