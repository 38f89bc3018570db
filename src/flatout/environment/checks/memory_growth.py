"""How TensorFlow takes the memory of a GPU.

By default it takes nearly all of it at the start, which is fast and leaves nothing for a second process.
With `TF_FORCE_GPU_ALLOW_GROWTH=true` it takes memory as it needs it; the variable takes `true` or `false`
only, and `1` is ignored. `TF_GPU_ALLOCATOR=cuda_malloc_async` lets the driver pool the
memory, which helps against fragmentation.
"""

from __future__ import annotations

from collections.abc import Iterator

from flatout.environment.reading import Check, Facts, Reading, part, variable


def check(facts: Facts) -> Iterator[Reading]:
    growth = variable(facts, "TF_FORCE_GPU_ALLOW_GROWTH")
    allocator = variable(facts, "TF_GPU_ALLOCATOR")
    gpus = part(facts, "nvidia").get("gpus") or part(facts, "nvidia").get("device_files")
    if growth is not None and growth not in ("true", "false"):
        yield Reading(
            "TF_FORCE_GPU_ALLOW_GROWTH",
            growth,
            "fault" if gpus else "info",
            "TensorFlow accepts only true and false here and ignores all other values: growth stays as it was.",
            "export TF_FORCE_GPU_ALLOW_GROWTH=true",
        )
    elif growth is not None:
        meaning = "Memory is taken as it is needed." if growth == "true" else "All memory is taken at the start."
        yield Reading("memory growth", growth, "ok", meaning)
    elif gpus and allocator is None:
        yield Reading(
            "memory growth",
            "off",
            "info",
            "TensorFlow takes nearly all GPU memory when it starts: right for one program, not for two on a GPU.",
            "To share the GPU: export TF_FORCE_GPU_ALLOW_GROWTH=true",
        )
    if allocator is not None and allocator not in ("cuda_malloc_async", "cuda_malloc"):
        yield Reading(
            "TF_GPU_ALLOCATOR",
            allocator,
            "fault",
            "TensorFlow knows no GPU allocator of this name.",
            "export TF_GPU_ALLOCATOR=cuda_malloc_async, or unset it.",
        )
    elif allocator is not None:
        yield Reading("gpu allocator", allocator, "ok", "The driver pools GPU memory.")


CHECK = Check(group="gpu", check=check)
