"""Makes the Case of an optimize: trials, the Pareto front, the verdict; and writes the artefact's manifest."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from flatout.measure.race import WORTH, Race, Verdict, disturbed, status_of
from flatout.model.case import Case, Distribution, Evidence, Interval, Latency, Note, Program, Serving, Steps, Trial
from flatout.model.evidence.outcomes import MaxDrop, Metric, ModelParameters, Objective, RouteSkipped, SampleOrigin
from flatout.model.version import __version__
from flatout.model.vocabulary import INTERRUPTED, ParityVerdict, TrialStage
from flatout.optimize import artefact
from flatout.optimize.candidates import BASELINE, Candidate
from flatout.optimize.claim import Claim
from flatout.optimize.contestant import Contestant
from flatout.optimize.optimizer import NOT_RACED, Outcome
from flatout.optimize.pareto import mark_front
from flatout.optimize.request import OptimizeRequest
from flatout.optimize.tried import Tried
from flatout.subject.any_length import has_open_lengths

BETTER = {"latency": "is faster", "throughput": "is faster", "size": "is smaller", "memory": "takes less memory"}
SAME_RATIO = 0.1
"""The times of two calls are told where their ratio is that of the claim, within this share."""


def make_case(
    outcome: Outcome, request: OptimizeRequest, command: tuple[str, ...], started: str, seconds: float
) -> Case:
    trials = [*_race_trials(outcome), *_claim_trials(outcome)]
    return Case(
        kind="optimize",
        program=Program(
            command=command,
            directory=str(Path.cwd()),
            started=started,
            seconds=seconds,
            exit_code=130 if outcome.interrupted else 0,
        ),
        environment={"versions": artefact.versions()},
        steps=_baseline_steps(outcome),
        evidence=_evidence(outcome, request),
        trials=mark_front(trials),
        verdict=verdict(outcome, request, command),
        notes=tuple(_notes(outcome)),
        flatout=__version__,
    )


def _race_trials(outcome: Outcome) -> list[Trial]:
    raced: dict[int, list[tuple[Race[Contestant], Contestant]]] = {}
    for race in outcome.heats:
        for one in (*race.baselines, *race.contestants):
            raced.setdefault(id(one.candidate), []).append((race, one))
    not_raced = INTERRUPTED if outcome.interrupted else NOT_RACED
    trials = []
    for candidate in outcome.candidates:
        if candidate.over == "needless":
            continue  # listed among the skipped routes
        raced_settings = sorted(raced.get(id(candidate), []), key=lambda pair: pair[1].call_ms() or float("inf"))
        if candidate.over or not raced_settings:
            status: Literal["timeout", "failed"] = "failed" if candidate.over == "failed" else "timeout"
            serving = _serving(candidate, None)
            trials.append(
                Trial((candidate.name,), status, None, _parity(candidate), candidate.note or not_raced,
                      candidate.equivalence, stage="route", serving=serving)
            )  # fmt: skip
            continue
        for index, (race, one) in enumerate(raced_settings):
            trials.append(_trial(one, race, "setting" if index else "route"))
    return trials


def _claim_trials(outcome: Outcome) -> list[Trial]:
    claim = outcome.claim
    if claim is None or claim.winner is None:
        return []
    trials = []
    for one in claim.race.contestants:
        trial = _trial(one, claim.race, "claim")
        if one is claim.winner and trial.serving is not None:
            serving = replace(trial.serving, latencies=claim.latencies(), artefact=str(claim.artefact))
            trial = replace(trial, serving=replace(serving, size_bytes=claim.size_bytes or serving.size_bytes))
        trials.append(trial)
    return trials


def _trial(one: Contestant, race: Race[Contestant], stage: TrialStage) -> Trial:
    candidate, is_baseline = one.candidate, one in race.baselines
    verdict = Verdict("noise", note="the baseline") if is_baseline else race.verdict(one)
    if candidate.over and not is_baseline:  # it has broken since: what it was timed with is no result
        verdict = Verdict("timeout" if candidate.over == "timeout" else "failed", note=candidate.note)
    return Trial(
        levers=(one.name if stage != "route" else candidate.name,),
        status=verdict.status,
        speedup=verdict.speedup,
        parity=_parity(candidate),
        note=verdict.note if candidate.over else one.note or verdict.note or _matched(candidate),
        equivalence=candidate.equivalence,
        step_ms=one.call_ms(),
        rounds=sum(1 for block in one.blocks if block is not None),
        stage=stage,
        memory_bytes=one.memory_bytes,
        serving=_serving(candidate, one),
    )


def _serving(candidate: Candidate, one: Contestant | None) -> Serving:
    checked = candidate.checked
    latency = one.latency() if one is not None else None
    return Serving(
        route=candidate.route.name,
        family=candidate.route.family,
        format=candidate.route.format,
        precision="" if candidate.given else candidate.route.precision,
        setting=dict(one.setting) if one is not None else {},
        latencies=(latency,) if latency is not None else (),
        metric=checked.metric if checked else None,
        drop=checked.drop if checked else None,
        drop_bound=_finite(checked.bound) if checked else None,
        agreement=_finite(checked.agreement) if checked else None,
        samples=checked.samples if checked else 0,
        size_bytes=candidate.size_bytes,
        memory_bytes=one.memory_bytes if one is not None else 0,
        load_ms=one.load_ms if one is not None else None,
        convert_ms=candidate.convert_ms,
        conversion_reused=candidate.reused or None,
        computes=dict(candidate.contents.computes) if candidate.contents else {},
    )


def _matched(candidate: Candidate) -> str:
    """How the inputs and outputs of a file made elsewhere were put into the model's order."""
    moved = [
        f"{what} {', '.join(str(place) for place in order)}"
        for what, order in (("inputs", candidate.orders.inputs), ("outputs", candidate.orders.outputs))
        if order and order != tuple(sorted(order))
    ]
    return f"in another order than the model's: its {' and '.join(moved)} are taken in turn" if moved else ""


def _parity(candidate: Candidate) -> ParityVerdict:
    if candidate.checked is None:
        return ""
    return "failed" if candidate.checked.problem or candidate.over else candidate.equivalence


def _finite(value: float | None) -> float | None:
    return value if value is not None and abs(value) != float("inf") and value == value else None


def _baseline_steps(outcome: Outcome) -> Steps | None:
    baseline = outcome.heats[0].baselines[0]
    latency = baseline.latency()
    if latency is None:
        return None
    times = baseline.call_times()
    return Steps(
        count=len(times),
        found_by=f"calls of {BASELINE} at batch {latency.batch}",
        ms=Distribution(latency.p50, min(times), latency.p95, sum(times) / len(times), min(times), max(times)),
        kind="call",
    )


def _evidence(outcome: Outcome, request: OptimizeRequest) -> tuple[Evidence, ...]:
    subject = outcome.subject
    facts: list[Evidence] = [
        ModelParameters(subject.parameters, source="the frozen graph"),
        Objective(request.objective),
        MaxDrop(request.max_drop),
        Metric(outcome.budget.metric or "agreement", outcome.original_metric),
        SampleOrigin(subject.data),
    ]
    facts += [RouteSkipped(one.name, note=one.why) for one in outcome.skipped]
    needless = (one for one in outcome.candidates if one.over == "needless")
    facts += [RouteSkipped(one.name, note=one.note) for one in needless]
    return tuple(facts)


def _notes(outcome: Outcome) -> list[Note]:
    notes = [Note("warning", text) for text in outcome.notes]
    if outcome.subject.data == "synthetic":
        notes.insert(
            0,
            Note(
                "warning",
                "NO DATA WAS GIVEN: latency was measured with random inputs and ACCURACY WAS NOT CHECKED. Routes that "
                "need samples were left out.",
                "Give --data, and --metric if there are labels.",
            ),
        )
    elif outcome.budget.metric is None:
        notes.append(
            Note("info", "No metric was given: artefacts are checked for agreement with the original's own answers.")
        )
    notes += [Note("info", f"{one.name}: {text}.") for one in outcome.candidates if (text := _matched(one))]
    races = [*outcome.heats, *([outcome.claim.race] if outcome.claim is not None else [])]
    notes += disturbed(race.taken for race in races)
    if reused := sum(one.reused for one in outcome.candidates):
        notes.append(
            Note(
                "info",
                f"{reused} of {len(outcome.candidates)} candidates were not converted now: an earlier call has "
                "converted the same model with the same packages. All were checked and measured now.",
                "--no-cache converts everything again.",
            )
        )
    if outcome.claim is not None:
        notes += [Note("warning", text) for text in outcome.claim.notes]
        if outcome.claim.served:
            lengths = ", which takes the lengths of the samples alone" if has_open_lengths(outcome.subject) else ""
            text = f"Tried by its names in the layout of the server{lengths}: {outcome.claim.served}"
            notes.append(Note("info", text))
            notes += _not_refused(outcome.claim.winner)
    return notes


def _not_refused(winner: Contestant | None) -> list[Note]:
    """What `load.py` refuses and a server answers, which is given the files of the model alone."""
    refused = {
        "samples with NaN or infinity": winner is not None and winner.candidate.finite_only,
        "other numbers of samples at once than were tried": winner is not None and bool(winner.candidate.sizes),
    }
    if not (named := [what for what, is_refused in refused.items() if is_refused]):
        return []
    return [
        Note(
            "warning",
            f"load.py refuses {' and '.join(named)}. The server does not, and may answer otherwise than the original.",
        )
    ]


def verdict(outcome: Outcome, request: OptimizeRequest, command: Sequence[str] = ()) -> str:
    """What to do, and how much of what could pay was tried."""
    claim, tried = outcome.claim, Tried.of(outcome)
    text = tried.text(request, command)
    if outcome.interrupted:
        return f"Interrupted: nothing was handed over. {text}"
    if claim is None or claim.winner is None:
        itself = next((one for one in outcome.candidates if one.is_model_itself and one.over), None)
        why = f", the model itself neither ({itself.note})" if itself is not None else ""
        if claim is not None and claim.lost:
            return f"Nothing was handed over: {claim.lost}. Keep serving the original. {text}"
        return f"No route passed its checks{why}: there is no artefact, keep serving the original. {text}"
    winner = claim.winner
    fixed = f"{_fixed(outcome, winner)}{_unshown(outcome, winner, request.objective)}"
    if winner.candidate.is_model_itself:
        kept = f"he artefact is the model itself, as a SavedModel. {claim.unserved} ".replace("  ", " ")
        better = BETTER[request.objective]
        if tried.open:
            start = f"Undecided: nothing that was raced {better}, and the time was too short for all. T"
            return f"{start}{kept}{fixed}{text}"
        return f"Nothing that passed its checks {better}: t{kept}{fixed}{text}"
    changes = _accuracy(outcome, winner) + _size(claim, winner, request.objective)
    times = _times(winner.latency(), claim.race.baselines[0].latency(), claim.speedup)
    unmeasured = claim.speedup is None and request.objective not in ("size", "memory")
    undecided = "Undecided: " if unmeasured or (tried.open and not _pays(claim, winner, request)) else ""
    at = f" at batch {winner.batch}" if winner.batch > 1 or len(outcome.subject.batches) > 1 else ""
    return f"{undecided}{winner.name}: {_speed(claim.speedup)}{times}{at}{changes}. {fixed}{text}"


def _pays(claim: Claim, winner: Contestant, request: OptimizeRequest) -> bool:
    """Whether it is better than the model itself in what was asked for."""
    base = claim.race.baselines[0]
    if request.objective == "size":
        return WORTH * winner.candidate.size_bytes < base.candidate.size_bytes
    if request.objective == "memory":
        return WORTH * winner.memory_bytes < base.memory_bytes
    return claim.speedup is not None and claim.speedup.low > WORTH


def _unshown(outcome: Outcome, winner: Contestant, objective: str) -> str:
    """Of what looked better, and may be accurate enough: there were too few samples to show it."""
    raced: dict[int, float] = {}
    for one in (one for race in outcome.heats for one in (*race.baselines, *race.contestants)):
        cost = one.candidate.size_bytes if objective == "size" else one.call_ms() or math.inf
        raced[id(one.candidate)] = min(cost, raced.get(id(one.candidate), math.inf))
    limit = 0.0 if objective == "memory" else raced.get(id(winner.candidate), 0.0)
    for candidate in outcome.candidates:
        unshown = candidate.checked is not None and candidate.checked.unshown
        if unshown and raced.get(id(candidate), math.inf) < limit:
            looked = BETTER[objective].removeprefix("is ")
            return (
                f"{candidate.name} looked {looked} and is not handed over: {candidate.note.removeprefix('check: ')}. "
            )
    return ""


def _fixed(outcome: Outcome, winner: Contestant) -> str:
    """What the original left open and the artefact does not."""
    said = []
    if winner.candidate.fixed_batch:
        said.append(f"{winner.candidate.fixed_batch} ")
    if winner.candidate.finite_only:
        said.append("It refuses samples with NaN or infinity, which it would answer otherwise than the original. ")
    if winner.candidate.integers:
        said.append(f"Integers out of range are {winner.candidate.integers}. ")
    for one in outcome.subject.inputs:
        lengths = one.shape[1:] if outcome.subject.batching != "none" else one.shape
        if None in lengths:
            was = ", ".join("any" if n is None else str(n) for n in lengths)
            now = ", ".join(map(str, one.sample))
            others = (
                "other lengths are answered as by the original, by TensorFlow and no faster"
                if winner.candidate.any_length
                else "give it no others, or make one for each with --shape"
            )
            said.append(f"It is made for {one.name} of ({now}); the original takes ({was}): {others}. ")
    return "".join(said)


def _times(mine: Latency | None, its: Latency | None, speedup: Interval | None) -> str:
    """The times of a call, where they say the same as the ratio, which is of rounds and not of calls."""
    if mine is None or its is None or speedup is None or abs(its.p50 / mine.p50 / speedup.ratio - 1) > SAME_RATIO:
        return f", {mine.p50:.3g} ms" if mine is not None else ""
    return f", {mine.p50:.3g} ms instead of {its.p50:.3g} ms"


def _speed(speedup: Interval | None) -> str:
    if speedup is None:
        return "how much faster than tf.function could not be measured"
    if status_of(speedup) == "noise":
        return f"no measurable gain over tf.function ({speedup.ratio:.2f}× [{speedup.low:.2f}, {speedup.high:.2f}])"
    return f"{speedup.ratio:.3g} times as fast as tf.function [{speedup.low:.3g}, {speedup.high:.3g}]"


def _accuracy(outcome: Outcome, winner: Contestant) -> str:
    checked = winner.candidate.checked
    if checked is None or outcome.subject.data == "synthetic":
        return "; accuracy not checked"
    most = f" (at most {max(checked.bound, 0.0):.2g} worse, 95 %)" if checked.bound is not None else ""
    on = f"on {checked.samples:,} held-out samples{most}"
    if checked.metric is not None and checked.drop is not None:
        direction = "worse" if checked.drop > 0 else "better"
        change = "unchanged" if abs(checked.drop) < 5e-5 else f"{abs(checked.drop):.4f} {direction}"
        return f"; {outcome.budget.metric} {checked.metric:.4f}, {change}, {on}"
    return f"; agreement {checked.agreement:.5f} {on}"


def _size(claim: Claim, winner: Contestant, objective: str) -> str:
    """On disk, or in memory where that is the objective; of all files that serve."""
    base = claim.race.baselines[0]
    if objective == "memory":
        return f"; {winner.memory_bytes / 2**20:.0f} MiB of memory instead of {base.memory_bytes / 2**20:.0f} MiB"
    mine, its = claim.size_bytes or winner.candidate.size_bytes, base.candidate.size_bytes
    if objective == "size":
        return f"; {mine / 2**10:,.0f} KiB on disk instead of {its / 2**10:,.0f} KiB"
    ratio = its / max(mine, 1)
    return f"; {ratio:.1f} times smaller" if ratio > 1.1 else ""


def publish(outcome: Outcome, case: Case) -> None:
    """Write the artefact's manifest, and give it its name."""
    claim = outcome.claim
    if claim is None or claim.winner is None or claim.artefact is None:
        return
    trial = next(one for one in case.trials if one.serving is not None and one.serving.artefact)
    assert trial.serving is not None
    artefact.write_manifest(
        artefact.unfinished(claim.artefact),
        claim.winner,
        outcome.subject,
        replace(trial.serving, artefact=None),
        claim.speedup,
        {
            "metric": {"name": outcome.budget.metric or "agreement", "original": outcome.original_metric},
            "max_drop": outcome.budget.max_drop,
            "data": outcome.subject.data,
            "weights": claim.winner.candidate.contents.weights if claim.winner.candidate.contents else 0,
            "baseline_latencies": [vars(one) for one in claim.baseline_latencies()],
            "loaders": {str(claim.winner.batch): artefact.LOADER}
            | {str(one.one.batch): one.loader for one in claim.other_batches},
            "served": claim.served,
            "verdict": case.verdict,
        },
    )
    artefact.publish(claim.artefact)


def now() -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S")
