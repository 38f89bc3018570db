"""Pruning: whole channels, so that layers get smaller and faster, or single weights, so that the file gets smaller.

Channels: the least important units go, in one step or in several with training in between, until parameters, FLOPs or
latency are down to the wanted share. After each step the smaller model is held against the larger one with the same
units silenced: they must agree to rounding, or nothing is handed over.
"""

from __future__ import annotations

import os
from typing import Any

from flatout.model.errors import CompressionRefused
from flatout.optimize.compress import checks, latency, progress, training
from flatout.optimize.compress.checks import Check
from flatout.optimize.compress.results import Compressed, Size
from flatout.optimize.compress.structure import graph, importance, shrink
from flatout.optimize.compress.structure.channels import Channels, follow
from flatout.optimize.compress.structure.cost import Costs
from flatout.optimize.compress.structure.plan import Limits, Planner


def prune(
    model: Any,
    *,
    parameters: float | None = None,
    flops: float | None = None,
    latency: float | None = None,
    sparsity: float | None = None,
    train: training.Train | None = None,
    **options: Any,
) -> Compressed:
    """Prune a Keras 3 model.

    One of `parameters`, `flops` and `latency` is the share to come down to, by removing channels (0.5: half of it).
    `sparsity` is the share of single weights to set to zero instead. `train` is a function that trains the model it
    is given, or the arguments of `fit` as a dictionary; without it nothing is trained.

    Options for channels: `importance` ("l1", "batch-norm", "sensitivity"), `steps` (prunings with training after
    each), `data` (what sensitivity is measured on, and what the check is made with), `keep` (names of layers to leave
    alone), `multiple` (of widths), `batch` (that latency is measured at), `seed`, `checkpoint` (a directory to resume
    from). Options for sparsity: see `flatout.optimize.compress.magnitude.sparsify`.
    """
    wishes = {"parameters": parameters, "flops": flops, "latency": latency, "sparsity": sparsity}
    asked = {name: value for name, value in wishes.items() if value is not None}
    if len(asked) != 1:
        raise CompressionRefused(f"Give one of {', '.join(wishes)}; {len(asked)} were given.")
    ((target, share),) = asked.items()
    if not 0 < share < 1:
        raise CompressionRefused(f"{target} is a share between 0 and 1, not {share}.")
    if target == "sparsity":
        from flatout.optimize.compress.magnitude import sparsify

        return sparsify(model, share, train=train, **options)
    return channels(model, target, share, train=train, **options)


def channels(
    model: Any,
    target: str,
    share: float,
    *,
    train: training.Train | None = None,
    importance: Any = "l1",
    steps: int = 1,
    data: Any = None,
    keep: tuple[str, ...] = (),
    multiple: int = 8,
    least_share: float = 0.1,
    batch: int = 1,
    seed: int | None = 0,
    checkpoint: str | os.PathLike[str] | None = None,
) -> Compressed:
    limits = Limits(least_share, multiple)
    first = follow(model, tuple(keep))
    _something_to_remove(first)
    before = Costs(first)
    goals = _Goals(target, share, before, batch, model)
    settings = [target, share, str(importance), steps, sorted(keep), multiple, least_share, seed]
    journal = training.Journal(checkpoint, model, settings)
    loss = training.loss_on(data) if data is not None and model.compiled else None
    current, found = model, list[Check]()
    for step in range(steps):
        known = first if step == 0 else follow(current, tuple(keep))

        def decide(known: Channels = known, part: float = (step + 1) / steps) -> frozenset[int]:
            planner = Planner(known, _scores(known, importance, loss), limits)
            return goals.reach(known, planner, share**part, final=part == 1)

        removed = journal.decided(f"prune-{step + 1}", decide)
        smaller, check = remove(known, removed, data)
        found.append(check)
        if train is not None:
            task = f"training after pruning, step {step + 1} of {steps}"

            def once(backup: Any, model: Any = smaller, task: str = task) -> None:
                training.run(train, model, task=task, seed=seed, backup=backup)

            journal.trained(f"prune-{step + 1}", smaller, once)
        current = smaller
    after = Costs(follow(current, tuple(keep)))
    return Compressed(
        current,
        "channels pruned",
        Size(before.parameters(), before.flops()),
        Size(after.parameters(), after.flops()),
        tuple(found),
        first.held,
        goals.details,
    )


def remove(known: Channels, removed: frozenset[int], data: Any = None) -> tuple[Any, Check]:
    """The model without these units, checked against the model in which they are silent."""
    smaller = shrink.without(known, removed)
    copy = graph.Rebuilt(known.model)
    graph.copy_weights([(layer, copy.layers[id(layer)]) for layer in graph.layers(known.model)])
    inputs, exact = checks.samples(known.model, data=data[0] if isinstance(data, tuple) else None), checks.rounding
    # What a layer keeps beside its variables, a copy of it may lack: silenced and smaller would lack it alike.
    checks.same("copied", checks.outputs(known.model, inputs), checks.outputs(copy.model, inputs), exact(known.model))
    importance.silence(known, removed, importance.twins_of(known, copy))
    expected, found = checks.outputs(copy.model, inputs), checks.outputs(smaller, inputs)
    return smaller, checks.same("pruned channels", expected, found, exact(known.model))


def _scores(known: Channels, way: Any, loss: Any) -> importance.Scores:
    return importance.score(known, way, loss)


def _something_to_remove(known: Channels) -> None:
    if known.groups:
        return
    reasons = "; ".join(f"{name}: {why}" for name, why in list(known.held.items())[:5])
    raise CompressionRefused(
        f"No channel of {known.model.name} can be removed. " + (reasons or "It has no layer whose width could change.")
    )


class _Goals:
    """The target in its own terms, and how to reach it."""

    def __init__(self, target: str, share: float, before: Costs, batch: int, model: Any) -> None:
        self.details: dict[str, Any] = {}
        self._target, self._batch, self._model = target, batch, model
        self._start = {"parameters": float(before.parameters()), "flops": before.flops()}

    def reach(self, known: Channels, planner: Planner, share: float, *, final: bool) -> frozenset[int]:
        costs = Costs(known)
        if self._target == "parameters":
            return planner.meeting(costs.parameters, share * self._start["parameters"], "parameters")
        if self._target == "flops":
            return planner.meeting(costs.flops, share * self._start["flops"], "FLOPs")
        return self._by_latency(known, planner, share, final)

    def _by_latency(self, known: Channels, planner: Planner, share: float, final: bool) -> frozenset[int]:
        """Latency has no formula: candidates are built and timed beside the original."""
        original = latency.compiled(self._model, self._batch)
        told = progress.Progress("measuring how far to prune", 6)
        low, high, best = 0, planner.most, None
        for attempt in range(6):
            middle = (low + high + 1) // 2
            removed = planner.removing(middle)
            candidate = latency.compiled(shrink.without(known, removed), self._batch)
            speedup = latency.side_by_side(original, candidate)
            told.step(attempt + 1)
            if speedup.ratio >= 1 / share:
                best, high = (removed, speedup), middle
            else:
                low = middle
        if best is None:
            removed = planner.removing(planner.most)
            speedup = latency.side_by_side(original, latency.compiled(shrink.without(known, removed), self._batch))
            if speedup.ratio < 1 / share:
                raise CompressionRefused(
                    f"With all gone that may go it takes {1 / speedup.ratio:.0%} of the time at batch {self._batch}, "
                    f"not {share:.0%}: the time goes elsewhere. A runtime such as LiteRT may help (flatout optimize)."
                )
            best = (removed, speedup)
        if final:
            self.details["speedup"] = (
                f"{best[1].ratio:.2f}× [{best[1].low:.2f}, {best[1].high:.2f}] at batch {self._batch}"
            )
        return best[0]
