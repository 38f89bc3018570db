"""Every cause against the case of a run that has it, and against those of runs that do not.

The fixtures are cases of real runs, cut down; tests/fixtures/causes/prune.py says how to make one. A new cause without
a fixture fails here: a detector that was never seen to fire is a guess.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sample_case import sample_case

from flatout.causes import WORTH, Cause, catalogue, diagnose, find
from flatout.causes._precedence import Detected, reported
from flatout.model import queries
from flatout.model.case import Case, Finding, Retrace
from flatout.model.evidence.program import ProgramError
from flatout.model.evidence.steps import Tracing
from flatout.plugins import Loaded

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "fixtures" / "causes"
NAMES = sorted(name for name, cause in catalogue().items() if cause.spec.in_run is not None)
FILES = sorted(str(path.relative_to(FIXTURES)) for path in FIXTURES.glob("*/*.json") if path.name != "expected.json")
ALIKE = ROOT / "tests" / "programs" / "alike"
GOOD = sorted(path.name for path in (FIXTURES / "good").glob("*.json"))
Detector = Callable[[Case], Iterable[Finding]]
DEVICES = ("/device:", "/job:", "/physical_device:", "/host:")


@pytest.fixture(autouse=True)
def _in_the_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fixtures name sources relative to it, and detectors read the lines around a place."""
    monkeypatch.chdir(ROOT)


@functools.cache
def case_in(file: str) -> Case:
    return Case.from_json(json.loads((FIXTURES / file).read_text()))


def failures(case: Case) -> list[str]:
    return [note.text for note in case.notes if "The check for" in note.text]


def found_by(detectors: Iterable[Detector], name: str, file: str) -> list[Finding]:
    """What the detectors themselves find, whatever the diagnosis keeps of it."""
    case = case_in(f"{name}/{file}")
    return [item for detector in detectors for item in detector(case) if item.cause == name]


def tells_apart(detectors: Iterable[Detector], name: str) -> bool:
    """Whether they find the fault and are silent about the look-alike."""
    return bool(found_by(detectors, name, "shows.json")) and not found_by(detectors, name, "quiet.json")


@pytest.mark.parametrize("name", NAMES)
def test_a_cause_has_its_fixtures(name: str) -> None:
    for file in ("shows.json", "quiet.json", "expected.json"):
        assert (FIXTURES / name / file).exists(), f"{name} lacks {file}: make it with tests/fixtures/causes/prune.py"
    why = json.loads((FIXTURES / name / "expected.json").read_text())["quiet"]
    assert why.endswith("."), "expected.json says in one sentence what the look-alike is, and why it is none"


@pytest.mark.parametrize("name", NAMES)
def test_a_cause_is_found_where_it_is(name: str) -> None:
    expected = json.loads((FIXTURES / name / "expected.json").read_text())
    case = diagnose(case_in(f"{name}/shows.json"))
    assert not failures(case)
    found = [item for item in case.findings if item.cause == name]
    assert found, f"only {[item.cause for item in case.findings]}"
    place = found[0].where
    assert ((place.file, place.line) if place else (None, None)) == (expected["file"], expected["line"])
    if expected["first"]:
        assert case.findings[0].cause == name


@pytest.mark.parametrize("name", NAMES)
def test_a_cause_is_told_apart_from_a_look_alike(name: str) -> None:
    """By its detectors, not by what the diagnosis keeps of them: another cause must not hide a false finding."""
    detectors = catalogue()[name].spec.detectors.values()
    assert found_by(detectors, name, "quiet.json") == []
    assert tells_apart(detectors, name)
    assert not failures(diagnose(case_in(f"{name}/quiet.json")))


@pytest.mark.parametrize("name", NAMES)
def test_no_detector_passes_without_looking(name: str) -> None:
    def everywhere(case: Case) -> list[Finding]:
        return [Finding(cause=name, summary="Always.")]

    def nowhere(case: Case) -> list[Finding]:
        return []

    assert not tells_apart([everywhere], name)
    assert not tells_apart([nowhere], name)


@pytest.mark.parametrize("name", NAMES)
def test_a_cause_is_silent_about_good_programs(name: str) -> None:
    assert GOOD
    for file in GOOD:
        costs = [item.cost_share for item in diagnose(case_in(f"good/{file}")).findings if item.cause == name]
        assert all(cost is not None and cost < WORTH for cost in costs), file


@pytest.mark.parametrize("name", sorted(path.stem for path in ALIKE.glob("*.py")))
def test_a_look_alike_is_a_program_that_was_run(name: str) -> None:
    """Where a look-alike is a run of tests/programs/alike, it is of that very program, and there is enough of it."""
    cause = name.replace("_", "-")
    assert cause in NAMES
    case = case_in(f"{cause}/quiet.json")
    assert case.program.command[-1] == f"tests/programs/alike/{name}.py"
    assert case.steps is not None
    assert case.steps.count >= 10
    why = json.loads((FIXTURES / cause / "expected.json").read_text())["quiet"]
    assert (ALIKE / f"{name}.py").read_text().startswith(f'"""{why}')


@pytest.mark.parametrize("file", FILES)
def test_every_finding_says_all_it_should(file: str) -> None:
    case = diagnose(case_in(file))
    assert case.verdict
    for item in case.findings:
        assert item.summary.endswith("."), item.summary
        assert "  " not in item.summary
        assert item.fixes
        assert all(fix.advice for fix in item.fixes)
        assert item.estimate, "how the cost was obtained is part of the finding"
        assert item.cost_share is None or 0 <= item.cost_share <= 1
        assert item.cost_ms is None or item.cost_ms >= 0
        assert (item.cost_ms is None) == (item.cost_share is None) or case.steps is None
        assert find(item.cause).page
        assert {fix.lever for fix in item.fixes if fix.lever} <= set(find(item.cause).spec.cures)
    costs = [item.full_share * (1.0 if item.of == "run" else queries.steps_share(case)) for item in case.findings]
    assert costs == sorted(costs, reverse=True)
    for of in ("step", "run"):
        assert sum(item.cost_share or 0.0 for item in case.findings if item.of == of) <= 1 + 1e-9
    for item in case.findings:
        if item.cost_ms is not None and case.steps is not None:
            whole = queries.whole_ms(case) if item.of == "step" else queries.run_ms(case)
            assert item.cost_share == pytest.approx(item.cost_ms / whole)
    places = [(item.cause, item.where.file, item.where.line) for item in case.findings if item.where]
    assert len(places) == len(set(places))


@pytest.mark.parametrize("file", FILES)
def test_diagnosis_depends_on_the_case_alone(file: str) -> None:
    case = case_in(file)
    before = json.dumps(case.to_json())
    first, second = diagnose(case), diagnose(case)
    assert json.dumps(case.to_json()) == before
    assert first == second
    assert Case.from_json(json.loads(json.dumps(first.to_json()))) == first


def lacking(case: Case) -> Iterator[tuple[str, Case]]:
    """The case as a run leaves it when one instrument saw nothing: lost views are common, a traceback is not."""
    for kind in sorted({item.kind for item in case.evidence}):
        kept = tuple(item for item in case.evidence if item.kind != kind)
        yield kind, dataclasses.replace(case, evidence=kept)
    parts: dict[str, Any] = {
        "steps": None, "memory": None, "placement": None, "environment": {},
        "functions": (), "pipelines": (), "ops": (), "devices": (), "evidence": (),
    }  # fmt: skip
    for name, nothing in parts.items():
        yield name, dataclasses.replace(case, **{name: nothing})
    if case.steps is not None:
        yield "split", dataclasses.replace(case, steps=dataclasses.replace(case.steps, split_ms=None))
        nowhere = tuple(dataclasses.replace(item, where=None) for item in case.evidence)
        yield "places", dataclasses.replace(case, evidence=nowhere, steps=dataclasses.replace(case.steps, where=None))


@pytest.mark.parametrize("file", FILES)
def test_no_detector_stumbles_over_what_is_missing(file: str) -> None:
    for name, case in lacking(case_in(file)):
        assert not failures(diagnose(case)), f"without {name}"


def test_sources_that_are_gone_lose_the_place_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from flatout.source import context

    readers = [item for item in vars(context).values() if hasattr(item, "cache_clear")]
    try:
        for reader in readers:
            reader.cache_clear()
        monkeypatch.chdir(tmp_path)
        for file in FILES:
            assert not failures(diagnose(case_in(file))), file
    finally:
        for reader in readers:
            reader.cache_clear()


@pytest.mark.parametrize("file", FILES)
def test_a_fixture_names_no_machine(file: str) -> None:
    def words(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            for key, item in value.items():
                yield from (*words(key), *words(item))
        elif isinstance(value, list):
            for item in value:
                yield from words(item)
        elif isinstance(value, str):
            yield from value.split()

    text = (FIXTURES / file).read_text()
    assert len(text) <= 40_000
    found = [word for word in words(json.loads(text)) if word.startswith("/") and word.strip("/")]
    strange = [word for word in found if not word.startswith(DEVICES)]
    assert strange == []


def test_every_folder_is_a_cause() -> None:
    folders = {path.name for path in FIXTURES.iterdir() if path.is_dir() and not path.name.startswith("_")}
    assert folders - {"good"} == set(NAMES)


@pytest.mark.parametrize(
    ("error", "text", "gone"),
    [
        ("AttributeError", "module 'tensorflow' has no attribute 'Session'", "tf.Session"),
        ("AttributeError", "module 'tensorflow' has no attribute 'contrib'", "tf.contrib"),
        ("AttributeError", "'Sequential' object has no attribute 'fit_generator'", "Model.fit_generator"),
        (
            "RuntimeError",
            "xla.experimental.jit_scope is not supported when eager execution is enabled.",
            "tf.xla.experimental.jit_scope",
        ),
        ("TypeError", "function() got an unexpected keyword argument 'experimental_compile'", "experimental_compile"),
        ("AttributeError", "'Trainer' object has no attribute 'batches'", None),
        ("AttributeError", "'Recorder' object has no attribute 'Session'", None),
        ("AttributeError", "type object 'Recorder' has no attribute 'placeholder'", None),
        ("RuntimeError", "The Session graph is empty.", None),
        ("ImportError", "cannot import name 'placeholder' from 'keras.backend' (/x/backend.py)", "tf.placeholder"),
        ("ImportError", "cannot import name 'Session' from 'requests' (/x/requests/__init__.py)", None),
        ("AttributeError", "module 'snowflake' has no attribute 'Session'", None),
    ],
)
def test_what_exceptions_say_is_gone(error: str, text: str, gone: str | None) -> None:
    case = diagnose(Case("run", evidence=(ProgramError(error, note=text),)))
    assert len(case.findings) == (1 if gone else 0)
    assert gone is None or gone in case.findings[0].summary


def test_what_a_cause_accounts_for_exists() -> None:
    known = {f"{name}/{detector}" for name, cause in catalogue().items() for detector in cause.spec.detectors}
    known |= set(catalogue())
    assert any(cause.spec.explains for cause in catalogue().values())
    assert any(cause.spec.replaces for cause in catalogue().values())
    for name, cause in catalogue().items():
        targets = (*cause.spec.explains, *cause.spec.replaces)
        assert set(targets) <= known, name
        assert name not in targets, name


def test_no_cause_imports_another() -> None:
    """What several share is in modules with a leading underscore; precedence is declared."""
    for path in (ROOT / "src" / "flatout" / "causes").glob("[a-z]*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("flatout.causes"):
                assert node.module is not None
                assert node.module.startswith("flatout.causes._"), f"{path.name} imports {node.module}"


def test_a_finding_has_the_name_of_the_cause_that_found_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def in_run(case: Case) -> Iterator[Finding]:
        yield Finding("misspelt", "…")

    one = Loaded("lone", "A cause", "", sys.modules[__name__], Cause(group="api", in_run=in_run))
    monkeypatch.setattr("flatout.causes._diagnosis.catalogue", lambda: {"lone": one})
    assert [item.cause for item in diagnose(Case("run")).findings] == ["lone"]


TOYS = {
    "wait": Cause(group="input"),
    "slow-map": Cause(group="input", explains=("wait",)),
    "slow-read": Cause(group="input", explains=("wait",), replaces=("slow-map", "buffer/start")),
    "buffer": Cause(group="input"),
    "by-hand": Cause(group="input", replaces=("slow-read",)),
}


class TestPrecedence:
    def names(self, *found: tuple[str, float | None], detector: str = "") -> list[str]:
        detected = [Detected(Finding(cause, "…", cost_share=cost), detector) for cause, cost in found]
        return [item.cause for item in reported(detected, TOYS)]

    @pytest.mark.parametrize(("of", "left"), [("run", ["overhead", "calls"]), ("step", ["calls"])])
    def test_what_is_outside_of_the_steps_accounts_for_nothing_in_them(self, of: Any, left: list[str]) -> None:
        for relation in ("explains", "replaces"):
            toys = {"overhead": Cause(group="graph"), "calls": Cause(group="graph", **{relation: ("overhead",)})}  # type: ignore[arg-type]
            found = [Finding("overhead", "…", cost_share=0.4), Finding("calls", "…", cost_share=0.5, of=of)]
            assert [item.cause for item in reported([Detected(item) for item in found], toys)] == left

    def test_half_of_the_cost_explains_a_finding(self) -> None:
        assert self.names(("wait", 0.4), ("slow-map", 0.2)) == ["slow-map"]
        assert self.names(("wait", 0.4), ("slow-map", 0.19)) == ["wait", "slow-map"]

    def test_several_causes_explain_a_finding_together(self) -> None:
        assert self.names(("wait", 0.4), ("slow-map", 0.1), ("slow-map", 0.1)) == ["slow-map", "slow-map"]

    def test_a_finding_without_a_cost_explains_nothing(self) -> None:
        assert self.names(("wait", None), ("slow-map", None)) == ["wait", "slow-map"]

    def test_a_cause_that_is_worth_a_change_replaces_whatever_the_cost(self) -> None:
        assert self.names(("slow-map", 0.9), ("slow-read", WORTH)) == ["slow-read"]
        assert self.names(("slow-map", 0.9), ("slow-read", WORTH / 2)) == ["slow-map", "slow-read"]

    def test_a_replaced_finding_replaces_nothing(self) -> None:
        assert self.names(("slow-map", 0.9), ("slow-read", 0.5), ("by-hand", 0.1)) == ["slow-map", "by-hand"]

    @pytest.mark.parametrize(("detector", "left"), [("start", ["slow-read"]), ("endless", ["buffer", "slow-read"])])
    def test_one_detector_of_a_cause_can_be_named(self, detector: str, left: list[str]) -> None:
        assert self.names(("buffer", 0.5), ("slow-read", 0.5), detector=detector) == left


@pytest.mark.parametrize(
    ("before", "after", "advice", "lever"),
    [
        ("float32[32, 4]", "float32[17, 4]", "Allow the shape to vary", "relax-shapes"),
        ("(float32[32, 4], int32[32])", "(float32[17, 4], int32[17])", "Allow the shape to vary", "relax-shapes"),
        ("0.1 (Python float)", "0.2 (Python float)", "Pass x as a tensor", None),
        ("float32[4]", "float64[4]", "one dtype", None),
        ("(absent)", "float32[4]", "in all calls or in none", None),
        ("float32[4]", "None (Python NoneType)", "in all calls or in none", None),
        ("None (Python NoneType)", "float32[4]", "in all calls or in none", None),
        ("float32[]", "0.5 (Python float)", "Pass x as a tensor", None),
        ("0.5 (Python float)", "float32[]", "Pass x as a tensor", None),
        ("(float32[4], 3 (Python int))", "(float32[5], 3 (Python int))", "Allow the shape to vary", "relax-shapes"),
        ("(float32[4], float32[4])", "(float32[4])", "as many tensors", None),
        ("(float32[4], flo…", "(float32[5], float32[5], …", "Allow the shape to vary", "relax-shapes"),
        ("", "", "the same surroundings", None),
        (
            "Weakref[<weakref at 0x7f1c; to 'Config' at 0x7f1d>])",
            "Weakref[<weakref at 0x7f2c; to 'Config' at 0x7f2d>])",
            "the same object",
            None,
        ),
    ],
)
def test_the_advice_for_retracing_is_for_what_changes(before: str, after: str, advice: str, lever: str | None) -> None:
    case = sample_case()
    function = dataclasses.replace(case.functions[0], traces=40, why=(Retrace("x", before, after, 39),))
    tracing = Tracing(50.0, 39, 40)
    (found,) = catalogue()["retracing"].spec.detectors[""](
        dataclasses.replace(case, functions=(function,), evidence=(tracing,))
    )
    assert advice in found.fixes[0].advice
    assert found.fixes[0].lever == lever
    assert "0x" not in found.summary


@pytest.mark.parametrize(
    ("cuda", "hidden", "why", "advice"),
    [
        (True, "-1", "CUDA_VISIBLE_DEVICES='-1' hides it", "Unset CUDA_VISIBLE_DEVICES"),
        (True, "", "CUDA_VISIBLE_DEVICES='' hides it", "Unset CUDA_VISIBLE_DEVICES"),
        (True, "0", "TensorFlow could not use it", "Install the build for GPUs"),
        (True, None, "TensorFlow could not use it", "Install the build for GPUs"),
        (False, "-1", "this TensorFlow was built without CUDA", "Install the build for GPUs"),
    ],
)
def test_a_gpu_that_is_hidden_lacks_no_build(cuda: bool, hidden: str | None, why: str, advice: str) -> None:
    environment = {
        "tensorflow": {"build": {"is_cuda_build": cuda}, "devices": ["/device:CPU:0"]},
        "nvidia": {"gpus": [{"name": "NVIDIA H200"}]},
        "variables": {} if hidden is None else {"CUDA_VISIBLE_DEVICES": hidden},
    }
    (found,) = catalogue()["gpu-unused"].spec.detectors[""](Case("run", environment=environment))
    assert why in found.summary
    assert found.fixes[0].advice.startswith(advice)
