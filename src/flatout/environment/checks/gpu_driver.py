"""The NVIDIA driver and the GPUs, against the CUDA version that this TensorFlow was built with.

CUDA 11 needs driver 450, CUDA 12 needs 525 and CUDA 13 needs 580 at least; newer drivers serve older CUDA
versions. A GPU whose compute capability the build has no kernels for is served by compiling them when the
program first starts, which can take half an hour, or not at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from flatout.environment.packages import release
from flatout.environment.reading import Check, Facts, Reading, gibibytes, number, part

_NEEDED = {11: 450, 12: 525, 13: 580}
"""First driver branch that runs programs of a CUDA major version (NVIDIA's CUDA compatibility guide)."""


def check(facts: Facts) -> Iterator[Reading]:
    nvidia, build = part(facts, "nvidia"), part(part(facts, "tensorflow"), "build")
    gpus: list[Mapping[str, Any]] = list(nvidia.get("gpus") or ())
    files = nvidia.get("device_files") or ()
    if nvidia.get("error"):
        yield Reading(
            "gpu driver",
            "nvidia-smi fails",
            "fault" if files or nvidia.get("kernel_module") else "warning",
            f"The driver does not answer: {nvidia['error']}",
            "Restart after a driver update, or install the driver again; in a container start it with --gpus all.",
        )
    if not gpus:
        if not files and not nvidia.get("error"):
            yield Reading("gpu", "none", "ok", "No NVIDIA GPU is visible here; TensorFlow computes on the CPU.")
        return
    driver = str(gpus[0].get("driver_version") or nvidia.get("kernel_module") or "")
    cuda = release(str(build.get("cuda_version") or ""))
    needed = _NEEDED.get(cuda[0]) if cuda else None
    if needed and driver and release(driver)[:1] < (needed,):
        yield Reading(
            "gpu driver",
            driver,
            "fault",
            f"TensorFlow was built with CUDA {build['cuda_version']}, which needs driver {needed} or newer.",
            f"Install a driver of branch {needed} or newer, or a TensorFlow of an older CUDA.",
        )
    else:
        yield Reading("gpu driver", driver, "ok", "New enough." if needed else "Not compared: no CUDA build is known.")
    for gpu in gpus:
        yield _kernels(gpu, build)


def _kernels(gpu: Mapping[str, Any], build: Mapping[str, Any]) -> Reading:
    name = f"gpu {number(gpu.get('index')) or 0:.0f}"
    capability = str(gpu.get("compute_cap") or "")
    total = number(gpu.get("memory_total"))
    value = str(gpu.get("name") or "unknown") + (f", {gibibytes(total * 2**20)}" if total else "")
    built = [str(item) for item in build.get("cuda_compute_capabilities") or ()]
    if not built or not capability or _covered(capability, built):
        return Reading(name, value, "ok", f"Compute capability {capability or 'unknown'}.")
    return Reading(
        name,
        value,
        "warning",
        f"This TensorFlow holds no kernels for compute capability {capability} "
        f"(it has {', '.join(built)}): they are "
        "compiled at the first start, which can take half an hour, and may not run at all.",
        "Use a TensorFlow built for this GPU; until then export CUDA_CACHE_MAXSIZE=4294967296 to compile only once.",
    )


def _covered(capability: str, built: list[str]) -> bool:
    """A binary for X.y runs on every X.z with z ≥ y. `compute_90` is code to compile, not a binary."""
    major, minor = (*release(capability), 0)[:2]
    for entry in built:
        digits = entry.removeprefix("sm_")
        # Both spellings are seen: "sm_80" and "8.0".
        numbers = release(digits if "." in digits else f"{digits[:-1]}.{digits[-1:]}")
        if numbers[:1] == (major,) and numbers[1:2] <= (minor,):
            return True
    return False


CHECK = Check(group="gpu", check=check)
