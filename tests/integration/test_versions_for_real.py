"""A program in environments that are really made, from wheels that are written here: no network, no TensorFlow.

The race does not care what makes the steps: the program sleeps through them under a name that stands for TensorFlow, as
long as the installed release of `pausing` says.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from observed import environment
from swift import SWIFT

pytestmark = pytest.mark.slow

PROGRAM = """
import sys, time
import tensorflow
import pausing
observer = next((finder.observer for finder in sys.meta_path if hasattr(finder, "observer")), None)
def probe():
    return observer.streams.make("fit", "steps", "sleeps")
stream = probe()
for step in range(400):
    began = time.perf_counter()
    time.sleep(pausing.PAUSE)
    observer.ticks.tick(stream, began, time.perf_counter())
"""

PAUSES = {"1.0": 0.002, "1.1": 0.002, "1.2": 0.008}
PLAIN = [sys.executable, "-m", "flatout"]


def wheel(directory: Path, name: str, version: str, text: str) -> None:
    information = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": text,
        f"{information}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{information}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},,\n" for path in (*files, f"{information}/RECORD"))
    with zipfile.ZipFile(directory / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for path, content in {**files, f"{information}/RECORD": record}.items():
            archive.writestr(path, content)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("versions")
    (place / "wheels").mkdir()
    for version, pause in PAUSES.items():
        wheel(place / "wheels", "pausing", version, f"PAUSE = {pause}\n")
    for version in ("1.0", "2.0"):
        wheel(place / "wheels", "other", version, "")
    (place / "train.py").write_text(PROGRAM)
    (place / "tensorflow.py").write_text("__version__ = '2.21.0'\n")
    return place


def flatout(place: Path, *words: str, by: list[str] = SWIFT) -> tuple[int, dict[str, Any], str]:
    variables = environment() | {
        "FLATOUT_ENVIRONMENTS": str(place / "environments"),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(place / "wheels"),
        "PIP_CONFIG_FILE": os.devnull,
    }
    command = [*by, *words[:1], "--json", "result.json", *words[1:]]
    done = subprocess.run(command, cwd=place, env=variables, capture_output=True, text=True, timeout=600)
    written = place / "result.json"
    result = json.loads(written.read_text()) if written.exists() else {}
    written.unlink(missing_ok=True)
    return done.returncode, result, done.stdout + done.stderr


def test_an_environment_that_differs_in_one_package_is_slower_by_it(place: Path) -> None:
    envs = [f"--env={sys.executable} pausing=={version}" for version in ("1.0", "1.2")]
    code, found, text = flatout(
        place, "compare", *envs, "--budget", "6s", "--max-regression", "5%", "train.py", "--json"
    )
    assert code == 1, text
    assert found["outcome"] == "slower"
    assert 3.0 < 1 + found["step"]["share"]["ratio"] < 4.5
    assert [(one["what"], one["before"], one["after"]) for one in found["packages"]] == [("pausing", "1.0", "1.2")]
    assert found["program"] == "train.py --json", "what stands after the program is its own"
    assert "pausing" in text
    made = {path.name for path in (place / "environments").iterdir() if path.is_dir()}
    assert len(made) == 2, "kept for the next time"


@pytest.mark.exhaustive  # the ordinary run has the environment that differs
def test_the_same_environment_twice_shows_no_difference(place: Path) -> None:
    same = f"--env={sys.executable} pausing==1.0"
    words = ("compare", same, same, "--budget", "12s", "--max-regression", "0%", "train.py")
    code, found, text = flatout(place, *words, by=PLAIN)
    assert code == 0, text
    assert found["outcome"] == "same", text
    assert not found["packages"]
    assert not found["ops"]
    assert not found["settings"]


def test_the_release_that_made_it_slower_is_found(place: Path) -> None:
    good, bad = (f"{sys.executable} pausing=={version}" for version in ("1.0", "1.2"))
    code, found, text = flatout(place, "bisect", "--good", good, "--bad", bad, "--budget", "4s", "train.py")
    assert code == 0, text
    assert (found["last_good"], found["first_bad"]) == ("pausing 1.1", "pausing 1.2"), text
    assert "pausing 1.2 made it slower" in text


@pytest.mark.exhaustive  # the ordinary run has the release that is found in the same way
def test_the_package_of_a_list_that_made_it_slower_is_found(place: Path) -> None:
    for name, other, pausing in (("good", "1.0", "1.1"), ("bad", "2.0", "1.2")):
        (place / f"{name}.txt").write_text(f"other=={other}\npausing=={pausing}\n")
    good, bad = (f"{sys.executable} {name}.txt" for name in ("good", "bad"))
    code, found, text = flatout(place, "bisect", "--good", good, "--bad", bad, "--budget", "4s", "train.py")
    assert code == 0, text
    assert found["first_bad"] == "pausing==1.1 → pausing==1.2", text


def test_packages_that_do_not_exist_are_one_message(place: Path) -> None:
    envs = [f"--env={sys.executable} pausing=={version}" for version in ("1.0", "9.9")]
    code, _, text = flatout(place, "compare", *envs, "train.py")
    assert code == 3
    assert "could not be made" in text
    assert "9.9" in text
    assert "Traceback" not in text
