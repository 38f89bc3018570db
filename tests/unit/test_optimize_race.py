"""Who leaves the race and when; the front; who is lined up and why the others are not."""

import dataclasses
import inspect
from pathlib import Path

import numpy as np
import pytest

from flatout.measure.race import Race, Rules, TimeLimit, compare
from flatout.model.case import Interval, Latency, Serving, Trial
from flatout.model.errors import FlatoutError
from flatout.optimize import api, artefact, candidates, case, claim, pareto, time_budget
from flatout.optimize.builder import OUT_OF_TIME, Accuracy, Builder
from flatout.optimize.candidates import Candidate, CandidateList, RouteChoice
from flatout.optimize.checks import AccuracyBudget
from flatout.optimize.contestant import Block, Contestant
from flatout.optimize.energy import Meter
from flatout.optimize.optimizer import EARLY_ROUNDS, SCREENING, Outcome
from flatout.optimize.request import OptimizeRequest
from flatout.optimize.tried import Tried
from flatout.routes import catalogue, find
from flatout.routes._route import Route
from flatout.subject import Subject, Tensor, in_batches

FEWEST_ROUNDS = SCREENING.fewest_rounds
SUBJECT = Subject(Path("."), "model.keras", "keras", (Tensor("x", "float32", (None, 4), (4,)),), ())


class Paced(Contestant):
    """A contestant whose calls take a known time, with noise: only the clock is made up."""

    def __init__(self, name: str, milliseconds: float, seed: int = 0, size: int = 100) -> None:
        super().__init__(Candidate(find("litert-fp32"), Path(name), title=name, size_bytes=size), {}, 1)
        self.warm_ms = milliseconds
        self.noise = np.random.default_rng(seed)
        self.calls = 0

    def time_calls(self, at_least):
        self.calls += 1
        times = self.warm_ms / 1e3 * self.noise.lognormal(0, 0.05, size=max(at_least, 3))
        return Block(times.tolist(), len(times), self.warm_ms / 1e3)


def race(*contestants, rounds=12):
    base = Paced("base", 10.0, seed=99)
    held = Race([base])
    held.run(contestants, Rules("behind", rounds))
    return held


def speedup_of(one):
    assert one.verdict is not None
    return one.verdict.speedup


def test_the_interval_holds_the_ratio():
    fast = Paced("fast", 2.0)
    race(fast)
    speedup = speedup_of(fast)
    assert speedup is not None
    assert speedup.low < 5.0 < speedup.high
    assert speedup.high / speedup.low < 1.3


def test_who_is_behind_leaves_once_there_is_an_interval():
    fast, slow, near = Paced("fast", 2.0, 1), Paced("slow", 3.0, 2), Paced("near", 2.02, 3)
    race(fast, slow, near)
    assert slow.calls == FEWEST_ROUNDS
    assert slow.note.startswith("behind")
    assert speedup_of(slow) is not None
    assert (fast.exit.why, near.exit.why) == ("finished", "finished")


def test_who_is_slow_and_far_behind_leaves_early():
    fast, slow, hopeless = Paced("fast", 100.0, 1), Paced("slow", 400.0, 2), Paced("hopeless", 1500.0, 3)
    race(fast, slow, hopeless)
    assert (slow.calls, hopeless.calls) == (3, 1)
    assert speedup_of(slow) is None
    assert slow.verdict.status == "lost"


def test_what_is_claimed_gets_rounds_enough_for_an_interval_even_when_it_is_late():
    screening, claim = (SCREENING, TimeLimit(0.0, EARLY_ROUNDS)), (Rules("all-rounds", 12), TimeLimit(enough=0.0))
    for (rules, limit), rounds in ((screening, 3), (claim, FEWEST_ROUNDS)):
        fast = Paced("fast", 2.0)
        Race([Paced("base", 10.0, seed=99)]).run([fast], rules, limit)
        assert fast.calls == rounds
        assert (speedup_of(fast) is None) is (rules is SCREENING)


def test_what_is_many_times_slower_than_the_model_is_neither_checked_nor_raced(tmp_path):
    def builder(accept_slow):
        made = Builder(SUBJECT, tmp_path, None, Accuracy(AccuracyBudget()), 0.0, accept_slow=accept_slow)
        made._baseline_ms = 100.0
        return made

    slow, compared = Paced("slow", 1100.0), Paced("compared", 1100.0)
    compared.candidate.given = Path("theirs.tflite")
    assert builder(False).too_slow(slow) == "a call takes 1.1 s, 11 times as long as one of tf-function"
    assert not builder(True).too_slow(slow)
    assert not builder(False).too_slow(compared)
    assert not builder(False).too_slow(Paced("behind", 900.0))


def test_too_few_rounds_give_no_interval():
    fast = Paced("fast", 2.0)
    held = race(fast, rounds=FEWEST_ROUNDS - 1)
    assert speedup_of(fast) is None
    assert compare(held.baselines[0], fast) is None


def test_the_baseline_is_measured_alone_where_nothing_came_through():
    held = race(rounds=4)
    assert held.baselines[0].latency() is not None


def test_latency_and_throughput():
    one = Paced("one", 2.0)
    one.batch, one.blocks = 8, [Block([0.001, 0.002, 0.003], 3, 0.001), None, Block([0.002], 1, 0.001)]
    latency = one.latency()
    assert latency is not None
    assert (latency.batch, latency.p50, latency.calls) == (8, pytest.approx(2.0), 4)
    assert latency.throughput == pytest.approx(4000.0)


def test_the_ranking_follows_the_goal():
    quick, small = Paced("quick", 1.0, 1, size=900), Paced("small", 5.0, 2, size=10)
    held = race(quick, small)
    names = [claim.ranked([held], goal)[0].name for goal in ("latency", "throughput", "size")]
    assert names == ["quick", "quick", "small"]


def test_what_has_failed_its_check_is_never_ranked():
    quick, honest = Paced("quick", 1.0, 1), Paced("honest", 5.0, 2)
    held = race(quick, honest)
    quick.candidate.drop("failed", "check: saturates")
    assert [one.name for one in claim.ranked([held], "latency")] == ["honest", "base"]


# ── the front ────────────────────────────────────────────────────────────────────────────────────────────────


def trial(name, milliseconds, size, drop, status="won"):
    latency = Latency(1, milliseconds, milliseconds, milliseconds)
    return Trial(
        (name,), status, stage="route", serving=Serving(name, latencies=(latency,), size_bytes=size, drop=drop)
    )


def test_the_front_holds_what_nothing_beats():
    trials = [
        trial("a", 1.0, 100, 0.01),
        trial("b", 2.0, 50, 0.0),
        trial("c", 3.0, 100, 0.0),
        trial("d", 0.1, 1, 0, "failed"),
    ]
    marked = {one.levers[0]: one.serving.on_front for one in pareto.mark_front(trials)}
    assert marked == {"a": True, "b": True, "c": False, "d": False}


def test_what_is_only_compared_with_is_not_on_the_front():
    assert not pareto.mark_front([trial("keras-call", 1.0, 0, 0.0)])[0].serving.on_front


# ── the line-up ──────────────────────────────────────────────────────────────────────────────────────────────


def lined(**options):
    return CandidateList(catalogue(), SUBJECT, Path("made")).from_routes(RouteChoice(**options))


def test_routes_come_in_their_turn_and_the_baseline_always():
    candidates, _ = lined(only=["tf"])
    turns = [one.route.order for one in candidates]
    assert turns == sorted(turns)
    candidates, _ = lined(only=["tf-frozen"])
    assert {one.name for one in candidates} == {"tf-function", "tf-frozen"}


def test_what_most_often_wins_is_tried_before_what_seldom_does():
    """A large model may leave no time for all of them."""
    order = sorted(catalogue().values(), key=lambda route: route.order)
    names = [route.name for route in order if route.family == "LiteRT"]
    assert names[:2] == ["litert-fp32", "litert-int8"]
    assert names[-1] == "litert-int8-mixed"


def test_what_is_quickly_made_comes_first_and_variants_of_a_runtime_after_its_float32(tmp_path, monkeypatch):
    made = Builder(SUBJECT, tmp_path, None, Accuracy(AccuracyBudget()), 0.0)
    seen = []
    monkeypatch.setattr(
        made, "_build_family", lambda family, batch: seen.append([one.route.name for one in family]) or []
    )
    candidates = [Candidate(route, tmp_path / route.name) for route in catalogue().values()]
    monkeypatch.setattr("flatout.optimize.builder.cores", lambda: 1)
    made.build(candidates, 1)
    assert seen[0] == ["tf-function"]
    assert {"tf-frozen", "tf-xla"} <= set(seen[1])
    names = [name for family in seen for name in family]
    assert names.index("onnxruntime-fp32") < names.index("litert-int8") < names.index("litert-int8-mixed")
    assert names[-2:] == ["keras-call", "keras-predict"]


def test_variants_of_a_runtime_that_cannot_pay_are_left_out(tmp_path):
    made = Builder(SUBJECT, tmp_path, None, Accuracy(AccuracyBudget()), 0.0)
    everyone = [Candidate(find(name), tmp_path / name) for name in ("litert-fp32", "litert-int8", "openvino-int8")]
    made._warm_ms = {"LiteRT": 10.0, "TensorFlow": 1.0, "OpenVINO": 4.0}
    assert made._useless(everyone[1], everyone).startswith("litert-fp32 takes 10 times as long")
    assert not made._useless(everyone[0], everyone)
    assert not made._useless(everyone[2], everyone)
    made._warm_ms = {}
    everyone[0].drop("failed", "conversion: ValueError: no such op")
    assert made._useless(everyone[1], everyone) == "litert-fp32 cannot be converted, and this is made of it"
    made.accept_slow = True
    assert not made._useless(everyone[1], everyone)


def outcome_of(tmp_path, *states):
    """An outcome with a candidate for each (name, over, note, whether it raced)."""
    found = [Candidate(find(name), tmp_path / name, over, note) for name, over, note, _ in states]
    raced = [one for one, state in zip(found, states, strict=True) if state[3]]
    ran = [Contestant(one, {}, 1, blocks=[Block([0.001] * 3, 3, 0.003)]) for one in raced]
    held = Race([Paced("base", 10.0)])
    held.contestants = ran
    return Outcome(SUBJECT, AccuracyBudget(), None, [], found, heats=[held])


def test_the_verdict_knows_what_was_tried(tmp_path):
    done = ("litert-fp32", "", "", True), ("tf-xla", "failed", "check: other answers", False)
    left_out = ("openvino-int8", "needless", "nothing to quantize", False), ("keras-call", "", "", True)
    request = OptimizeRequest("m.keras", seconds=100)
    tried = Tried.of(outcome_of(tmp_path, *done, *left_out))
    assert tried == Tried(2, 1, ())
    assert tried.text(request, ()) == "1 of 2 routes raced; the others failed."
    untried = [
        ("openvino-fp32", "timeout", OUT_OF_TIME, False),
        ("onnxruntime-fp32", "timeout", "conversion: no answer in 60 s", False),
        ("onnxruntime-int8", "timeout", "a call takes 9 s, 11 times as long", False),
        ("litert-int8", "", "", False),
    ]
    tried = Tried.of(outcome_of(tmp_path, *done, *untried))
    assert tried.open == ("openvino-fp32", "onnxruntime-fp32", "litert-int8")
    told = tried.text(request, ("optimize", "m.keras", "--budget", "100s", "--batch", "1"))
    assert told.startswith("1 of 6 routes raced; there was no time for openvino-fp32, onnxruntime-fp32, litert-int8.")
    assert told.endswith("Decide it: flatout optimize m.keras --batch 1 --budget 5m")


def test_what_decides_it_can_be_called_and_is_longer_than_what_was_there(tmp_path):
    outcome = outcome_of(tmp_path, ("litert-fp32", "timeout", OUT_OF_TIME, False))
    outcome.subject = dataclasses.replace(SUBJECT, parameters=40_000_000)
    had = time_budget.seconds_for(outcome.subject)
    assert had == 1200
    told = Tried.of(outcome).text(OptimizeRequest("m.keras"), ("optimize", "m.keras"))
    assert told.endswith(f"flatout optimize m.keras --budget {3 * had / 60:.0f}m")
    in_python = Tried.of(outcome).text(OptimizeRequest("m", seconds=40.0), ("flatout.optimize", "m"))
    assert in_python.endswith("flatout.optimize(…, budget=120)")
    assert "budget" in inspect.signature(api.optimize).parameters


def test_times_that_contradict_the_ratio_are_not_told():
    def latency(p50):
        return Latency(1, p50, p50, p50, 10, 1.0)

    ratio = Interval(1.08, 1.03, 1.13)
    assert case._times(latency(40.0), latency(43.0), ratio) == ", 40 ms instead of 43 ms"
    assert case._times(latency(41.8), latency(40.0), ratio) == ", 41.8 ms"


def test_the_claim_fits_into_what_is_kept_for_it():
    assert claim.claim_seconds(0.5) < 60
    assert claim.claim_seconds(5.0) > claim.claim_seconds(5.0, finalists=1, groups=2) > 50


def test_time_is_allowed_by_size_and_by_the_time_of_a_call():
    def seconds(**facts):
        return time_budget.seconds_for(dataclasses.replace(SUBJECT, **facts))

    assert seconds(parameters=3_500_000, sample_ms=20.0) == time_budget.MIN_SECONDS
    assert 600 < seconds(parameters=23_600_000, sample_ms=20.0) < 900
    assert seconds(parameters=1000, sample_ms=800.0) > 2 * time_budget.MIN_SECONDS
    assert seconds(parameters=10**9, sample_ms=0.0) == time_budget.MAX_SECONDS


def test_what_needs_samples_is_left_out_without_them():
    _, skipped = lined()
    reasons = {one.name: one.why for one in skipped}
    missing = find("litert-int8").missing_package() is not None
    assert ("pip install" if missing else "--data") in reasons["litert-int8"]


def test_hopeless_routes_say_why_and_are_tried_when_asked():
    deep = Subject(Path("."), "m", "keras", SUBJECT.inputs, (), ops={"DepthwiseConv2dNative": 3})
    _, skipped = CandidateList(catalogue(), deep, Path("made")).from_routes(RouteChoice(only=["tf-xla"]))
    assert any("depthwise" in one.why for one in skipped)
    candidates, _ = CandidateList(catalogue(), deep, Path("made")).from_routes(
        RouteChoice(only=["tf-xla"], exhaustive=True)
    )
    assert "tf-xla" in {one.name for one in candidates}


def test_a_package_that_is_missing_names_the_extra():
    class Elsewhere(Route):
        name, family, format, precision, equivalence = "elsewhere", "Elsewhere", "file", "float32", "exact"
        packages = ("no_such_package",)
        convert = inspect = open = loader = None

    Elsewhere.__abstractmethods__ = frozenset()
    _, skipped = CandidateList({"elsewhere": Elsewhere()}, SUBJECT, Path("made")).from_routes(RouteChoice())
    assert skipped[0].why == 'needs the package no_such_package: pip install "flatout[backends]"'


def test_unknown_names_are_told_with_the_known():
    with pytest.raises(FlatoutError, match="litert-int8"):
        RouteChoice(only=["litert-int9"]).check_names(catalogue())


def test_a_file_to_compare_with_has_to_be_one(tmp_path):
    with pytest.raises(FlatoutError, match="--compare takes"):
        CandidateList(catalogue(), SUBJECT, tmp_path).from_comparison_file(tmp_path / "model.pb")


@pytest.mark.parametrize(
    ("asked", "runs"),
    [
        ({}, {"onnxruntime-fp32", "openvino-fp32"}),
        ({"only": ["litert"]}, set()),
        ({"only": ["openvino"]}, {"openvino-fp32"}),
        ({"without": ["openvino"]}, {"onnxruntime-fp32"}),
    ],
)
def test_compressed_files_run_where_routes_were_asked_for(monkeypatch, tmp_path, asked, runs):
    monkeypatch.setattr(candidates.Route, "missing_package", lambda self: None)
    found = CandidateList(catalogue(), SUBJECT, tmp_path).from_compressed_file(
        tmp_path / "small.onnx", RouteChoice(**asked)
    )
    assert {one.route.name for one in found} == runs
    assert all(one.ours for one in found)


# ── small things ─────────────────────────────────────────────────────────────────────────────────────────────


def test_batches_are_full_and_lose_nothing():
    arrays = [np.arange(10).reshape(10, 1)]
    batches = [feed[0][:, 0].tolist() for feed in in_batches(arrays, 4)]
    assert batches == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 0, 1]]
    assert [feed[0].shape for feed in in_batches(arrays, 0)] == [(1,)] * 10


def test_a_subject_round_trips(tmp_path):
    subject = Subject(tmp_path, "m", "keras", SUBJECT.inputs, SUBJECT.inputs, (1, 8), ops={"MatMul": 2}, parameters=7)
    subject.write()
    assert Subject.read(tmp_path) == subject


def test_an_artefact_is_not_overwritten_unasked(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(FlatoutError, match="--force"):
        artefact.output_directory(tmp_path, tmp_path, force=False)
    with pytest.raises(FlatoutError, match="not an artefact"):
        artefact.output_directory(tmp_path, tmp_path, force=True)
    (tmp_path / "manifest.json").write_text("{}")
    assert artefact.output_directory(tmp_path, tmp_path, force=True) == tmp_path


def test_energy_is_read_where_there_are_counters_and_survives_their_turning_over(tmp_path):
    assert Meter(tmp_path).read() is None
    package = tmp_path / "intel-rapl:0"
    package.mkdir()
    (package / "energy_uj").write_text("900\n")
    (package / "max_energy_range_uj").write_text("1000\n")
    meter = Meter(tmp_path)
    before = meter.read()
    (package / "energy_uj").write_text("100\n")
    assert meter.joules(before, meter.read()) == pytest.approx(200e-6)
