"""Which levers of the input are worth a try, from what a scouting run has seen."""

from __future__ import annotations

import dataclasses

import pytest

from flatout.cures import catalogue
from flatout.model.case import Case, Distribution, Pipeline, PipelineOptions, Split, Stage, StageDetail, Steps
from flatout.model.evidence.program import CpuUse

NAMES = ("autotune", "cache", "free-input", "parallel-map", "prefetch", "threadpool", "vectorize-map")

SOURCE = Stage("TensorSlice", "TensorSlice")
PLAIN = Stage("Map", "Map", detail=StageDetail(by="tensorflow"))
RANDOM = dataclasses.replace(PLAIN, stateful="random")
PARALLEL = Stage("ParallelMap", "ParallelMap", parallelism="24")
BATCH = Stage("Batch", "Batch", detail=StageDetail(batch=32))
PREFETCH = Stage("Prefetch", "Prefetch", buffer="autotuned")


def case(*stages: Stage, wait: float = 5.0, cores: float = 0.3, **options: object) -> Case:
    split = Split(input=wait, compute=10.0 - wait)
    return Case(
        kind="run",
        steps=Steps(100, "fit", Distribution(10.0, 9.0, 11.0, 10.0), split),
        pipelines=(Pipeline("pipeline 1", None, stages, options=PipelineOptions(dict(options))),),
        evidence=(CpuUse(cores, cores=2),),
    )


def skips(name: str, seen: Case) -> str | None:
    return catalogue()[name].spec.skip(seen)


@pytest.mark.parametrize("name", NAMES)
def test_a_program_that_does_not_wait_for_its_input_is_spared(name: str) -> None:
    off = {"autotune.enabled": False}
    seen = case(SOURCE, PARALLEL, RANDOM, PLAIN, BATCH, PREFETCH, wait=0.1, **off)
    assert skips(name, seen) == "the steps wait 1.0% of their time for input"


@pytest.mark.parametrize("name", NAMES)
def test_a_program_without_a_pipeline_is_spared(name: str) -> None:
    assert skips(name, Case(kind="run")) is not None


@pytest.mark.parametrize("name", NAMES)
def test_each_has_a_page_and_belongs_to_the_input(name: str) -> None:
    lever = catalogue()[name]
    assert lever.spec.side == "input"
    for heading in ("## What it does", "## When it pays", "## What it changes", "## In the source"):
        assert heading in lever.page


def test_a_wait_that_nobody_has_measured_is_no_reason_to_skip() -> None:
    seen = dataclasses.replace(case(SOURCE, PLAIN, BATCH), steps=None)
    assert skips("free-input", seen) is None


def test_autotune_needs_a_switch_that_is_off() -> None:
    assert skips("autotune", case(SOURCE, PLAIN, BATCH)) == "no pipeline has tuning or rewrites switched off"
    assert skips("autotune", case(SOURCE, PLAIN, BATCH, **{"autotune.enabled": False})) is None


def test_prefetch_needs_a_pipeline_that_tensorflow_gives_none() -> None:
    off = {"experimental_optimization.inject_prefetch": False}
    assert skips("prefetch", case(SOURCE, PLAIN, BATCH)) is not None
    assert skips("prefetch", case(SOURCE, PLAIN, BATCH, **off)) is None
    assert skips("prefetch", case(SOURCE, BATCH, dataclasses.replace(PREFETCH, buffer="1"))) is None


def test_a_cache_needs_work_that_is_the_same_in_each_epoch() -> None:
    shuffle, cache = Stage("Shuffle", "Shuffle"), Stage("Cache", "Cache")
    python = dataclasses.replace(PLAIN, stateful="python")
    assert skips("cache", case(SOURCE, PLAIN, shuffle, BATCH)) is None
    assert skips("cache", case(SOURCE, python, BATCH)) is None
    assert skips("cache", case(Stage("TFRecord", "TFRecord"), shuffle, BATCH)) is None
    nothing = "nothing that costs time stands before the first shuffle, repeat or random map"
    assert skips("cache", case(SOURCE, shuffle, PLAIN, BATCH)) == nothing
    assert skips("cache", case(SOURCE, RANDOM, BATCH)) == nothing
    assert skips("cache", case(SOURCE, PLAIN, cache, shuffle, BATCH)) == nothing


def test_whole_batches_need_a_stateless_map_before_the_batch() -> None:
    assert skips("vectorize-map", case(SOURCE, PLAIN, PARALLEL, BATCH)) is None
    assert skips("vectorize-map", case(SOURCE, RANDOM, BATCH)) is not None
    assert skips("vectorize-map", case(SOURCE, BATCH, PLAIN)) is not None


def test_more_calls_at_once_need_a_map_left_serial() -> None:
    assert skips("parallel-map", case(SOURCE, PLAIN, BATCH)) == "no map is left serial"
    assert skips("parallel-map", case(SOURCE, RANDOM, BATCH)) is None
    assert skips("parallel-map", case(SOURCE, dataclasses.replace(PARALLEL, parallelism="1"), BATCH)) is None


def test_threads_are_as_many_as_the_calls_that_were_asked_for() -> None:
    lever = catalogue()["threadpool"]
    assert lever.spec.values(case(SOURCE, PARALLEL, BATCH)) == ("24",)
    assert lever.spec.values(case(SOURCE, PLAIN, BATCH)) == ("16", "32")


def test_threads_help_only_a_map_that_waits() -> None:
    assert skips("threadpool", case(SOURCE, PARALLEL, BATCH, cores=0.3)) is None
    assert "cores busy" in str(skips("threadpool", case(SOURCE, PARALLEL, BATCH, cores=1.9)))
    assert skips("threadpool", case(SOURCE, RANDOM, BATCH)) == "no stage makes several calls at once"
