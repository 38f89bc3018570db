"""Pruning: removes whole channels, so that layers get smaller and faster, or sets single weights to zero.

Channels: the least important units are removed, in one step or in several with training in between, until parameters,
FLOPs or latency are down to the target share. After each step the smaller model is compared with the larger one in
which the same units are silenced: they must agree up to rounding, or no result is returned.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from flatout.model.errors import CompressionRefused
from flatout.optimize.compress import checks, latency, progress, training
from flatout.optimize.compress.checks import Check
from flatout.optimize.compress.results import Compressed, Size
from flatout.optimize.compress.structure import graph, importance, shrink
from flatout.optimize.compress.structure.channels import Channels, follow
from flatout.optimize.compress.structure.cost import Costs
from flatout.optimize.compress.structure.plan import Limits, Planner

LATENCY_ATTEMPTS = 6


@dataclass(frozen=True)
class ChannelOptions:
    """Options of the removal of channels."""

    importance: Any = "l1"
    """"l1", "batch-norm", "sensitivity", or a function."""
    steps: int = 1
    """How often to prune, with training after each."""
    data: Any = None
    """What sensitivity is measured on, and what the checks use."""
    keep: tuple[str, ...] = ()
    """Names of layers to leave alone."""
    multiple: int = 8
    """Widths stay multiples of this."""
    least_share: float = 0.1
    batch: int = 1
    """The batch size at which latency is measured."""
    seed: int | None = 0
    checkpoint: str | os.PathLike[str] | None = None


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

    One of `parameters`, `flops` and `latency` is the share to reduce to, by removing channels (0.5: half of it).
    `sparsity` is the share of single weights to set to zero instead. `train` is a function that trains the model it
    is given, or the arguments of `fit` as a dictionary; without it nothing is trained.

    Options for channels: `importance` ("l1", "batch-norm", "sensitivity"), `steps` (prunings with training after
    each), `data` (what sensitivity is measured on, and what the checks use), `keep` (names of layers to leave alone),
    `multiple` (of widths), `batch` (at which latency is measured), `seed`, `checkpoint` (a directory to resume from).
    Options for sparsity: see `flatout.optimize.compress.magnitude.sparsify`.
    """
    targets = {"parameters": parameters, "flops": flops, "latency": latency, "sparsity": sparsity}
    given = {name: value for name, value in targets.items() if value is not None}
    if len(given) != 1:
        raise CompressionRefused(f"Give one of {', '.join(targets)}; {len(given)} were given.")
    ((target, share),) = given.items()
    if not 0 < share < 1:
        raise CompressionRefused(f"{target} is a share between 0 and 1, not {share}.")
    if target == "sparsity":
        from flatout.optimize.compress.magnitude import sparsify

        return sparsify(model, share, train=train, **options)
    return prune_channels(model, target, share, train, ChannelOptions(**options))


def prune_channels(
    model: Any, target: str, share: float, train: training.Train | None, options: ChannelOptions
) -> Compressed:
    keep = tuple(options.keep)
    first = follow(model, keep)
    _expect_removable(first)
    before = Costs(first)
    goal = _Goal(target, before, options.batch, model)
    current, found = model, list[Check]()
    journal = training.Journal(options.checkpoint, model, _settings(target, share, options), train)
    loss = training.loss_on(options.data) if options.data is not None and model.compiled else None
    for step in range(1, options.steps + 1):
        known = first if step == 1 else follow(current, keep)

        def decide(known: Channels = known, part: float = step / options.steps) -> frozenset[int]:
            scores = importance.score(known, options.importance, loss)
            planner = Planner(known, scores, Limits(options.least_share, options.multiple))
            return goal.reach(known, planner, share**part, final=part == 1)

        smaller, check = remove(known, journal.decide(f"prune-{step}", decide), options.data)
        found.append(check)
        if train is not None:
            task = f"training after pruning, step {step} of {options.steps}"

            def train_once(backup: Any, model: Any = smaller, task: str = task) -> None:
                training.run(train, model, task=task, seed=options.seed, backup=backup)

            journal.train(f"prune-{step}", smaller, train_once)
        current = smaller
    after = Costs(follow(current, keep))
    return Compressed(
        current,
        "channels pruned",
        Size(before.parameters(), before.flops()),
        Size(after.parameters(), after.flops()),
        tuple(found),
        first.held,
        goal.details,
    )


def _settings(target: str, share: float, options: ChannelOptions) -> list[Any]:
    """What a checkpoint depends on, besides the model."""
    return [
        target,
        share,
        str(options.importance),
        options.steps,
        sorted(options.keep),
        options.multiple,
        options.least_share,
        options.seed,
    ]


def remove(known: Channels, removed: frozenset[int], data: Any = None) -> tuple[Any, Check]:
    """The model without these units, checked against the model in which they are silenced."""
    smaller = shrink.remove_units(known, removed)
    copy = graph.Rebuilt(known.model)
    graph.copy_weights([(layer, copy.layers[id(layer)]) for layer in graph.layers(known.model)])
    inputs = checks.samples(known.model, data=data[0] if isinstance(data, tuple) else None)
    tolerance = checks.rounding_tolerance(known.model)
    # A copy may lack what a layer keeps besides its variables. Then both the silenced and the smaller model lack it.
    checks.expect_equal("copied", checks.outputs(known.model, inputs), checks.outputs(copy.model, inputs), tolerance)
    importance.silence(known, removed, importance.variable_copies(known, copy))
    expected, found = checks.outputs(copy.model, inputs), checks.outputs(smaller, inputs)
    return smaller, checks.expect_equal("pruned channels", expected, found, tolerance)


def _expect_removable(known: Channels) -> None:
    if known.groups:
        return
    reasons = "; ".join(f"{name}: {why}" for name, why in list(known.held.items())[:5])
    raise CompressionRefused(
        f"No channel of {known.model.name} can be removed. " + (reasons or "It has no layer whose width can change.")
    )


class _Goal:
    """The target, and how to reach it."""

    def __init__(self, target: str, before: Costs, batch: int, model: Any) -> None:
        self.details: dict[str, Any] = {}
        self._target, self._batch, self._model = target, batch, model
        self._start = {"parameters": float(before.parameters()), "flops": before.flops()}

    def reach(self, known: Channels, planner: Planner, share: float, *, final: bool) -> frozenset[int]:
        """The units to remove to reach this share."""
        costs = Costs(known)
        if self._target == "parameters":
            return planner.meeting(costs.parameters, share * self._start["parameters"], "parameters")
        if self._target == "flops":
            return planner.meeting(costs.flops, share * self._start["flops"], "FLOPs")
        return self._by_latency(known, planner, share, final)

    def _by_latency(self, known: Channels, planner: Planner, share: float, final: bool) -> frozenset[int]:
        """Latency cannot be computed, so models are built and timed against the original: a binary search."""
        original = latency.compiled(self._model, self._batch)

        def measure(removed: frozenset[int]) -> Any:
            return latency.side_by_side(original, latency.compiled(shrink.remove_units(known, removed), self._batch))

        shown = progress.Progress("measuring how far to prune", LATENCY_ATTEMPTS)
        low, high, best = 0, planner.removable, None
        for attempt in range(LATENCY_ATTEMPTS):
            middle = (low + high + 1) // 2
            removed = planner.removing(middle)
            speedup = measure(removed)
            shown.step(attempt + 1)
            if speedup.ratio >= 1 / share:
                best, high = (removed, speedup), middle
            else:
                low = middle
        if best is None:
            removed = planner.removing(planner.removable)
            speedup = measure(removed)
            if speedup.ratio < 1 / share:
                raise CompressionRefused(
                    f"With everything removed that may be, it takes {1 / speedup.ratio:.0%} of the time at batch "
                    f"{self._batch}, not {share:.0%}: the time is spent elsewhere. A runtime such as LiteRT may help "
                    "(flatout optimize)."
                )
            best = (removed, speedup)
        if final:
            found = measure(best[0])  # anew: the one that was chosen was also lucky
            self.details["speedup"] = f"{found.ratio:.2f}× [{found.low:.2f}, {found.high:.2f}] at batch {self._batch}"
        return best[0]
