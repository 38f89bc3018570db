"""The checks of TensorFlow's build and versions, and the child process that asks it."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from flatout.environment import child
from flatout.environment.checks import tensorflow_build, versions
from flatout.environment.packages import cuda_requirements, release, within

CPU = {"version": "2.21.0", "build": {"is_cuda_build": False, "is_rocm_build": False}, "error": None}
GPU = {"gpus": [{"index": 0.0, "compute_cap": "9.0"}], "device_files": ["nvidia0"]}


def facts(tensorflow: dict[str, Any] | None = None, packages: dict[str, str] | None = None, **more: Any) -> Any:
    return {
        "tensorflow": tensorflow or {},
        "packages": {"versions": packages or {}, "cuda_wanted": {}},
        **more,
    }


def statuses(check: Any, given: dict[str, Any]) -> list[str]:
    return [reading.status for reading in check.check(given)]


def test_build_in_order() -> None:
    assert statuses(tensorflow_build, facts(CPU, {"tensorflow-cpu": "2.21.0"})) == ["ok"]
    assert statuses(tensorflow_build, facts({"asked": False}, {"tensorflow": "2.18.0"})) == ["ok"]


def test_missing_tensorflow_names_what_to_install() -> None:
    (reading,) = tensorflow_build.check(facts({"asked": False}))
    assert reading.status == "fault"
    assert 'pip install "flatout[cpu]"' in reading.todo
    assert "flatout[gpu]" in reading.todo


def test_two_distributions_over_one_another() -> None:
    both = {"tensorflow": "2.20.0", "tensorflow-cpu": "2.21.0"}
    assert statuses(tensorflow_build, facts(CPU, both)) == ["fault", "ok"]


def test_a_build_that_does_not_import() -> None:
    (reading,) = tensorflow_build.check(facts({"asked": True, "error": "ended in SIGILL"}, {"tensorflow": "2.21.0"}))
    assert reading.status == "fault"
    assert "SIGILL" in reading.meaning


def test_a_cpu_build_beside_a_gpu() -> None:
    assert statuses(tensorflow_build, facts(CPU, {"tensorflow-cpu": "2.21.0"}, nvidia=GPU)) == ["fault"]


def test_versions_in_order() -> None:
    assert statuses(versions, facts(CPU, {"tensorflow-cpu": "2.21.0", "numpy": "2.4.6"})) == ["ok"]


def test_versions_known_to_cost_time() -> None:
    assert statuses(versions, facts({"version": "2.11.1"})) == ["warning"]
    maxwell = {"gpus": [{"compute_cap": "5.2"}]}
    assert statuses(versions, facts({"version": "2.17.0"}, nvidia=maxwell)) == ["fault"]
    assert statuses(versions, facts({"version": "2.21.0", "protobuf": "python"})) == ["warning"]
    lost = {"versions": {}, "cuda_wanted": {"nvidia-cudnn-cu12": ">=8"}}
    assert statuses(versions, {"tensorflow": {"version": "2.16.1"}, "packages": lost}) == ["warning"]


def test_ranges_of_versions() -> None:
    assert release("2.21.0rc1") == (2, 21, 0)
    assert release("dev") == ()
    assert within("9.3.0.75", "<10.0,>=9.3.0.75")
    assert not within("10.0.1", "<10.0,>=9.3.0.75")
    assert not within("9.2", ">=9.3.0.75")
    assert within("12", "==12.0")
    lines = ['nvidia-cudnn-cu12<10.0,>=9.3.0.75; extra == "and-cuda"', "numpy>=1.26", "nvidia-x>=1"]
    assert cuda_requirements(lines) == {"nvidia-cudnn-cu12": "<10.0,>=9.3.0.75"}


def test_a_child_that_answers() -> None:
    words = "import sys; sys.stderr.write('a\\x1b[31mb\\n'); print('noise')"
    answer = child.ask(questions=words + """; print('flatout-facts:{"version": "9"}')""")
    assert answer["version"] == "9"
    assert answer["error"] is None
    assert answer["messages"] == ["ab"]


@pytest.mark.parametrize(
    ("questions", "word"),
    [
        ("import no_such_package", "No module named"),
        ("import os; os.abort()", "SIGABRT"),
        ("import time; time.sleep(60)", "within"),
        ("print('noise')", "printed nothing"),
    ],
)
def test_a_child_that_does_not(questions: str, word: str) -> None:
    answer = child.ask(timeout=5 if "sleep" not in questions else 0.5, questions=questions)
    assert word in answer["error"]
    assert "version" not in answer


def test_a_python_that_is_not_there() -> None:
    assert "could not be started" in child.ask(python="/no/such/python")["error"]


@pytest.mark.slow
def test_the_real_tensorflow_answers() -> None:
    loaded = "tensorflow" in sys.modules  # by another test
    answer = child.ask()
    assert answer["error"] is None
    assert answer["version"].startswith("2.")
    assert answer["build"]["is_cuda_build"] in (True, False)
    assert {device["type"] for device in answer["devices"]} >= {"CPU"}
    assert isinstance(answer["onednn"], bool)
    assert ("tensorflow" in sys.modules) is loaded
