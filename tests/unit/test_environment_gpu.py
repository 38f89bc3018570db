"""The checks of GPUs, fed with what `nvidia-smi` prints on real machines. No GPU is needed."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from flatout.environment import nvidia
from flatout.environment.checks import cuda_libraries, gpu_driver, gpu_state, gpu_visible, memory_growth

H200 = (
    "0, NVIDIA H200, 580.159.04, 143771, 0, 9.0, P0, Enabled, 700.00, 700.00, 0x0000000000000001, 5, 5, "
    "16, 16, "
    "Disabled\n"
)
LAPTOP = (
    "0, Quadro RTX 4000 with Max-Q Design, 515.67, 8192, 4096, 7.5, P8, Disabled, [N/A], [N/A], "
    "0x0000000000000028, "
    "1, 3, 8, 16, [N/A]\n"
)
CUDA_12 = {
    "version": "2.21.0",
    "build": {
        "is_cuda_build": True,
        "cuda_version": "12.5.1",
        "cudnn_version": "9",
        "cuda_compute_capabilities": ["sm_60", "sm_70", "sm_80", "sm_89", "compute_90"],
    },
}


def facts(table: str, tensorflow: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {
        "nvidia": {"gpus": nvidia.parse(table), "device_files": ["nvidia0"], "tool": True, "error": None},
        "tensorflow": CUDA_12 if tensorflow is None else tensorflow,
        **more,
    }


def statuses(check: Any, given: dict[str, Any]) -> list[str]:
    return [reading.status for reading in check.check(given)]


def test_the_query_is_understood() -> None:
    (gpu,) = nvidia.parse(H200)
    assert (gpu["name"], gpu["memory_total"], gpu["compute_cap"]) == ("NVIDIA H200", 143771.0, "9.0")
    assert nvidia.parse(LAPTOP)[0]["power_limit"] is None
    assert nvidia.parse("No devices were found\n") == []


def test_driver_in_order() -> None:
    sm90 = {"build": {**CUDA_12["build"], "cuda_compute_capabilities": ["8.0", "9.0"]}}  # type: ignore[dict-item]
    assert statuses(gpu_driver, facts(H200, sm90)) == ["ok", "ok"]
    assert statuses(gpu_driver, {"nvidia": {"gpus": [], "device_files": []}}) == ["ok"]


def test_driver_too_old_for_the_build() -> None:
    driver, card = gpu_driver.check(facts(LAPTOP))
    assert (driver.status, card.status) == ("fault", "ok")
    assert "525" in driver.meaning


def test_gpu_without_kernels_in_the_build() -> None:
    _, card = gpu_driver.check(facts(H200))
    assert card.status == "warning"
    assert "9.0" in card.meaning


def test_driver_that_does_not_answer() -> None:
    error = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
    broken = {"nvidia": {"gpus": [], "device_files": ["nvidia0"], "error": error, "kernel_module": None}}
    assert statuses(gpu_driver, broken) == ["fault"]


def test_state_in_order_and_held_down() -> None:
    assert statuses(gpu_state, facts(H200)) == ["ok"]
    readings = list(gpu_state.check(facts(LAPTOP)))
    assert [reading.status for reading in readings] == ["warning", "fault", "warning"]
    assert "heat" in readings[1].value


def seen(count: int, **more: Any) -> dict[str, Any]:
    devices = [{"name": "cpu", "type": "CPU"}, *({"name": "gpu", "type": "GPU"} for _ in range(count))]
    return facts(H200, {**CUDA_12, "devices": devices, **more.pop("tensorflow", {})}, **more)


def test_gpu_seen() -> None:
    assert statuses(gpu_visible, seen(1)) == ["ok"]


def test_devices_of_an_observed_run_are_names() -> None:
    names = ["/physical_device:CPU:0", "/physical_device:GPU:0"]
    assert statuses(gpu_visible, facts(H200, {**CUDA_12, "devices": [], "physical": names})) == ["ok"]
    assert statuses(gpu_visible, facts(H200, {**CUDA_12, "devices": []})) == []


def test_gpu_not_seen_says_what_tensorflow_said() -> None:
    messages = [
        "I0000 cpu_feature_guard.cc",
        "W0000 gpu_device.cc:2342] Cannot dlopen some GPU libraries. Please make",
    ]
    (reading,) = gpu_visible.check(seen(0, tensorflow={"messages": messages}))
    assert reading.status == "fault"
    assert "Cannot dlopen" in reading.meaning


def test_gpu_hidden_by_a_variable() -> None:
    assert statuses(gpu_visible, seen(0, variables={"CUDA_VISIBLE_DEVICES": ""})) == ["warning"]


WANTED = {"nvidia-cudnn-cu12": "<10.0,>=9.3.0.75", "nvidia-cublas-cu12": "<13.0,>=12.5.3.2"}


@pytest.mark.parametrize(
    ("installed", "on_path", "expected"),
    [
        ({"nvidia-cudnn-cu12": "9.3.0.75", "nvidia-cublas-cu12": "12.9.1.4"}, [], ["ok"]),
        ({"nvidia-cudnn-cu12": "8.9.7.29", "nvidia-cublas-cu12": "12.9.1.4"}, [], ["fault"]),
        ({"nvidia-cudnn-cu12": "9.3.0.75"}, [], ["warning"]),
        ({}, [], ["info"]),
        (
            {"nvidia-cudnn-cu12": "9.3.0.75", "nvidia-cublas-cu12": "12.9.1.4"},
            ["/usr/local/cuda/lib64/libcudart.so.11.8.89"],
            ["ok", "warning"],
        ),
    ],
)
def test_cuda_libraries(installed: dict[str, str], on_path: list[str], expected: list[str]) -> None:
    packages = {"versions": installed, "cuda_wanted": WANTED}
    given = {"tensorflow": CUDA_12, "packages": packages, "libraries": {"cuda_on_path": on_path}}
    assert statuses(cuda_libraries, given) == expected


def test_cuda_libraries_do_not_matter_to_a_cpu_build() -> None:
    cpu_build = {"build": {"is_cuda_build": False}}
    assert statuses(cuda_libraries, {"tensorflow": cpu_build, "packages": {"cuda_wanted": WANTED}}) == []


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"TF_FORCE_GPU_ALLOW_GROWTH": "true"}, ["ok"]),
        ({"TF_GPU_ALLOCATOR": "cuda_malloc_async"}, ["ok"]),
        ({}, ["info"]),
        ({"TF_FORCE_GPU_ALLOW_GROWTH": "1"}, ["fault"]),
        ({"TF_GPU_ALLOCATOR": "fastest"}, ["fault"]),
    ],
)
def test_memory_growth(variables: dict[str, str], expected: list[str]) -> None:
    assert statuses(memory_growth, facts(H200, variables=variables)) == expected


def fake_tool(directory: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = directory / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(directory), prepend=":")


def test_an_older_driver_that_lacks_a_field_is_asked_for_less(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = (
        'case "$1" in *throttle*) echo "Field \\"x\\" is not a valid field to query."; exit 2;; esac\n'
        'echo "0, Tesla K80, 470.1, 11441, 0, 3.7"'
    )
    fake_tool(tmp_path, script, monkeypatch)
    facts = nvidia.ask(tmp_path)
    assert facts["error"] is None
    assert facts["gpus"][0]["name"] == "Tesla K80"


def test_a_tool_that_fails_or_hangs_is_a_fact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_tool(tmp_path, "echo broken; exit 9", monkeypatch)
    assert nvidia.ask(tmp_path)["error"] == "broken"
    fake_tool(tmp_path, "exec sleep 60", monkeypatch)
    assert "did not answer" in nvidia.ask(tmp_path, timeout=0.3)["error"]


def test_the_kernel_module_tells_its_version(tmp_path: Path) -> None:
    version = tmp_path / "proc/driver/nvidia/version"
    version.parent.mkdir(parents=True)
    version.write_text("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build\n")
    assert nvidia.kernel_module(tmp_path) == "580.159.04"
    assert nvidia.kernel_module(tmp_path / "elsewhere") is None
