"""Which levers are tried, and how winners are put together."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from flatout.cures import find, levers
from flatout.measure.parity import Extent, Parity
from flatout.model.case import Case, Distribution, Finding, Fix, Interval, Steps, Trial
from flatout.model.errors import UnknownLever
from flatout.model.evidence.program import KerasCall
from flatout.model.evidence.steps import StepStack
from flatout.tune import journal, plan
from flatout.tune.conclusions import judge


def case(*findings: Finding) -> Case:
    steps = Steps(100, "batches of Keras fit", Distribution(10.0, 9.0, 11.0, 10.0))
    return Case(
        "tune",
        steps=steps,
        findings=findings,
        evidence=(StepStack("fit", run_eagerly=True),),
    )


def test_what_diagnosis_expects_most_from_comes_first():
    made = plan.make(
        case(
            Finding("run-eagerly", "…", cost_ms=6, cost_share=0.6),
            Finding("input-bound", "…", cost_ms=2, cost_share=0.2),
        )
    )
    names = [text.partition("=")[0] for text in made.levers]
    assert names[0] == "no-run-eagerly"


def test_semantic_levers_are_left_out_unless_allowed():
    skipped = dict(plan.make(case()).skipped)
    assert "placebo" in skipped
    assert skipped["placebo"] == "only on request: --lever placebo"
    assert "--lever batch-size" in skipped["batch-size"]
    assert plan.make(case(), named=["placebo"]).levers == ("placebo",)


def test_a_lever_that_is_named_with_several_settings_is_tried_with_each():
    named = ["steps-per-execution=8", "prefetch", "steps-per-execution=16", "steps-per-execution=8"]
    made = plan.make(case(), named=named)
    assert [text for text in made.levers if text != "prefetch"] == ["steps-per-execution=8", "steps-per-execution=16"]


def test_of_each_finding_the_first_cure_with_all_its_places_and_nothing_that_excludes_another():
    slow = case(
        Finding("eager-step", "…", cost_share=0.5, fixes=(Fix("…", lever="function=a.py:1"), Fix("…", lever="xla"))),
        Finding("predict-in-loop", "…", cost_share=0.3, fixes=(Fix("…", lever="direct-predict"),)),
        Finding("step-overhead", "…", cost_share=0.1, fixes=(Fix("…", lever="steps-per-execution"),)),
    )
    fit = ["function=a.py:1", "function=a.py:9", "xla", "steps-per-execution=8", "steps-per-execution=16"]
    both = ("function=a.py:1", "function=a.py:9", "direct-predict", "steps-per-execution=8")
    assert plan.first_of_each(slow, [*fit, "direct-predict", "cache"]) == both
    assert plan.first_of_each(slow, ["cache"]) == ()


def test_the_input_is_left_alone_where_a_free_one_gives_nothing():
    made = plan.make(case(), bounds={"free-input": Interval(1.0, 0.98, 1.01)})
    assert not any(text.startswith(("cache", "prefetch", "vectorize-map")) for text in made.levers)
    assert "1.00 [0.98, 1.01]" in dict(made.skipped)["cache"]


@pytest.mark.parametrize("bound", [Interval(0.63, 0.60, 0.65), Interval(1.0, 0.4, 1.02), Interval(1.2, 1.1, 1.3)])
def test_a_bound_below_one_or_a_wide_one_is_no_reason(bound):
    with_bounds = plan.make(case(), bounds={"free-input": bound, "free-compute": bound})
    assert with_bounds == plan.make(case())


def test_the_first_finding_names_what_is_tried_first_whatever_its_cost():
    first = Finding("predict-in-loop", "…", fixes=(Fix("…", lever="allocator"),))
    made = plan.make(case(first, Finding("run-eagerly", "…", cost_ms=6, cost_share=0.6)))
    assert list(dict.fromkeys(text.partition("=")[0] for text in made.levers))[:2] == ["allocator", "no-run-eagerly"]
    assert plan.suggested(find("allocator"), case(first)), "its cost is not known"
    small = Finding("input-bound", "…", cost_share=0.01, fixes=(Fix("…", lever="prefetch"),))
    assert not plan.suggested(find("prefetch"), case(first, small))
    assert plan.suggested(find("prefetch"), case(small)), "it is the first"
    counted = Finding("input-bound", "…", cost_share=0.0, counted_before=0.2, fixes=(Fix("…", lever="prefetch"),))
    assert plan.suggested(find("prefetch"), case(first, counted)), "the first one may cost less than is said"


def test_a_cure_that_fails_at_the_source_leaves_the_others_alone(monkeypatch):
    def skip(case: Case) -> str | None:
        raise IndexError("list index out of range")

    before = plan.make(case())
    name = before.levers[0].partition("=")[0]
    lever = find(name)
    broken = replace(lever, spec=replace(lever.spec, skip=skip))
    monkeypatch.setattr(plan, "all_levers", lambda: {**levers(), name: broken})
    made = plan.make(case())
    assert made.levers == tuple(text for text in before.levers if text.partition("=")[0] != name)
    assert dict(made.skipped)[name] == "it cannot read this program: IndexError: list index out of range"


def test_a_name_that_does_not_exist_is_refused():
    with pytest.raises(UnknownLever, match="steps-per-execution"):
        plan.make(case(), named=["steps-per-exec"])


def test_winners_are_combined_one_after_the_other():
    assert plan.combinations(["xla", "cache"]) == [("xla",), ("xla", "cache")]
    assert plan.combinations(["steps-per-execution=8", "steps-per-execution=32"]) == [("steps-per-execution=8",)]
    places = ("function=parts", "function=a.py:3")
    assert plan.combinations(places) == [places[:1], places], "settings that are places of the program"


def trial(status: str = "won", equivalence: str = "exact", **more: object) -> Trial:
    return Trial(("xla",), status, Interval(2.0, 1.9, 2.1), equivalence=equivalence, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("promised", "found", "status"),
    [
        ("exact", "exact", "won"),
        ("exact", "reassociated", "won"),
        ("reassociated", "precision", "failed"),
        ("reassociated", "failed", "failed"),
        ("precision", "precision", "won"),
        ("precision", "failed", "failed"),
        ("exact", "unknown", "noise"),
        ("semantic", "failed", "won"),
    ],
)
def test_no_win_without_the_numbers_that_were_promised(promised, found, status):
    assert judge(trial(equivalence=promised), Parity(found, 0.1, "compared")).status == status


def test_another_precision_is_kept_only_where_losses_show_it():
    few = Parity("precision", 0.1, "2 variables differ by 0.1", Extent(losses=1, few=True))
    assert judge(trial(equivalence="precision"), few).status == "noise"
    assert judge(trial(equivalence="precision"), replace(few, extent=Extent(losses=100))).status == "won"
    assert judge(trial(equivalence="exact"), few).status == "failed"


def test_a_journal_is_read_back_though_its_last_line_is_cut(tmp_path: Path):
    first = journal.Journal(tmp_path)
    first.begin(["python", "train.py"], str(tmp_path))
    first.keep(trial())
    with open(tmp_path / journal.FILE, "a") as stream:
        stream.write(json.dumps({"trial": {}})[:-4])
    again = journal.Journal(tmp_path)
    assert again.known("single", ("xla",)) == trial()
    assert again.known("combination", ("xla",)) is None


def test_only_a_tune_that_was_cut_short_is_resumed(tmp_path: Path):
    place = tmp_path / "cases" / "tune-train-1"
    place.mkdir(parents=True)
    kept = journal.Journal(place)
    kept.begin(["python", "train.py"], str(tmp_path))
    assert journal.unfinished(["python", "train.py"], tmp_path) == place
    assert journal.unfinished(["python", "other.py"], tmp_path) is None
    kept.finish()
    assert journal.unfinished(["python", "train.py"], tmp_path) is None


@pytest.mark.parametrize("of", ["run", "step"])
def test_what_lies_between_the_steps_is_tried_on_whole_runs(of):
    fix = Fix("Call model.predict_on_batch(x).", lever="direct-predict", equivalence="reassociated")
    found = Finding("predict-in-loop", "…", cost_ms=9.0, cost_share=0.5, fixes=(fix,), of=of)
    seen = KerasCall("predict", calls=32, ms=1920.0, batches=32, single=32)
    predicts = replace(case(found), evidence=(StepStack("train-function"), seen))
    raced, whole = plan.make(predicts), plan.of_run(predicts)
    assert ("direct-predict" in whole.levers) == (of == "run")
    assert ("direct-predict" in raced.levers) == (of == "step")
    assert ("whole runs" in dict(raced.skipped).get("direct-predict", "")) == (of == "run")
    assert "direct-predict" in plan.make(predicts, named=["direct-predict"]).levers
