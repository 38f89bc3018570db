"""Installed packages, from their metadata: nothing is imported."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Iterable
from typing import Any

TENSORFLOWS = (
    "tensorflow",
    "tensorflow-cpu",
    "tensorflow-gpu",
    "tensorflow-intel",
    "tensorflow-rocm",
    "tensorflow-macos",
    "tensorflow-cpu-aws",
    "tf-nightly",
    "tf-nightly-cpu",
)
"""Distributions that install the package `tensorflow`."""

_OTHERS = (
    "keras",
    "tf-keras",
    "numpy",
    "protobuf",
    "ml-dtypes",
    "tensorflow-metal",
    "intel-extension-for-tensorflow",
)
_REQUIREMENT = re.compile(r"^(nvidia-[a-z0-9-]+)\s*([<>=!~,.0-9\s]*)")


def installed(with_cuda: bool = True) -> dict[str, Any]:
    """Versions by name, and the ranges of NVIDIA's libraries that this TensorFlow requires.

    `with_cuda=False` skips the versions of NVIDIA's packages, which saves reading a dozen files.
    """
    versions = {name: version for name in (*TENSORFLOWS, *_OTHERS) if (version := _version(name))}
    required: dict[str, str] = {}
    for name in TENSORFLOWS:
        if name in versions:
            required.update(cuda_requirements(importlib.metadata.requires(name) or []))
    if with_cuda:
        versions.update({name: version for name in required if (version := _version(name))})
    return {"versions": versions, "cuda_wanted": required}


def cuda_requirements(requirements: list[str]) -> dict[str, str]:
    """`nvidia-cudnn-cu12<10.0,>=9.3.0.75; extra == "and-cuda"` → {"nvidia-cudnn-cu12": "<10.0,>=9.3.0.75"}"""
    matches = (_REQUIREMENT.match(line) for line in requirements if "and-cuda" in line)
    return {match.group(1): match.group(2).strip() for match in matches if match}


def release(version: str) -> tuple[int, ...]:
    """The leading numbers of a version: `2.21.0rc1` → (2, 21, 0)."""
    match = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(part) for part in match.group(0).split(".")) if match else ()


def within(version: str, specification: str) -> bool:
    """Whether a version satisfies `>=9.3,<10.0`. Clauses other than < <= > >= == are ignored.

    `packaging` is not used, as flatout does not depend on it: these ranges contain plain numbers only.
    """
    have = release(version)
    for clause in specification.split(","):
        match = re.match(r"\s*(<=|>=|==|<|>)\s*([\d.]+)", clause)
        if not match or not have:
            continue
        width = max(len(have), len(bound := release(match.group(2))))
        left, right = _padded(have, width), _padded(bound, width)
        holds = {
            "<": left < right,
            "<=": left <= right,
            ">": left > right,
            ">=": left >= right,
            "==": left == right,
        }
        if not holds[match.group(1)]:
            return False
    return True


def _padded(numbers: tuple[int, ...], width: int) -> tuple[int, ...]:
    return numbers + (0,) * (width - len(numbers))


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def versions(names: Iterable[str]) -> dict[str, str]:
    """Of those packages that are installed."""
    return {name: version for name in names if (version := _version(name)) is not None}
