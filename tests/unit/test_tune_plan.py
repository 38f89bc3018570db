"""Which levers are tried, and how winners are put together."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from flatout.cures import find
from flatout.measure.parity import Parity
from flatout.model.case import Case, Distribution, Finding, Fix, Interval, Steps, Trial
from flatout.model.errors import UnknownLever
from flatout.model.evidence.outcomes import LeverSkipped
from flatout.model.evidence.steps import StepStack
from flatout.tune import conclusions, journal, plan
from flatout.tune.conclusions import judge, verdict_of


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


def test_the_input_is_left_alone_where_a_free_one_gives_nothing():
    made = plan.make(case(), bounds={"free-input": Interval(1.0, 0.98, 1.01)})
    assert not any(text.startswith(("cache", "prefetch", "vectorize-map")) for text in made.levers)
    assert "1.00 [0.98, 1.01]" in dict(made.skipped)["cache"]


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


def test_the_verdict_claims_only_the_confirmation():
    def told(*trials: Trial) -> str:
        return verdict_of(Case("tune", steps=case().steps, trials=trials))

    assert "2.00 times as fast [1.90, 2.10]" in told(trial(), trial(stage="combination", parity="exact"))
    assert "and the confirmation did not show it" in told(trial(), trial("noise", stage="combination"))
    undecided = replace(trial("noise", stage="combination"), speedup=None)
    assert "Nothing is claimed: xla was faster at first, and there was too little time" in told(trial(), undecided)
    assert "what changes them (precision): xla 2.00×" in told(trial(equivalence="precision"))
    assert "Nothing worth changing: of 1" in told(trial("noise"))
    assert "No step" in verdict_of(Case("tune"))


def test_no_time_for_any_lever_is_not_called_a_lack_of_levers():
    late = LeverSkipped("xla", note="no time left for it: a larger --budget tries it")
    assert "there was no time" in verdict_of(Case("tune", steps=case().steps, evidence=(late,)))
    assert "no lever fits" in verdict_of(Case("tune", steps=case().steps))


def test_a_lack_of_time_is_not_called_a_lack_of_gain():
    undecided = Trial(("cache",), "noise", None, rounds=3)
    told = verdict_of(Case("tune", steps=case().steps, trials=(trial("noise"), undecided)))
    assert "Not decided" in told
    assert "cache" in told


def test_a_cure_that_waits_to_be_asked_for_is_spoken_of(monkeypatch):
    cure = find("parallel-map")
    fitting = replace(cure, spec=replace(cure.spec, skip=lambda case: None))
    monkeypatch.setattr(conclusions, "find", lambda name: fitting if name == cure.name else find(name))
    fix = Fix("Make several calls at once.", lever="parallel-map", equivalence="semantic")
    finding = Finding("serial-stateful-map", "A map is serial.", cost_ms=8.0, cost_share=0.8, fixes=(fix,))
    found = Case("tune", steps=case().steps, trials=(trial("noise"),), findings=(finding,))
    assert "Nothing worth changing as the training is: of 1" in verdict_of(found)
    assert "parallel-map, the cure for 80% of each step" in verdict_of(found)
    assert "--allow semantic" in verdict_of(found)
    tried = Trial(("parallel-map",), "noise", Interval(1.0, 0.9, 1.1), equivalence="semantic")
    assert "--allow" not in verdict_of(replace(found, trials=(trial("noise"), tried)))
    small = replace(finding, cost_share=0.05)
    assert "--allow" not in verdict_of(replace(found, findings=(small,)))


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
