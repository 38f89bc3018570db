"""Which Keras a program gets: version 3, the older `tf_keras`, or Keras on another backend than TensorFlow.

`TF_USE_LEGACY_KERAS=1` makes `tf.keras` the package `tf_keras`, which must then be installed; some
libraries set it when they are imported. `KERAS_BACKEND` chooses what Keras 3 computes with.
"""

from __future__ import annotations

from collections.abc import Iterator

from flatout.environment.reading import Check, Facts, Reading, is_on, part, variable


def check(facts: Facts) -> Iterator[Reading]:
    versions = part(part(facts, "packages"), "versions")
    legacy = is_on(variable(facts, "TF_USE_LEGACY_KERAS"))
    backend = variable(facts, "KERAS_BACKEND")
    if legacy and "tf-keras" not in versions:
        yield Reading(
            "keras",
            "tf_keras, not installed",
            "fault",
            "TF_USE_LEGACY_KERAS asks for the package tf_keras: the first use of tf.keras raises ImportError.",
            "pip install tf-keras (the same minor version as TensorFlow), or unset TF_USE_LEGACY_KERAS.",
        )
    elif legacy:
        meaning = "tf.keras is the older Keras 2 code here, because TF_USE_LEGACY_KERAS is set."
        yield Reading("keras", f"tf_keras {versions['tf-keras']}", "info", meaning)
    elif "keras" in versions:
        yield Reading("keras", str(versions["keras"]), "ok", "tf.keras is this Keras.")
    if backend and backend != "tensorflow":
        yield Reading(
            "keras backend",
            backend,
            "warning",
            "Keras computes with another library than TensorFlow; flatout observes TensorFlow only.",
            "unset KERAS_BACKEND, or use that library's own tools.",
        )


CHECK = Check(group="settings", check=check)
