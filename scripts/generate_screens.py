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
COLUMNS = 100
QUESTIONS = ("What is slow?", "Which line?", "What to do?", "How much does it give?", "Is it safe?")

CHANGED = (
    '"How much does it give?": no screen of a run said so, and readers took what a cause costs for what its cure '
    "gives. A finding says how much faster this run can become at most.",
    '"What to do?": what a tune had just refused was advised two lines below, and an undecided tune said in one long '
    "sentence what was open. It is a table now, and more time is offered only where it can decide something.",
    '"Is it safe?": "agree to 0.002 of their movement" tells nobody. A tune says in one word whether results are the '
    "same, then what was compared. Before a tune it is called what it is: expected.",
    "Percents of a bar that added up to 100.8, three counts of measurements on one screen, cut lines of a patch, and "
    "such words as interpreter's lock and record shards are gone. Where only each step was told, a screen says what a "
    "longer run gains as well, and where a patch changes another line than that of its finding, which.",
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
        "tests/fixtures/screens/run-slow.json",
        ("the training step runs eagerly", "slow_training.py:76", "run tune, or decorate it with @tf.function",
         "this run up to about 2.6 times as fast", "expected: the same up to rounding; tune compares them"),
    ),
    Screen(
        "The same, tuned",
        "tests/fixtures/screens/tune-won.json",
        ("the training step runs eagerly", "slow_training.py:76", "apply the patch with the command at the end",
         "this run about 1.9 times, its steps 4 times as fast", "same results up to rounding, as compared"),
    ),
    Screen(
        "A map that is called for each element",
        "docs/gallery/cases/input-slow.json",
        ("a map before the batch that does little each time", "map_before_batch.py:21",
         "batch first, then map; or run tune",
         "this run up to about 1.4 times as fast", "expected: bit for bit the same"),
    ),
    Screen(
        "A function that is traced again and again",
        "docs/gallery/cases/retracing-tuned.json",
        ("train_step is traced for each learning rate", "retrace_scalar.py:39",
         "apply the patch with the command at the end", "this run about 2.8 times, its steps 93 times as fast",
         "bit for bit the same, as compared"),
    ),
    Screen(
        "A GPU that computes in many small kernels",
        "tests/fixtures/screens/tune-gpu.json",
        ("kernels other than matrix products, one per op", "encoder_loop.py:33",
         "apply the patch, if runs are longer than this",
         "a run this short perhaps nothing; steps 4.4 times as fast", "same results up to rounding, as compared"),
    ),
    Screen(
        "A cure that would change the training",
        "tests/fixtures/screens/tune-refused.json",
        ("the step waits for a Python generator", "augmented.py:22", "rewrite it by hand: no change of flatout's fits",
         "each step up to about 2 times as fast",
         "caching was refused, as it would freeze the random pictures; compare what you write"),
    ),
    Screen(
        "Not decided",
        "tests/fixtures/screens/tune-undecided.json",
        ("starting a step costs more than computing it", "dqn.py:33", "go on with the command at the end",
         "not known yet: the table has what was seen so far", "nothing is proposed before it was compared"),
    ),
    Screen(
        "A program in good order",
        "tests/fixtures/screens/run-good.json",
        ("nothing in the steps: they compute", "none", "nothing", "nothing", "nothing is changed"),
    ),
)  # fmt: skip


def page() -> str:
    parts = [
        "# Screens",
        "What `flatout run` and `flatout tune` print at their end, for eight kept cases, and what a reader who knows "
        "TensorFlow and not flatout takes from each. [commands.md](commands.md) explains the parts. "
        "`scripts/generate_screens.py` writes this page.",
        "The five questions were written first. Readers who had never seen flatout, and had nothing but eight screens, "
        "answered them. What two could not answer, or read twice, was changed, and a third read again:",
        "\n".join(f"- {text}" for text in CHANGED),
    ]
    for one in SCREENS:
        case = Case.from_json(json.loads((ROOT / one.case).read_text(encoding="utf-8")))
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
