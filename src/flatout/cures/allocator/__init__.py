"""Memory comes from another allocator, or glibc's malloc keeps freed memory.

## What it does
`allocator=glibc-keep` makes glibc's malloc serve large blocks from its heap and return no free memory to the kernel.
`tcmalloc` and `jemalloc` load these libraries before the program starts, where they are installed.

## When it pays
On a CPU, when a step allocates large activations: by default each block above 32 MB, and the top of the heap, is
returned to the kernel and requested again, and the kernel clears each page at its first touch.

## What it changes
Nothing: exact. The process keeps the memory that it has used.

## In the source
```sh
GLIBC_TUNABLES=glibc.malloc.trim_threshold=…:glibc.malloc.mmap_max=0 python train.py
LD_PRELOAD=libtcmalloc_minimal.so.4 python train.py
```
"""

from __future__ import annotations

import functools
import glob
import os
import platform
from collections.abc import Sequence

from flatout.cures._spec import Cure
from flatout.model import queries
from flatout.model.case import Case

KEEP = "glibc-keep"
_LIBRARIES = {"tcmalloc": "libtcmalloc*.so*", "jemalloc": "libjemalloc.so*"}
_FOLDERS = ("/usr/lib/*-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib", "/opt/conda/lib")
_TUNABLES = "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=17179869184:glibc.malloc.top_pad=67108864"


@functools.cache
def library(name: str) -> str | None:
    found = [path for folder in _FOLDERS for path in sorted(glob.glob(f"{folder}/{_LIBRARIES[name]}"))]
    return next((path for path in found if "debug" not in path), None)


def skip(case: Case) -> str | None:
    if queries.gpus_in_use(case):
        return "the program computes on a GPU, whose memory has its own allocator"
    if any(name in os.environ.get("LD_PRELOAD", "") for name in ("malloc",)):
        return "another allocator is already loaded"
    if not values(case):
        return "neither glibc nor another allocator is here; install libtcmalloc-minimal4 or libjemalloc2"
    return None


def values(case: Case) -> Sequence[str]:
    glibc = [KEEP] if platform.libc_ver()[0] == "glibc" else []
    return (*glibc, *(name for name in _LIBRARIES if library(name)))


def environment(value: str) -> dict[str, str]:
    if value == KEEP:
        kept = os.environ.get("GLIBC_TUNABLES")
        return {"GLIBC_TUNABLES": f"{kept}:{_TUNABLES}" if kept else _TUNABLES}
    path = library(value) if value in _LIBRARIES else None
    kept = os.environ.get("LD_PRELOAD")
    return {"LD_PRELOAD": f"{path}:{kept}" if kept else path} if path else {}


CURE = Cure(
    does={"glibc-keep": "let malloc keep freed memory", "": "allocate memory with {value}"},
    equivalence="exact",
    side="runtime",
    values=values,
    skip=skip,
    environment=environment,
)
