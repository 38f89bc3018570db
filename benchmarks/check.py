"""How fast `flatout check` is beside ruff, TorchFix and pylint: lines a second and core, memory, and from the cache.

    python benchmarks/check.py [FOLDER …]

Best on a checkout of tensorflow/models; without a folder, the Keras that is installed. Every tool runs in a process of
its own, on one core where it can be told so, and what counts is the processor time of it and its children. ruff runs
its default rules and those for performance (PERF); pylint its default checks, on a sample, since it takes minutes;
TorchFix looks for faults of PyTorch, with libcst, and wants an older one than flatout has: give it an environment of
its own and name its Python in TORCHFIX_PYTHON. A tool that is not there is named and left out.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SAMPLE = 40
"""Files that pylint is given."""


def main() -> None:
    parser = argparse.ArgumentParser(description="How fast flatout check is beside its peers.")
    parser.add_argument("folders", nargs="*")
    folders = [str(Path(folder).resolve()) for folder in parser.parse_args().folders] or [_installed("keras")]
    files = sorted(path for folder in folders for path in Path(folder).rglob("*.py") if path.is_file())
    lines = _lines(files)
    print(f"{len(files)} files, {lines} lines in {', '.join(folders)}\n")
    print(f"{'tool':34} {'CPU s':>8} {'wall s':>8} {'lines/s and core':>18} {'MB':>6}")
    flatout = [sys.executable, "-m", "flatout", "check", "--exit-zero", "--quiet", "--output", os.devnull]
    with tempfile.TemporaryDirectory() as scratch:
        _row("flatout, first time, one process", [*flatout, "--jobs", "1", *folders], lines, scratch)
        _row("flatout, unchanged, from its cache", [*flatout, "--jobs", "1", *folders], lines, scratch)
        _row("flatout, all cores, no cache", [*flatout, "--no-cache", *folders], lines, scratch)
        _row("flatout, nothing to do (start-up)", [*flatout, "--no-cache", __file__], 0, scratch)
        if _has("ruff"):
            rules = ["--select", "E4,E7,E9,F,PERF", "--no-cache", "--isolated", "--exit-zero", "--quiet"]
            environment = {"RAYON_NUM_THREADS": "1"}
            _row(
                "ruff, default rules and PERF",
                [sys.executable, "-m", "ruff", "check", *rules, *folders],
                lines,
                scratch,
                environment,
            )
        torchfix = os.environ.get("TORCHFIX_PYTHON", sys.executable)
        if torchfix != sys.executable or _has("torchfix"):
            _row("TorchFix", [torchfix, "-m", "torchfix", "--select", "ALL", *folders], lines, scratch)
        if _has("pylint"):
            sample = files[:: max(len(files) // SAMPLE, 1)][:SAMPLE]
            command = [sys.executable, "-m", "pylint", "--exit-zero", "--rcfile", os.devnull, *map(str, sample)]
            _row(f"pylint, {len(sample)} of the files", command, _lines(sample), scratch)


def _row(name: str, command: list[str], lines: int, folder: str, environment: dict[str, str] | None = None) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter()
    done = subprocess.run(
        [*_measured(), *command],
        cwd=folder,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    wall = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if done.returncode not in (0, 1):
        print(f"{name:34} failed: {done.stderr.strip().splitlines()[-1:]}")
        return
    memory = done.stderr.strip().splitlines()[-1] if _measured() and done.stderr.strip() else ""
    memory = f"{int(memory) // 1024}" if memory.isdigit() else "–"
    speed = f"{lines / seconds:,.0f}" if lines else "–"
    print(f"{name:34} {seconds:8.2f} {wall:8.2f} {speed:>18} {memory:>6}")


def _measured() -> list[str]:
    """GNU time tells the peak memory of one process; the counters of our own children only know the largest so far."""
    tool = shutil.which("time")
    return [tool, "-f", "%M"] if tool else []


def _lines(files: list[Path]) -> int:
    return sum(path.read_bytes().count(b"\n") for path in files)


def _installed(package: str) -> str:
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        sys.exit(f"{package} is not installed: name a folder with TensorFlow code.")
    return str(found.submodule_search_locations[0])


def _has(tool: str) -> bool:
    found = importlib.util.find_spec(tool) is not None
    if not found:
        print(f"{tool:34} not installed")
    return found


if __name__ == "__main__":
    main()
