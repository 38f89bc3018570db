"""What flatout has to make of the programs of patterns/. Plain Python: importing this needs no TensorFlow.

Each stands for a way in which people write training code. `finding` lists the causes that are right as the first
finding of `flatout run`; `cures` the levers that must be among those it offers; `patch` those that are written into the
source together, and that must leave the numbers as they are. Where `finding` is empty there is nothing to win, and no
finding may cost more than a tenth.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
NOTHING_WORTH = 0.10


@dataclass(frozen=True)
class Pattern:
    name: str
    what: str
    finding: tuple[str, ...] = ()
    cures: tuple[str, ...] = ()
    patch: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    """Further causes that are true of it, whatever they cost."""
    file: str = ""
    """Where it is one of another folder: its path from here."""

    @property
    def path(self) -> Path:
        return HERE / (self.file or f"patterns/{self.name}.py")

    @property
    def expert(self) -> Path | None:
        """By hand; None where there is nothing to win."""
        return HERE / f"patterns/expert/{self.name}.py" if self.finding else None


PATTERNS = (
    Pattern(
        "trainer",
        "a trainer class whose step runs eagerly",
        finding=("eager-step",),
        cures=("function",),
        patch=("function",),
    ),
    Pattern(
        "vae",
        "a loop at the top level of the module, a model that draws its own noise",
        finding=("eager-step",),
        cures=("extract-step",),
        patch=("extract-step",),
    ),
    Pattern(
        "dqn",
        "predict on one row, predict and fit on 32, once a move",
        finding=("predict-in-loop",),
        cures=("direct-fit", "direct-predict"),
        patch=("direct-fit", "direct-predict"),
    ),
    Pattern(
        "ddpg",
        "an eager call of the policy, two eager steps, targets that follow by get_weights and set_weights",
        finding=("eager-step", "eager-calls"),
        cures=("function", "mix-weights"),
        patch=("function", "traced-calls", "mix-weights"),
        also=("eager-step", "eager-calls", "weight-copies"),
    ),
    Pattern(
        "text_generation",
        "print(loss.numpy()) inside of the tape, a Python loop of cell calls, another keyword after training",
        finding=("eager-step",),
        cures=("extract-step",),
        patch=("extract-step",),
        also=("eager-calls",),
    ),
    Pattern(
        "addition",
        "fit on short sequences, again and again, with predictions between",
        finding=("short-recurrence", "step-overhead"),
        cures=("unroll",),
        patch=("unroll", "steps-per-execution"),
        also=("predict-in-loop", "step-overhead"),
    ),
    Pattern(
        "actor_critic",
        "an episode, its environment and numpy inside of the tape: batching it is left to its author",
        finding=("eager-step", "eager-calls"),
        cures=("function",),
        patch=("function",),
        also=("eager-calls", "per-sample-loop", "host-sync"),
    ),
    Pattern(
        "eager_metrics",
        "a traced step, and metrics that the loop updates behind it",
        finding=("eager-calls",),
        cures=("extract-step",),
        patch=("extract-step",),
        also=("input-bound", "step-overhead"),
    ),
    Pattern("slow_convolutions", "steps that take long and do nothing but compute"),
    Pattern("mixup", "two shuffled datasets, zipped; a second fit"),
    Pattern("session_vae", "a session of TensorFlow 1 that is fed"),
    Pattern("gan", "a traced step with two optimizers", file="steps/gan_two_optimizers.py"),
)


def find(name: str) -> Pattern:
    return next(pattern for pattern in PATTERNS if pattern.name == name)
