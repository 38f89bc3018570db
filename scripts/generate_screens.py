"""Writes docs/screens.md: what `run` and `tune` print at their end, for kept cases, and what a reader takes from it.

python scripts/generate_screens.py            writes the page
python scripts/generate_screens.py --check    fails where it is out of date
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from flatout.model.case import Case
from flatout.report.terminal import render

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "screens.md"
CASES = ROOT / "tests" / "fixtures"
COLUMNS = 100
QUESTIONS = ("What is slow?", "Which line?", "What to do?", "How much does it give?", "Is it safe?")

CHANGED = (
    '"How much does it give?": a cause of 43 % of each step looked worth its cure in a run whose steps took 0.1 of 43 '
    'seconds. "costs" now says what that is in all.',
    '"What is slow?": 48 steps of 1.5 s stood beside "9.8 s in 48 training steps", since traces are counted by '
    'themselves. It is "the rest of 48 training steps" now.',
    '"What to do?": undecided tunes and withheld patches named levers (`relax-shapes`). They say what the change is.',
    "Start and exit of a run had the same sign in its bar, which only a colour told apart. Each part has its own.",
)
"""What readers could not tell, and what was done about it."""


@dataclass(frozen=True)
class Screen:
    title: str
    case: str
    answers: tuple[str, str, str, str, str]
    """From the screen alone."""


SCREENS = (
    Screen(
        "A training step that runs eagerly",
        "screens/run-slow.json",
        ("Python starts each operation by itself", "slow_training.py:76", "decorate it with @tf.function",
         "not known before a tune; 79 % of a step is what it costs", "the cure gives the same results up to rounding"),
    ),
    Screen(
        "The same, tuned",
        "screens/tune-won.json",
        ("the eager step", "slow_training.py:76", "apply the patch: one line",
         "the run about 1.9 times, steps 4 times as fast",
         "same results up to rounding, compared to the end of the program"),
    ),
    Screen(
        "A generator in Python",
        "cases/before-rebuild/generator_numpy/case.json",
        ("the step waits for a Python generator", "generator_numpy.py:33",
         "write it with TensorFlow ops, or store the data as record shards",
         "not known before a tune; 77 % of a step is what it costs", "bit for bit the same"),
    ),
    Screen(
        "A function that is traced again and again",
        "cases/before-rebuild/tune-retrace_scalar/case.json",
        ("train_step is traced for each learning rate", "retrace_scalar.py:39", "apply the patch: pass a tensor",
         "steps 80 times as fast; the run was not measured", "bit for bit the same"),
    ),
    Screen(
        "A GPU that computes in many small kernels",
        "screens/tune-gpu.json",
        ("kernels other than products and convolutions", "encoder_loop.py:33", "apply the patch: jit_compile=True",
         "a run this short perhaps nothing; steps 4.4 times as fast", "same results up to rounding"),
    ),
    Screen(
        "Faster, but not the same",
        "screens/tune-not-the-same.json",
        ("the eager step", "slow_training.py:76", "nothing yet: no change is proposed",
         "3.8 times, if it were the same", "no: results differ by more than rounding"),
    ),
    Screen(
        "Not decided",
        "screens/tune-undecided.json",
        ("starting a step costs more than computing it", "dqn.py:33", "go on with the command at the end",
         "not known yet", "nothing is claimed"),
    ),
    Screen(
        "A program in good order",
        "cases/before-rebuild/keras_conv_cached/case.json",
        ("nothing: 98 % of a step is computing", "none", "nothing", "nothing", "nothing is changed"),
    ),
)  # fmt: skip


def page() -> str:
    parts = [
        "# Screens",
        "What `flatout run` and `flatout tune` print at their end, for eight kept cases, and what a reader who knows "
        "TensorFlow and not flatout takes from each. [commands.md](commands.md) explains the parts. "
        "`scripts/generate_screens.py` writes this page.",
        "The five questions were written first, and answered from the screens alone: of these eight cases, and of the "
        "sixteen screens in [the gallery](gallery/index.md). Where an answer was not there, the screen was changed:",
        "\n".join(f"- {text}" for text in CHANGED),
    ]
    for one in SCREENS:
        case = Case.from_json(json.loads((CASES / one.case).read_text(encoding="utf-8")))
        text = render(case, "overview", COLUMNS, False, unicode=True).rstrip("\n")
        rows = [f"| {question} | {answer} |" for question, answer in zip(QUESTIONS, one.answers, strict=True)]
        parts += [f"## {one.title}", f"```text\n{text}\n```", "\n".join(["| | |", "|---|---|", *rows])]
    return "\n\n".join(parts) + "\n"


def main() -> int:
    if "--check" in sys.argv:
        return int(not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page())
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
