"""GPUs that are there and that TensorFlow does not see.

The usual reasons: a variable that hides them, a build without CUDA, or libraries that could not be
loaded, which TensorFlow mentions in one line of its log and then computes on the CPU.
"""

from __future__ import annotations

from collections.abc import Iterator

from flatout.environment.reading import Check, Facts, Reading, part, variable

_COMPLAINTS = (
    "Cannot dlopen",
    "Could not load dynamic library",
    "failed call to cuInit",
    "CUDA_ERROR",
    "could not find",
)


def check(facts: Facts) -> Iterator[Reading]:
    nvidia, tensorflow = part(facts, "nvidia"), part(facts, "tensorflow")
    there = len(nvidia.get("gpus") or nvidia.get("device_files") or ())
    hidden = part(facts, "variables").get("CUDA_VISIBLE_DEVICES")
    # A child that was asked lists pairs of name and type; an observed run lists names, or none at all before
    # its first operation.
    devices = tensorflow.get("physical") or tensorflow.get("devices")
    if not there or not devices or not part(tensorflow, "build").get("is_cuda_build"):
        return
    seen = sum("GPU" in str(device) for device in devices)
    value = f"{seen} of {there}"
    if seen >= there:
        yield Reading("gpus seen", value, "ok", "TensorFlow sees every GPU.")
    elif hidden is not None:
        yield Reading(
            "gpus seen",
            f"{value} (CUDA_VISIBLE_DEVICES={hidden!r})",
            "warning" if seen == 0 else "info",
            "The variable hides GPUs from every program that is started here.",
            "unset CUDA_VISIBLE_DEVICES to use them all.",
        )
    else:
        messages = [str(line) for line in tensorflow.get("messages") or ()]
        said = next((line for line in messages if any(word in line for word in _COMPLAINTS)), "")
        libraries = variable(facts, "LD_LIBRARY_PATH")
        yield Reading(
            "gpus seen",
            value,
            "fault",
            "TensorFlow does not see a GPU that the driver shows, and computes on the CPU."
            + (f" It said: {said}" if said else ""),
            'pip install "tensorflow[and-cuda]" brings the libraries that it was built for'
            + ("; LD_LIBRARY_PATH may put others before them: try without it." if libraries else "."),
        )


CHECK = Check(group="gpu", check=check)
