"""The catalogue: all causes are there, with whole pages and known levers, and docs/ holds the same pages."""

from __future__ import annotations

import ast
import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from flatout.causes import catalogue, find
from flatout.cures import catalogue as cures
from flatout.cures import levers
from flatout.model.errors import UnknownCause

ROOT = Path(__file__).resolve().parents[2]

CAUSES = {
    "input": "input-bound python-in-pipeline serial-stateful-map uncached-prefix late-batch blocking-map "
    "autotune-off oversized-buffer many-small-files late-shuffle misplaced-cache decode-then-crop serial-reads "
    "iterator-per-step discarded-stage",
    "graph": "eager-step run-eagerly retracing function-per-call host-sync per-sample-loop step-overhead "
    "predict-in-loop unrolled-loop sequential-loop short-recurrence tensor-reconversion feed-dict debug-left-on "
    "rebuilt-in-loop growing-concat eager-calls weight-copies",
    "numerics": "float64 cast-churn layout-churn unfused-batchnorm unfused-recurrent",
    "hardware": "copy-bound cpu-fallback gpu-idle gpu-memory-unmanaged gpu-unused launch-bound no-mixed-precision "
    "unfused-kernels "
    "memory-pressure thread-misfit library-mismatch",
    "api": "gone-api legacy-pipeline",
    "run": "slow-callback checkpoint-bound validation-bound summary-bound host-metrics slow-start compile-bound "
    "between-epochs late-exit",
    "job": "straggler allreduce-bound input-skew unsharded-input replicated-work small-global-batch",
}
LEVERS = (
    "function no-run-eagerly relax-shapes steps-per-execution prefetch cache vectorize-map threadpool "
    "parallel-map no-debug xla bf16 fp16 threads onednn allocator memory-growth batch-size accumulate "
    "free-input free-compute"
)
SECTIONS = ["What it is", "Why it costs", "How it looks", "The cure", "When it is not worth it"]
NAMES = sorted(catalogue())


def test_every_cause_is_there_in_its_group() -> None:
    found = {name: cause.spec.group for name, cause in catalogue().items()}
    wanted = {name: group for group, names in CAUSES.items() for name in names.split()}
    assert found == wanted


@pytest.mark.parametrize("name", NAMES)
def test_the_page_is_whole(name: str) -> None:
    cause = find(name)
    assert re.findall(r"^## (.*)$", cause.page, re.MULTILINE) == SECTIONS
    assert 20 < len(cause.title) < 110
    assert "\n" not in cause.title


@pytest.mark.parametrize("name", NAMES)
def test_the_examples_are_python(name: str) -> None:
    """What stands in a page as Python must at least parse."""
    examples = re.findall(r"^```python\n(.*?)^```", find(name).page, re.MULTILINE | re.DOTALL)
    for example in examples:
        ast.parse(example)
    assert "```" in find(name).page


@pytest.mark.parametrize("name", NAMES)
def test_the_levers_are_known_and_explained(name: str) -> None:
    cause = find(name)
    assert set(cause.spec.cures) <= set(levers())
    assert len(set(cause.spec.cures)) == len(cause.spec.cures)
    for lever in cause.spec.cures:
        assert f"`{lever}`" in cause.page, f"{lever} is not mentioned in the page"


def test_pages_name_only_causes_and_levers_that_exist() -> None:
    named = {
        (cause.name, name)
        for cause in catalogue().values()
        for name in re.findall(r"[Ss]ee `([a-z0-9-]+)`", cause.page)
    }
    assert len(named) >= 5
    assert {pair for pair in named if pair[1] not in catalogue()} == set()


def test_an_unknown_cause_gets_a_suggestion() -> None:
    with pytest.raises(UnknownCause, match="Did you mean retracing"):
        find("retrace")


def generator() -> ModuleType:
    path = ROOT / "scripts" / "generate_docs.py"
    spec = importlib.util.spec_from_file_location("generate_docs", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_docs_are_up_to_date() -> None:
    assert generator().outdated() == [], "run `python scripts/generate_docs.py`"


def test_docs_are_written_and_pruned(tmp_path: Path) -> None:
    docs = generator()
    (tmp_path / "causes").mkdir()
    (tmp_path / "causes" / "gone-cause.md").write_text("old")
    written = docs.write(tmp_path)
    assert {"causes/index.md", "levers/cache.md", "routes/tf-function.md", "checks/threads.md"} <= set(written)
    assert set(written) == {*docs.pages(), "causes/gone-cause.md"}
    assert docs.outdated(tmp_path) == []
    assert not (tmp_path / "causes" / "gone-cause.md").exists()


def test_every_lever_is_there() -> None:
    assert set(LEVERS.split()) <= set(levers())


def test_every_lever_has_a_page_that_says_what_it_changes() -> None:
    assert cures()
    for lever in cures().values():
        assert lever.title, lever.name
        assert "## What it changes" in lever.page, lever.name
        assert lever.spec.equivalence in ("exact", "reassociated", "precision", "semantic", "bound"), lever.name
        assert lever.spec.side in ("host", "input", "compute", "runtime", "run"), lever.name
