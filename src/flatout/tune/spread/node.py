"""What runs in the cluster's own process on a node: it looks what is there, and starts the race as another process.

These functions are sent to the node as they are, so that a node without flatout can say so: they import nothing but the
standard library.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import IO

OF_A_NODE = (
    "CUDA_VISIBLE_DEVICES",
    "HOME",
    "HOSTNAME",
    "LOGNAME",
    "NVIDIA_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "TMPDIR",
    "USER",
    "XDG_RUNTIME_DIR",
)
"""Variables that a node has its own of. All others are those of the machine that tunes."""
START_SECONDS = 60.0
END_SECONDS = 30.0
LAST_WORDS = 2000


def environment_of(sent: Mapping[str, str]) -> dict[str, str]:
    others = {name: value for name, value in sent.items() if name not in OF_A_NODE}
    return {**others, **{name: os.environ[name] for name in OF_A_NODE if name in os.environ}}


def lacks(command: Sequence[str], directory: str, files: Mapping[str, str], sent: Mapping[str, str]) -> tuple[str, str]:
    """What is missing on this node, in words, and what the command has printed here. `files`: with the digest that
    each has to have; empty where it only has to be there."""
    if not os.access(command[0], os.X_OK):
        return f"the interpreter {command[0]} is not there", ""
    if not os.path.isdir(directory):
        return f"the working directory {directory} is not there", ""
    for path, digest in files.items():
        if not os.path.exists(path):
            return f"{path} is not there", ""
        if digest and digest != digest_of(path):
            return f"{path} is another file than here", ""
    with tempfile.TemporaryFile() as errors:
        done = subprocess.run(
            list(command),
            cwd=directory,
            env=environment_of(sent),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            timeout=START_SECONDS,
        )
        why = _last_words(errors)
    return (f"flatout does not start with {command[0]}: {why}" if done.returncode else ""), done.stdout


def digest_of(path: str) -> str:
    """Empty where it cannot be read."""
    try:
        with open(path, "rb") as stream:
            return hashlib.sha256(stream.read()).hexdigest()
    except OSError:
        return ""


def raced(command: Sequence[str], directory: str, sent: Mapping[str, str], assignment: str) -> Iterator[str]:
    """Start the race and hand on what it tells, line by line. It ends when its input does: with this process."""
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            list(command),
            cwd=directory,
            env=environment_of(sent),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            with contextlib.suppress(BrokenPipeError):  # its code tells of it
                process.stdin.write(assignment + "\n")
                process.stdin.flush()
            for line in process.stdout:  # noqa: UP028  # Ray sends to the generator, and a file takes nothing
                yield line
            code = process.wait(END_SECONDS)
        finally:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            try:
                process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
        if code:
            raise RuntimeError(_last_words(errors) or f"exit code {code}")


def _last_words(stream: IO[bytes]) -> str:
    """The last line of what a process has printed."""
    stream.seek(0, os.SEEK_END)
    stream.seek(max(stream.tell() - LAST_WORDS, 0))
    lines = [line.strip() for line in stream.read().decode("utf-8", "replace").splitlines() if line.strip()]
    return lines[-1] if lines else ""
