"""Short questions about this machine: processor flags, cores, GPU, free memory. Nothing heavy is imported."""

from __future__ import annotations

import functools
import os
from pathlib import Path

from flatout.environment import gather


@functools.cache
def cpu_flags() -> frozenset[str]:
    return frozenset(gather.cpu()["flags"])


def has_gpu() -> bool:
    """Whether there is a GPU that is not hidden from TensorFlow."""
    return Path("/dev/nvidia0").exists() and os.environ.get("CUDA_VISIBLE_DEVICES", "0") not in ("", "-1")


def cores() -> int:
    return len(os.sched_getaffinity(0))


def free_memory() -> int:
    """Bytes that are available within the limit of the container."""
    from flatout.environment.cgroup import memory_left

    return memory_left() or 1 << 62
