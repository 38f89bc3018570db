"""Which TensorFlow is installed, whether it imports, and whether it is built for this machine.

Several distributions install the same package `tensorflow` over one another: with `tensorflow` and
`tensorflow-cpu` both there, the files of the one installed last are in force, whatever pip lists.
"""

from __future__ import annotations

from collections.abc import Iterator

from flatout.environment.packages import TENSORFLOWS
from flatout.environment.reading import Check, Facts, Reading, part

_INSTALL = 'pip install "flatout[cpu]", or "flatout[gpu]" for NVIDIA GPUs, in the environment of your program.'


def check(facts: Facts) -> Iterator[Reading]:
    versions = part(part(facts, "packages"), "versions")
    tensorflow = part(facts, "tensorflow")
    present = [name for name in TENSORFLOWS if name in versions]
    if not present and not tensorflow.get("version") and not tensorflow.get("error"):
        yield Reading(
            "tensorflow",
            "not installed",
            "fault",
            f"Python {part(facts, 'system').get('python', '')} finds no TensorFlow.".replace("  ", " "),
            _INSTALL,
        )
        return
    if len(present) > 1:
        yield Reading(
            "tensorflow",
            ", ".join(f"{name} {versions[name]}" for name in present),
            "fault",
            "These distributions write the same files. Which build runs depends on the order they were installed in.",
            f"pip uninstall -y {' '.join(present)}, then install the one you mean.",
        )
    if tensorflow.get("error"):
        shown = f"{present[0]} {versions[present[0]]}" if present else "does not import"
        yield Reading("tensorflow", shown, "fault", f"It does not import: {tensorflow['error']}", _INSTALL)
        return
    version = str(tensorflow.get("version") or versions[present[0]])
    build = part(tensorflow, "build")
    if not build:
        yield Reading("tensorflow", version, "ok", "Installed.")
        return
    cuda, rocm = build.get("is_cuda_build"), build.get("is_rocm_build")
    kind = f"CUDA {build.get('cuda_version', '')}".strip() if cuda else "ROCm" if rocm else "CPU only"
    gpus = part(facts, "nvidia").get("gpus") or part(facts, "nvidia").get("device_files")
    if gpus and not cuda:
        yield Reading(
            "tensorflow",
            f"{version}, {kind}",
            "fault",
            "There is an NVIDIA GPU here, and this TensorFlow is built without CUDA: it will never use it.",
            f'pip uninstall -y {present[0] if present else "tensorflow-cpu"}; pip install "tensorflow[and-cuda]".',
        )
    else:
        yield Reading("tensorflow", f"{version}, {kind}", "ok", "Built for what is here.")


CHECK = Check(group="tensorflow", check=check)
