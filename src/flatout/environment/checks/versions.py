"""Versions of Python, TensorFlow, Keras, NumPy and protobuf that are known to cost time.

Only what is documented or was measured is listed, each version with its reason.
"""

from __future__ import annotations

from collections.abc import Iterator

from flatout.environment.packages import TENSORFLOWS, release
from flatout.environment.reading import Check, Facts, Reading, part, variable


def check(facts: Facts) -> Iterator[Reading]:
    versions = part(part(facts, "packages"), "versions")
    tensorflow = str(part(facts, "tensorflow").get("version") or "")
    tensorflow = tensorflow or next((str(versions[name]) for name in TENSORFLOWS if name in versions), "")
    found = [*_tensorflow(facts, release(tensorflow), tensorflow), *_protobuf(facts), *_python(facts)]
    yield from found
    if not found and tensorflow:
        names = ("keras", "numpy", "protobuf")
        shown = ", ".join(f"{name} {versions[name]}" for name in names if name in versions)
        yield Reading("versions", shown or tensorflow, "ok", "None of them is known to be slow.")


def _tensorflow(facts: Facts, version: tuple[int, ...], shown: str) -> Iterator[Reading]:
    if not version:
        return
    if version < (2, 12):
        yield Reading(
            "tensorflow version",
            shown,
            "warning",
            "flatout supports TensorFlow 2.12 and newer; some of its views will be missing.",
            'pip install --upgrade "tensorflow>=2.12"; up to 2.15 it has Keras 2.',
        )
    wheels = part(part(facts, "packages"), "cuda_wanted")
    if version[:3] == (2, 16, 1) and wheels:
        # The wheel of 2.16.1 does not look where pip puts the libraries (tensorflow/tensorflow#63362).
        yield Reading(
            "tensorflow version",
            shown,
            "warning",
            "This release does not find the CUDA libraries that its own [and-cuda] extra installs, and "
            "computes on "
            "the CPU.",
            "Update TensorFlow, or put the nvidia packages' lib directories on LD_LIBRARY_PATH.",
        )
    capabilities = [str(gpu.get("compute_cap") or "") for gpu in part(facts, "nvidia").get("gpus") or ()]
    if version >= (2, 17) and any(capability.startswith("5.") for capability in capabilities):
        yield Reading(
            "tensorflow version",
            shown,
            "fault",
            "From 2.17 on the wheels hold no kernels for Maxwell GPUs (compute capability 5.x).",
            "Use TensorFlow 2.16 with this GPU.",
        )


def _protobuf(facts: Facts) -> Iterator[Reading]:
    implementation = part(facts, "tensorflow").get("protobuf")
    if implementation == "python" or variable(facts, "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION") == "python":
        yield Reading(
            "protobuf",
            "pure Python",
            "warning",
            "protobuf runs in its pure Python form: loading models and parsing records in Python is many times slower.",
            "unset PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION and install protobuf from a wheel.",
        )


def _python(facts: Facts) -> Iterator[Reading]:
    system = part(facts, "system")
    version = release(str(system.get("python") or ""))
    if version and version < (3, 10):
        meaning = "flatout needs Python 3.10, and so do the TensorFlow releases that are maintained."
        yield Reading("python", str(system["python"]), "warning", meaning, "Use Python 3.10 to 3.13.")
    if system.get("implementation") not in (None, "CPython"):
        meaning = "TensorFlow has wheels for CPython only."
        yield Reading("python", str(system["implementation"]), "warning", meaning, "Use CPython.")


CHECK = Check(group="tensorflow", check=check)
