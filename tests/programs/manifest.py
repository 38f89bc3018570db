"""Every program of this folder, with what is wrong with it. Plain Python: importing this needs no TensorFlow."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
KINDS = ("slow", "expert", "alike", "good", "steps", "faults")
MARKER = re.compile(r"#\s*fault:\s*([a-z0-9-]+)\s*$")

# Causes that are also true of a slow program, so that naming them beside the marked one is no mistake.
ALSO = {
    "blocking_fetch": ("python-in-pipeline", "input-bound"),
    "generator_numpy": ("input-bound", "uncached-prefix"),
    "py_function_spectrogram": ("input-bound", "uncached-prefix"),
    "numpy_function_text": ("input-bound", "uncached-prefix"),
    "serial_augment": ("input-bound",),
    "jpeg_every_epoch": ("input-bound",),
    "map_before_batch": ("input-bound", "uncached-prefix"),
    "autotune_off": ("input-bound", "uncached-prefix"),
    "many_small_files": ("input-bound", "uncached-prefix", "late-batch"),
    "oversized_shuffle": ("input-bound",),
    "image_data_generator": ("input-bound", "python-in-pipeline"),
    "per_sample_eager": ("host-sync", "step-overhead"),
    "functions_run_eagerly": ("eager-step",),
    "predict_loop": ("step-overhead",),
    "eager_policy": ("host-sync",),
    "feed_dict": ("tensor-reconversion",),
    "session_samples": ("feed-dict",),
    "pydataset_rows": ("input-bound", "uncached-prefix"),
}

# What a program of faults/ leaves behind: its exit status (negative: killed by that signal), or None where it may vary.
EXITS = {
    "raises_after_20_steps": 1,
    "exits_3_mid_training": 3,
    "kills_itself": -9,
    "interrupts_itself": None,  # 130 or -2: the interpreter ends itself by the signal it could not handle
    "eats_memory": 1,
    "syntax_error": 1,
    "exits_without_cleanup": 5,
    "deep_recursion": 1,
    "terminates_itself": 7,
    "own_excepthook": 1,
    "gone_profiler": 1,
    "gone_jit_scope": 1,
}


@dataclass(frozen=True)
class Program:
    name: str
    path: Path
    kind: str
    cause: str | None = None
    line: int | None = None
    also: tuple[str, ...] = ()
    exit: int | None = 0


def marker(path: Path) -> tuple[str | None, int | None]:
    """The cause and the line of the one `# fault:` comment of a program."""
    found = []
    for number, text in enumerate(path.read_text().splitlines(), start=1):
        match = MARKER.search(text)
        if match:
            found.append((match.group(1), number))
    if len(found) > 1:
        raise ValueError(f"{path} has {len(found)} fault markers; a program has at most one fault")
    return found[0] if found else (None, None)


def read(path: Path, kind: str) -> Program:
    cause, line = marker(path)
    if kind == "slow" and cause is None:
        raise ValueError(f"{path} has no `# fault: <cause>` marker")
    status = EXITS.get(path.stem, 0) if kind == "faults" else 0
    also = ALSO.get(path.stem, ()) if kind == "slow" else ()
    return Program(path.stem, path, kind, cause, line, also, status)


PROGRAMS = [read(path, kind) for kind in KINDS for path in sorted((HERE / kind).glob("*.py"))]


def of(kind: str) -> list[Program]:
    return [program for program in PROGRAMS if program.kind == kind]


def find(kind: str, name: str) -> Program:
    for program in of(kind):
        if program.name == name:
            return program
    raise KeyError(f"no program {name!r} of kind {kind!r}; there are {', '.join(p.name for p in of(kind))}")


def pairs() -> list[tuple[Program, Program]]:
    """Each slow program with its expert's rewrite."""
    return [(slow, find("expert", slow.name)) for slow in of("slow")]


def causes() -> set[str]:
    return {program.cause for program in of("slow")}


def without_marker(path: Path) -> str:
    """The source with the marker's text taken out and every line kept where it was."""
    lines = path.read_text().splitlines(keepends=True)
    return "".join(re.sub(r"\s*#\s*fault:\s*[a-z0-9-]+\s*$", "\n", line) if "# fault:" in line else line for line in lines)


def parses(path: Path) -> bool:
    try:
        ast.parse(path.read_text())
    except SyntaxError:
        return False
    return True
