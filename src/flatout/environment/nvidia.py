"""What the NVIDIA driver reports: its version, and each GPU's memory, clocks and link.

`nvidia-smi` is run where it is installed. Where it is not, the kernel module's version and the device files
still show whether a GPU is there.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

FIELDS = (
    "index",
    "name",
    "driver_version",
    "memory.total",
    "memory.used",
    "compute_cap",
    "pstate",
    "persistence_mode",
    "power.limit",
    "power.max_limit",
    "clocks_throttle_reasons.active",
    "pcie.link.gen.current",
    "pcie.link.gen.max",
    "pcie.link.width.current",
    "pcie.link.width.max",
    "mig.mode.current",
)
ESSENTIAL = FIELDS[:6]
"""Enough for the main checks, and supported by every driver of the last ten years."""

_NUMBERS = re.compile(r"^-?\d+(\.\d+)?$")


def ask(root: Path = Path("/"), run_tool: bool = True, timeout: float = 15.0) -> dict[str, Any]:
    """Facts about the GPUs; `run_tool=False` reads files only, in well under a millisecond."""
    facts: dict[str, Any] = {
        "device_files": sorted(path.name for path in (root / "dev").glob("nvidia[0-9]*")),
        "kernel_module": kernel_module(root),
        "tool": False,
        "error": None,
        "gpus": [],
    }
    tool = shutil.which("nvidia-smi") if run_tool else None
    if tool is None:
        return facts
    facts["tool"] = True
    for fields in (FIELDS, ESSENTIAL):
        code, text = _query(tool, fields, timeout)
        if code == 0:
            facts["error"] = None
            facts["gpus"] = parse(text, fields)
            break
        facts["error"] = " ".join(text.split())
        if "not a valid field" not in text:
            break
    return facts


def _query(tool: str, fields: tuple[str, ...], timeout: float) -> tuple[int, str]:
    try:
        answer = subprocess.run(
            [tool, "--query-gpu=" + ",".join(fields), "--format=csv,noheader,nounits"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            errors="replace",
            timeout=timeout,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return 1, f"nvidia-smi did not answer: {type(error).__name__}"
    return answer.returncode, answer.stdout


def parse(table: str, fields: tuple[str, ...] = FIELDS) -> list[dict[str, Any]]:
    """The rows of the query; `[N/A]` and `[Not Supported]` become None."""
    rows = [[cell.strip() for cell in line.split(",")] for line in table.splitlines() if line.strip()]
    return [
        {name.replace(".", "_"): _value(name, cell) for name, cell in zip(fields, row, strict=True)}
        for row in rows
        if len(row) == len(fields)
    ]


def _value(name: str, cell: str) -> str | float | None:
    if cell.startswith("[") or cell in ("N/A", ""):
        return None
    if name in ("name", "driver_version", "compute_cap"):
        return cell
    return float(cell) if _NUMBERS.match(cell) else cell


def kernel_module(root: Path = Path("/")) -> str | None:
    """The loaded driver's version, as the kernel module itself reports it."""
    try:
        text = (root / "proc/driver/nvidia/version").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    match = re.search(r"\b(\d{3,}\.\d+(?:\.\d+)?)\b", text)
    return match.group(1) if match else None
