"""Environments that are made for a comparison, with `uv` where there is one, else with `venv` and `pip`.

They are kept in a cache directory (`$XDG_CACHE_HOME/flatout/environments`, or what `FLATOUT_ENVIRONMENTS` names) under
what they were asked for, so the next comparison starts at once. One that was not finished is made anew.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flatout.model.errors import EnvironmentNotMade
from flatout.versions.specification import Specification

VARIABLE = "FLATOUT_ENVIRONMENTS"
MADE = "flatout-environment.json"
"""Written into an environment when it is complete."""
LAST_LINES = 6
QUESTION_SECONDS = 60.0
MOST_SECONDS = 3600.0
"""That one command may take which makes an environment: TensorFlow for GPUs is some gigabytes."""
SAY_EVERY = 30.0
"""Seconds from one sign that it goes on to the next."""
QUESTION = """
import importlib.metadata, json, platform
found = {}
for one in importlib.metadata.distributions():
    name = (one.metadata["Name"] or "").lower().replace("_", "-")
    if name:
        found.setdefault(name, one.version)
print(json.dumps({"python": platform.python_version(), "packages": found}))
"""


@dataclass(frozen=True)
class Environment:
    """One that is there."""

    text: str
    """As the user named it."""
    python: str
    """Its interpreter."""
    version: str = ""
    packages: dict[str, str] = field(default_factory=dict)
    """Versions by name."""

    @property
    def title(self) -> str:
        """For people, with the versions that matter most."""
        names = [name for name in ("tensorflow", "tensorflow-cpu", "tf-nightly", "keras") if name in self.packages]
        known = [f"{name} {self.packages[name]}" for name in names]
        return f"{self.text} ({', '.join([*known, f'Python {self.version}'])})" if self.version else self.text


def home() -> Path:
    if named := os.environ.get(VARIABLE):
        return Path(named).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "flatout" / "environments"


def environment(spec: Specification, say: Callable[[str], None] = lambda text: None) -> Environment:
    """Find it, or make it. Raises `EnvironmentNotMade`."""
    python = make(spec, say) if spec.requirements else _existing(spec.python)
    answer = _asked(python)
    return Environment(spec.text, python, str(answer.get("python", "")), dict(answer.get("packages", {})))


def make(spec: Specification, say: Callable[[str], None]) -> str:
    """The Python of the environment with these packages, from the cache where it is there."""
    directory = home() / _key(spec)
    python = str(directory / "bin" / "python")
    if _is_complete(directory):
        return python
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        with _locked(directory.parent / f"{directory.name}.lock"):
            if not _is_complete(directory):  # someone else may have made it meanwhile
                say(f"making an environment with {' '.join(spec.requirements)}")
                _make(spec, directory, say)
    except OSError as error:
        raise EnvironmentNotMade(
            f"No environment can be made in {directory.parent}: {error.strerror or error}. {VARIABLE} names another "
            "directory."
        ) from None
    return python


def _is_complete(directory: Path) -> bool:
    """Also whether the Python that it was made with is still there: its own is a link to that."""
    return (directory / MADE).is_file() and (directory / "bin" / "python").exists()


def _make(spec: Specification, directory: Path, say: Callable[[str], None]) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    uv = shutil.which("uv") if not spec.is_path else None
    try:
        if uv:
            _run([uv, "venv", "--quiet", "--python", _plain(spec.python) or sys.executable, str(directory)], spec, say)
            # Compiled now: a trial writes nothing, so each would compile all of TensorFlow again while it imports it.
            install = [uv, "pip", "install", "--quiet", "--compile-bytecode", "--python"]
            _run([*install, str(directory / "bin" / "python"), *spec.requirements], spec, say)
        else:
            python = spec.python if spec.is_path else _named(spec.python)
            _run([python, "-m", "venv", str(directory)], spec, say)
            if spec.is_path:
                _put_on_top(directory, python)
            pip = [str(directory / "bin" / "python"), "-m", "pip", "install", "--quiet"]
            _run([*pip, "--disable-pip-version-check", *spec.requirements], spec, say)
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise
    asked = {"python": spec.python, "requirements": spec.requirements}
    (directory / MADE).write_text(json.dumps(asked), encoding="utf-8")


def _put_on_top(directory: Path, python: str) -> None:
    """What is installed for another Python is seen from this environment as well, after its own packages."""
    question = "import sys; print('\\n'.join(p for p in sys.path if p.endswith(('site-packages', 'dist-packages'))))"
    try:
        below = subprocess.run(
            [python, "-c", question], capture_output=True, text=True, timeout=QUESTION_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        raise _no_python(python) from None
    # In this way what is installed from a checkout there is found as well.
    lines = [f"import site; site.addsitedir({path!r})\n" for path in below.stdout.splitlines()]
    for own in directory.glob("lib/python*/site-packages"):
        (own / "flatout-below.pth").write_text("".join(lines), encoding="utf-8")


def _run(command: Sequence[str], spec: Specification, say: Callable[[str], None]) -> None:
    tool = os.path.basename(command[0])
    try:
        returncode, output = _finished(command, lambda seconds: say(f"{tool} has worked for {seconds:.0f} s"))
    except subprocess.TimeoutExpired:
        raise EnvironmentNotMade(
            f"The environment {spec.text!r} could not be made: {tool} was still at it after {MOST_SECONDS / 60:.0f} "
            "minutes and was ended. Make the environment by hand, and name its Python."
        ) from None
    except OSError as error:
        raise EnvironmentNotMade(
            f"{command[0]!r} cannot be started: {error.strerror}. Name a Python that is installed, or a virtual "
            "environment."
        ) from None
    if returncode:
        told = [line.strip() for line in output.splitlines() if line.strip() and not line.startswith("WARNING")]
        raise EnvironmentNotMade(
            f"The environment {spec.text!r} could not be made; {tool} says: "
            f"{' '.join(told[-LAST_LINES:]) or 'nothing'}\nWhere no release fits this Python, name another one in "
            "front: `python3.11 tensorflow==2.15`."
        )


def _finished(command: Sequence[str], say: Callable[[float], None]) -> tuple[int, str]:
    """Its exit code and what it wrote. It is ended with all that it has started, where it takes too long as well."""
    began = time.monotonic()
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        while True:
            left = MOST_SECONDS - (time.monotonic() - began)
            try:
                output, _ = process.communicate(timeout=max(min(SAY_EVERY, left), 0.0))
                return process.returncode, output
            except subprocess.TimeoutExpired:
                if left <= SAY_EVERY:
                    raise
                say(time.monotonic() - began)
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise


def _existing(python: str) -> str:
    return python if os.sep in python else _named(python)


def _named(name: str) -> str:
    """The path of a Python by its name; that of flatout where there is none."""
    if not name:
        return sys.executable
    found = shutil.which(name if name.startswith("python") else f"python{name}")
    if found is None:
        raise EnvironmentNotMade(
            f"There is no {name} on PATH. With `uv` installed it would be fetched; or give the path of a Python."
        )
    return found


def _plain(name: str) -> str:
    """`python3.10` → `3.10`, as uv calls it."""
    return name.removeprefix("python") or name


def _asked(python: str) -> dict[str, Any]:
    """Its version and its packages."""
    try:
        done = subprocess.run([python, "-c", QUESTION], capture_output=True, text=True, timeout=QUESTION_SECONDS)
        answer = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        raise _no_python(python) from None
    return answer if isinstance(answer, dict) else {}


def _no_python(python: str) -> EnvironmentNotMade:
    return EnvironmentNotMade(f"{python} does not run as a Python. Give a Python or a virtual environment.")


def _key(spec: Specification) -> str:
    """The name of its directory: readable, and different for different packages."""
    asked = json.dumps([spec.python or sys.executable, sorted(spec.requirements), _changed(spec.requirements)])
    words = re.sub(r"[^A-Za-z0-9.]+", "-", "-".join(map(os.path.basename, spec.requirements)))[:60].strip("-")
    return f"{words}-{hashlib.sha256(asked.encode()).hexdigest()[:10]}"


def _changed(requirements: Sequence[str]) -> list[float]:
    """When the files of local packages were last changed: they are not the same package after that."""
    files = (Path(text) for text in requirements if os.path.isabs(text))
    found = (path.rglob("*.py") if path.is_dir() else [path] for path in files)
    return sorted(one.stat().st_mtime for paths in found for one in paths if one.is_file())  # a link may lead nowhere


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
