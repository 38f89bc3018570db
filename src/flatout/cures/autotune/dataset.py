"""Options that keep TensorFlow from tuning the pipeline are taken back."""

from __future__ import annotations

from typing import Any

from flatout.cures._dataset import Proposal, Room

NAME = "autotune"
EQUIVALENCE = "exact"

SWITCHES = (
    ("autotune", "enabled"),
    ("experimental_optimization", "apply_default_optimizations"),
    ("experimental_optimization", "map_parallelization"),
    ("experimental_optimization", "map_and_batch_fusion"),
    ("experimental_optimization", "inject_prefetch"),
)


def rewrite(dataset: Any, room: Room) -> Proposal | None:
    import tensorflow as tf

    given, wanted, found = dataset.options(), tf.data.Options(), []
    for holder, name in SWITCHES:
        if getattr(getattr(given, holder, None), name, None) is False:
            setattr(getattr(wanted, holder), name, True)
            found.append(f"{holder}.{name}")
    if not found:
        return None
    return Proposal(dataset.with_options(wanted), f"{' and '.join(found)} switched on again")
