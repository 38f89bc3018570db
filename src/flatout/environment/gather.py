"""Reads the facts of the machine: everything that a check may look at is in the dict that `gather` returns.

Nothing is judged here. A file that is not there (macOS, a locked-down container) makes a fact None.
"""

from __future__ import annotations

import os
import platform
import shutil
from pathlib import Path
from typing import Any

from flatout.environment import cgroup, child, nvidia, packages, variables
from flatout.model.text import clean_all


def gather(quick: bool = False) -> dict[str, Any]:
    """All facts. `quick` skips the child that imports TensorFlow."""
    facts = _local(run_tools=True)
    facts["tensorflow"] = {"asked": False} if quick else _tensorflow(facts)
    return clean_facts(facts)


def gather_cheaply(tensorflow: dict[str, Any] | None) -> dict[str, Any]:
    """The facts without starting a process, for a run whose child has imported TensorFlow already."""
    facts = _local(run_tools=False)
    facts["tensorflow"] = {"asked": True, "error": None, **tensorflow} if tensorflow else {"asked": False}
    return clean_facts(facts)


def clean_facts(facts: dict[str, Any]) -> dict[str, Any]:
    return {str(key): clean_all(value) for key, value in facts.items()}


def _tensorflow(facts: dict[str, Any]) -> dict[str, Any]:
    known = facts["packages"]["versions"]
    if not any(name in known for name in packages.TENSORFLOWS) and not _importable("tensorflow"):
        return {"asked": False}
    return child.ask()


def _importable(name: str) -> bool:
    import importlib.util

    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _local(run_tools: bool, root: Path = Path("/")) -> dict[str, Any]:
    library_path = [entry for entry in os.environ.get("LD_LIBRARY_PATH", "").split(":") if entry]
    preloaded = os.environ.get("LD_PRELOAD", "").replace(":", " ").split()
    return {
        "system": {
            "name": platform.system(),
            "release": platform.release(),
            "machine": platform.machine(),
            "python": platform.python_version(),
            "implementation": platform.python_implementation(),
        },
        "cpu": cpu(root),
        "cores": cores(root),
        "memory": memory(root),
        "variables": variables.chosen(os.environ),
        "packages": packages.installed(with_cuda=run_tools),
        "libraries": {
            "cuda_on_path": [name for entry in library_path[:32] for name in _cuda_libraries(Path(entry))],
            "preload_missing": [name for name in preloaded if "/" in name and not os.path.exists(name)],
        },
        "nvidia": nvidia.ask(root, run_tool=run_tools),
    }


def _cuda_libraries(directory: Path) -> list[str]:
    patterns = ("libcudart.so.*", "libcudnn.so.*", "libcublas.so.*")
    return [str(path) for pattern in patterns for path in sorted(directory.glob(pattern))][:12]


_ARM = {
    "0xd07": "Cortex-A57",
    "0xd08": "Cortex-A72",
    "0xd0c": "Neoverse N1",
    "0xd40": "Neoverse V1",
    "0xd49": "Neoverse N2",
    "0xd4f": "Neoverse V2",
    "0xd84": "Neoverse V3",
    "0xd8e": "Neoverse N3",
}
"""Linux gives the number of an ARM core's design, not its name."""


def cpu(root: Path = Path("/")) -> dict[str, Any]:
    lines = _read(root / "proc/cpuinfo", 65536).splitlines()
    pairs = [(key.strip(), value.strip()) for key, _, value in (line.partition(":") for line in lines)]
    first = {key: value for key, value in reversed(pairs) if key}
    flags = (first.get("flags") or first.get("Features") or "").split()
    frequency = root / "sys/devices/system/cpu/cpu0/cpufreq"
    nodes = list((root / "sys/devices/system/node").glob("node[0-9]*"))
    times = _read(root / "proc/stat").partition("\n")[0].split()[1:]
    return {
        "model": first.get("model name") or first.get("Processor") or _ARM.get(first.get("CPU part", "")),
        "flags": flags,
        "hypervisor": "hypervisor" in flags,
        "governor": _read(frequency / "scaling_governor") or None,
        "frequency_driver": _read(frequency / "scaling_driver") or None,
        "numa_nodes": len(nodes) or None,
        "steal_share": int(times[7]) / max(1, sum(map(int, times[:8]))) if len(times) > 7 else None,
        "container": _container(root),
    }


def cores(root: Path = Path("/")) -> dict[str, Any]:
    machine = os.cpu_count()
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else machine
    quota = cgroup.cpu_quota(root)
    return {
        "machine": machine,
        "affinity": affinity,
        "quota": quota[0] if quota else None,
        "quota_from": quota[1] if quota else None,
        "throttled_share": cgroup.throttled(root),
    }


def memory(root: Path = Path("/")) -> dict[str, Any]:
    lines = (line.partition(":") for line in _read(root / "proc/meminfo").splitlines())
    kilobytes = {
        key: int(rest.split()[0]) * 1024 for key, _, rest in lines if rest.split()[:1] and rest.split()[0].isdigit()
    }
    limit = cgroup.memory_limit(root)
    try:
        shared = shutil.disk_usage(root / "dev/shm")
    except OSError:
        shared = None
    return {
        "total": kilobytes.get("MemTotal"),
        "available": kilobytes.get("MemAvailable"),
        "swap_total": kilobytes.get("SwapTotal"),
        "swap_free": kilobytes.get("SwapFree"),
        "limit": int(limit[0]) if limit else None,
        "limit_from": limit[1] if limit else None,
        "group_used": cgroup.memory_used(root),
        "shared_total": shared.total if shared else None,
        "shared_free": shared.free if shared else None,
    }


def _container(root: Path) -> str | None:
    if (root / ".dockerenv").exists():
        return "docker"
    if (root / "run/.containerenv").exists():
        return "podman"
    return "kubernetes" if "KUBERNETES_SERVICE_HOST" in os.environ else None


def _read(path: Path, limit: int = 16384) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read(limit).strip()
    except (OSError, ValueError):
        return ""
