"""The checks of the machine: each shown in order and at fault, on facts written by hand."""

from __future__ import annotations

from typing import Any

import pytest

from flatout.environment.checks import (
    cores_and_quota,
    cpu_features,
    cpu_governor,
    memory,
    numa,
    shared_memory,
    virtualization,
)

GIB = 2**30
SAPPHIRE_RAPIDS = ["sse4_2", "avx", "avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16", "amx_tile"]


def statuses(check: Any, facts: dict[str, Any]) -> list[str]:
    return [reading.status for reading in check.check(facts)]


def cpu(machine: str = "x86_64", **values: Any) -> dict[str, Any]:
    return {"system": {"machine": machine}, "cpu": values}


def test_cpu_features_in_order() -> None:
    (reading,) = cpu_features.check(cpu(flags=SAPPHIRE_RAPIDS))
    assert reading.status == "ok"
    assert "AMX" in reading.value
    assert "VNNI" in reading.value
    assert statuses(cpu_features, cpu("aarch64", flags=["asimd", "bf16"])) == ["ok"]


def test_cpu_features_missing() -> None:
    assert statuses(cpu_features, cpu(flags=["sse4_2"])) == ["fault"]
    assert statuses(cpu_features, cpu(flags=["sse4_2", "avx"])) == ["warning"]
    assert statuses(cpu_features, {}) == ["info"]


@pytest.mark.parametrize(
    ("cores", "variables", "status"),
    [
        ({"machine": 8, "affinity": 8, "quota": None}, {}, "ok"),
        ({"machine": 8, "affinity": 8, "quota": 8.0}, {}, "ok"),
        ({"machine": 64, "affinity": 4, "quota": None}, {}, "info"),
        ({"machine": 8, "affinity": 8, "quota": 6.0}, {}, "warning"),
        ({"machine": 64, "affinity": 64, "quota": 4.0, "throttled_share": 0.62}, {}, "fault"),
        ({"machine": 64, "affinity": 64, "quota": 3.5}, {"TF_NUM_INTRAOP_THREADS": "4"}, "ok"),
        ({"machine": 64, "affinity": 64, "quota": 4.0}, {"TF_NUM_INTRAOP_THREADS": "many"}, "fault"),
    ],
)
def test_cores_against_the_quota(cores: dict[str, Any], variables: dict[str, str], status: str) -> None:
    (reading,) = cores_and_quota.check({"cores": cores, "variables": variables})
    assert reading.status == status


def test_the_quota_says_what_to_set() -> None:
    (reading,) = cores_and_quota.check({"cores": {"machine": 64, "affinity": 64, "quota": 0.5}})
    assert "TF_NUM_INTRAOP_THREADS=1" in reading.todo


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"total": 32 * GIB, "available": 20 * GIB, "swap_total": 0, "swap_free": 0}, ["ok"]),
        ({"total": 32 * GIB, "available": 1 * GIB}, ["warning"]),
        ({"total": 64 * GIB, "available": 60 * GIB, "limit": 4 * GIB, "group_used": 1 * GIB}, ["ok"]),
        ({"total": 64 * GIB, "available": 60 * GIB, "limit": 4 * GIB, "group_used": 3.9 * GIB}, ["warning"]),
        (
            {"total": 32 * GIB, "available": 20 * GIB, "swap_total": 8 * GIB, "swap_free": 2 * GIB},
            ["ok", "warning"],
        ),
        ({}, []),
    ],
)
def test_memory(facts: dict[str, Any], expected: list[str]) -> None:
    assert statuses(memory, {"memory": facts}) == expected


def test_shared_memory() -> None:
    assert statuses(shared_memory, {"memory": {"shared_total": 16 * GIB, "shared_free": 15 * GIB}}) == ["ok"]
    assert statuses(shared_memory, {"memory": {"shared_total": 64 * 2**20}}) == ["warning"]
    assert statuses(shared_memory, {"memory": {"shared_total": 16 * GIB, "shared_free": GIB}}) == ["warning"]


def test_cpu_governor() -> None:
    assert statuses(cpu_governor, cpu(governor="performance", frequency_driver="acpi-cpufreq")) == ["ok"]
    assert statuses(cpu_governor, cpu(governor="powersave", frequency_driver="intel_pstate")) == ["ok"]
    assert statuses(cpu_governor, cpu(governor="powersave", frequency_driver="acpi-cpufreq")) == ["warning"]
    assert statuses(cpu_governor, {}) == []


def test_numa() -> None:
    assert statuses(numa, cpu(numa_nodes=1)) == ["ok"]
    assert statuses(numa, cpu(numa_nodes=2)) == ["info"]


def test_virtualization() -> None:
    assert statuses(virtualization, cpu(hypervisor=True, steal_share=0.0)) == ["ok"]
    assert statuses(virtualization, cpu(hypervisor=True, steal_share=0.11)) == ["warning"]
    assert statuses(virtualization, cpu(hypervisor=False, steal_share=0.0)) == []
