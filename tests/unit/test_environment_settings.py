"""The checks of variables: what is in order, what costs time, what stops the program."""

from __future__ import annotations

from typing import Any

import pytest

from flatout.environment.checks import allocator, debug_settings, keras_settings, onednn, threads, xla_flags

EIGHT = {"cores": {"machine": 8, "affinity": 8, "quota": None}}


def statuses(check: Any, variables: dict[str, str], **facts: Any) -> dict[str, str]:
    return {reading.name: reading.status for reading in check.check({"variables": variables, **facts})}


def test_threads_in_order() -> None:
    assert statuses(threads, {}, **EIGHT) == {"threads": "ok"}
    assert statuses(threads, {"TF_NUM_INTRAOP_THREADS": "8"}, **EIGHT) == {"TF_NUM_INTRAOP_THREADS": "ok"}
    assert statuses(threads, {"TF_NUM_INTRAOP_THREADS": "0"}, **EIGHT) == {"TF_NUM_INTRAOP_THREADS": "ok"}
    assert statuses(threads, {"TF_NUM_INTRAOP_THREADS": "64"}) == {"TF_NUM_INTRAOP_THREADS": "ok"}


@pytest.mark.parametrize(("value", "status"), [("64", "warning"), ("1", "warning"), ("all", "fault"), ("-2", "fault")])
def test_threads_that_do_not_fit(value: str, status: str) -> None:
    assert statuses(threads, {"TF_NUM_INTRAOP_THREADS": value}, **EIGHT) == {"TF_NUM_INTRAOP_THREADS": status}


def test_threads_are_held_against_the_quota_too() -> None:
    quota = {"cores": {"machine": 64, "affinity": 64, "quota": 2.0}}
    assert statuses(threads, {"TF_NUM_INTEROP_THREADS": "16"}, **quota) == {"TF_NUM_INTEROP_THREADS": "warning"}


def test_openmp_does_not_reach_tensorflow() -> None:
    assert statuses(threads, {"OMP_NUM_THREADS": "1", "KMP_BLOCKTIME": "0"}, **EIGHT)["openmp"] == "info"


X86 = {"system": {"machine": "x86_64"}}


def test_onednn_on() -> None:
    assert statuses(onednn, {}, tensorflow={"onednn": True}, **X86) == {"onednn": "ok"}
    assert statuses(onednn, {"TF_ENABLE_ONEDNN_OPTS": "1"}, **X86) == {}


def test_onednn_held_back() -> None:
    assert statuses(onednn, {"TF_ENABLE_ONEDNN_OPTS": "0"}, **X86) == {"onednn": "warning"}
    assert statuses(onednn, {"ONEDNN_MAX_CPU_ISA": "SSE41"}, **X86) == {"ONEDNN_MAX_CPU_ISA": "warning"}
    assert statuses(onednn, {"DNNL_VERBOSE": "1"}, **X86) == {"DNNL_VERBOSE": "warning"}


def test_allocator_in_order() -> None:
    assert statuses(allocator, {}) == {"allocator": "ok"}
    (reading,) = allocator.check({"variables": {"LD_PRELOAD": "/usr/lib/libtcmalloc_minimal.so.4"}})
    assert (reading.status, reading.value) == ("ok", "tcmalloc")


def test_allocator_at_fault() -> None:
    missing = {"preload_missing": ["/opt/libjemalloc.so"]}
    assert statuses(allocator, {"LD_PRELOAD": "/opt/libjemalloc.so"}, libraries=missing) == {"allocator": "fault"}
    assert statuses(allocator, {"MALLOC_CHECK_": "3"})["MALLOC_CHECK_"] == "warning"
    assert statuses(allocator, {"MALLOC_ARENA_MAX": "1"})["MALLOC_ARENA_MAX"] == "warning"
    assert statuses(allocator, {"PYTHONMALLOC": "debug"})["PYTHONMALLOC"] == "warning"
    assert statuses(allocator, {"PYTHONMALLOC": "pymalloc", "MALLOC_CHECK_": "0"}) == {"allocator": "ok"}


def test_debug_settings() -> None:
    assert statuses(debug_settings, {"TF_CPP_MAX_VLOG_LEVEL": "0", "CUDA_LAUNCH_BLOCKING": "0"}) == {
        "debug switches": "ok"
    }
    for name, value in {
        "TF_CPP_MAX_VLOG_LEVEL": "2",
        "CUDA_LAUNCH_BLOCKING": "1",
        "TF_CUDNN_USE_AUTOTUNE": "0",
        "TF_DETERMINISTIC_OPS": "true",
        "TF_DUMP_GRAPH_PREFIX": "/tmp/graphs",
    }.items():
        assert statuses(debug_settings, {name: value}) == {name: "warning"}


def test_keras_settings() -> None:
    packages = {"versions": {"keras": "3.15.1", "tf-keras": "2.21.0"}}
    assert statuses(keras_settings, {}, packages=packages) == {"keras": "ok"}
    assert statuses(keras_settings, {"TF_USE_LEGACY_KERAS": "1"}, packages=packages) == {"keras": "info"}
    only_new = {"versions": {"keras": "3.15.1"}}
    assert statuses(keras_settings, {"TF_USE_LEGACY_KERAS": "1"}, packages=only_new) == {"keras": "fault"}
    assert statuses(keras_settings, {"KERAS_BACKEND": "jax"}, packages=only_new)["keras backend"] == "warning"


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, {"xla flags": "ok"}),
        ({"XLA_FLAGS": "--xla_gpu_enable_latency_hiding_scheduler=true"}, {"XLA_FLAGS": "info"}),
        ({"XLA_FLAGS": "/etc/xla.flags"}, {"XLA_FLAGS": "info"}),
        ({"XLA_FLAGS": "--xla_dump_to=/tmp/x"}, {"XLA_FLAGS": "warning"}),
        ({"TF_XLA_FLAGS": "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit"}, {"TF_XLA_FLAGS": "warning"}),
        ({"TF_XLA_FLAGS": "--xla_dump_to=/tmp/x"}, {"TF_XLA_FLAGS": "fault"}),
        ({"XLA_FLAGS": "--tf_xla_auto_jit=2"}, {"XLA_FLAGS": "fault"}),
        ({"XLA_FLAGS": "--xla_dump_to=/tmp/x,xla_dump_hlo_as_text y"}, {"XLA_FLAGS": "fault"}),
    ],
)
def test_xla_flags(variables: dict[str, str], expected: dict[str, str]) -> None:
    assert statuses(xla_flags, variables) == expected
