"""Trials of one program that live side by side on a GPU.

TensorFlow takes all memory of a GPU when it starts, so that a second trial would find none: in a trial it takes memory
as it needs it. What the driver and XLA compile is kept on disk: the next trial starts with it. Variables that the user
has set stay as they are, and so does what the program itself configures.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

NODES = ("/dev/nvidiactl", "/dev/dxg")
"""Linux has one of these where an NVIDIA GPU can be used; the second is that of WSL."""
XLA_CACHE = "--tf_xla_persistent_cache_directory={} --tf_xla_persistent_cache_device_types=GPU"


def has_gpu(variables: Mapping[str, str], nodes: tuple[str, ...] = NODES) -> bool:
    visible = variables.get("CUDA_VISIBLE_DEVICES")
    hidden = visible is not None and (not visible.strip() or visible.strip().startswith("-1"))
    return not hidden and any(os.path.exists(node) for node in nodes)


def variables(base: Mapping[str, str], compiled: Path | None) -> dict[str, str]:
    """What to add to the environment of a trial; nothing on a machine without a GPU. `compiled`: where the trials of
    one tune keep what was compiled."""
    if not has_gpu(base):
        return {}
    added = {} if "TF_FORCE_GPU_ALLOW_GROWTH" in base else {"TF_FORCE_GPU_ALLOW_GROWTH": "true"}
    if compiled is None:
        return added
    compiled.mkdir(parents=True, exist_ok=True)
    flags = base.get("TF_XLA_FLAGS", "")
    if "persistent_cache" not in flags:
        added["TF_XLA_FLAGS"] = f"{flags} {XLA_CACHE.format(compiled)}".strip()
    if "CUDA_CACHE_PATH" not in base:
        added["CUDA_CACHE_PATH"] = str(compiled)
        added["CUDA_CACHE_MAXSIZE"] = base.get("CUDA_CACHE_MAXSIZE", str(4 << 30))
    return added
