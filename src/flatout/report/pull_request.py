"""A case as Markdown: the text of a pull request, and the message of a commit. Text from a case is escaped."""

from __future__ import annotations

import os
import shlex
import textwrap
from collections.abc import Iterator

from flatout.model.case import Case, Trial, WholeRun
from flatout.model.evidence.outcomes import LeverSkipped
from flatout.model.text import clean_code
from flatout.report import words
from flatout.report.claims import claimed
from flatout.report.formatting import clean, duration, share
from flatout.report.markdown import escape
from flatout.report.terminal import headline, screen, tune_screen
from flatout.report.trial_groups import groups, outcome

SUBJECT = 72
"""Characters of the first line of a commit's message."""


def render(case: Case) -> str:
    """Verdict, table, patch, how it was proved; the rest in a part that is folded."""
    parts = [f"### {escape(headline(case))}", *_table(case), *_patch(case), *_proof(case), *_details(case)]
    return "\n\n".join(parts) + "\n"


def commit_message(case: Case, command: str) -> str:
    """What the change is, what it gives, how that is known, and how to repeat it."""
    claim, names = claimed(case), words.names_in(case)
    change = words.change(claim.levers if claim is not None else case.tuned, names)
    subject = clean(change[:1].upper() + change[1:], SUBJECT)
    paragraphs = [headline(case)]
    if case.whole_run is not None:
        paragraphs.append(f"{_of_run(case.whole_run).capitalize()}: {tune_screen.whole_run(case.whole_run)}")
    paragraphs.append(f"Measured side by side{_rounds(claim)}. {tune_screen.proof(case, claim)}".strip())
    body = "\n\n".join(textwrap.fill(clean(text), SUBJECT, break_on_hyphens=False) for text in paragraphs)
    return f"{subject}\n\n{body}\n\nRepeat it with:\n\n    {clean(command)}\n"


def _of_run(whole: WholeRun) -> str:
    """What was seen of it: where its end was not reached, that is no whole run."""
    return "the whole run" if whole.complete else "the run as far as it was seen"


def _rounds(claim: Trial | None) -> str:
    if claim is None or not claim.rounds:
        return ""
    what = "pairs of whole runs" if claim.stage == "run" else "paired rounds"
    return f" in {claim.rounds} {what}, with a 95 % interval"


def _table(case: Case) -> Iterator[str]:
    claim, whole = claimed(case), case.whole_run
    rows = []
    if claim is not None and whole is not None and whole.after_seconds is not None:
        before = duration(1000 * whole.before_seconds) if whole.before_seconds is not None else ""
        speedup = words.speedup(whole.speedup) if whole.speedup is not None else ""
        estimated = ", estimated" if whole.estimated and speedup else ""
        rows.append((_of_run(whole), before, duration(1000 * whole.after_seconds), f"{speedup}{estimated}"))
    if claim is not None and claim.speedup is not None and claim.step_ms:
        before = duration(claim.step_ms * claim.speedup.ratio)
        rows.append(("a step", before, duration(claim.step_ms), words.speedup(claim.speedup)))
    if rows:
        lines = ["| | before | after | |", "|---|---:|---:|---|"]
        yield "\n".join(lines + [f"| {' | '.join(map(escape, row))} |" for row in rows])
    if case.findings:
        lines = ["| what is slow | where | cost |", "|---|---|---|"]
        for item in case.findings[:3]:
            cost = f"{share(item.cost_share)} of {'each step' if item.of == 'step' else 'the run'}"
            where = str(item.where) if item.where is not None and item.where.file else ""
            where = where.removeprefix(f"{case.program.directory}/")
            lines.append(f"| {escape(item.summary)} | {escape(where)} | {escape(cost) if item.cost_share else ''} |")
        yield "\n".join(lines)


def _patch(case: Case) -> Iterator[str]:
    if case.patch:
        rows = [clean_code(row) for row in case.patch.splitlines()]
        longest = max((len(row) - len(row.lstrip("`")) for row in rows), default=0)
        fence = "`" * max(3, longest + 1)
        yield "\n".join([f"{fence}diff", *rows, fence])


def _proof(case: Case) -> Iterator[str]:
    claim = claimed(case)
    if claim is not None:
        told = tune_screen.proof(case, claim)
        yield (
            f"**How it was proved.** Original and changed program ran side by side{_rounds(claim)}. "
            f"{escape(tune_screen.agreement(case, claim))}. {escape(told)}".rstrip()
        )
    if case.program.command:
        yield f"Repeat it: {_code(_repeated(case))}"


def _repeated(case: Case) -> str:
    """The command as it was typed. A case of a program has the program's command, all others that of flatout itself."""
    first, *others = case.program.command
    if first == case.kind and others and case.kind not in ("run", "tune", "data"):
        return f"flatout {shlex.join(case.program.command)}"
    if others[:1] == [case.kind] and os.path.basename(first) in ("flatout", "__main__.py"):
        return f"flatout {shlex.join(others)}"
    kind = f"data {'tune' if case.trials else 'inspect'}" if case.kind == "data" else case.kind
    return f"flatout {kind} {screen.command_words(case)}"


def _details(case: Case) -> Iterator[str]:
    """Every trial, and every change that was not tried."""
    skipped = case.evidence_of(LeverSkipped)
    if not case.trials and not skipped:
        return
    counts = (len(case.trials), "trial"), (len(skipped), "change not tried")
    told = ", ".join(screen.several(count, what) for count, what in counts if count)
    lines = ["<details>", f"<summary>{told}</summary>", ""]
    names = words.names_in(case)
    for group in groups(case):
        lines += [
            f"**{escape(group.title)}**, {escape(group.note)}",
            "",
            "| change | | outcome | results |",
            "|---|---|---|---|",
        ]
        for one in group.trials:
            speedup = words.speedup(one.speedup) if one.speedup is not None else ""
            agrees = words.agreement(one.parity) if one.parity else ""
            lines.append(f"| {' | '.join(map(escape, (words.trial(one, names), speedup, outcome(one), agrees)))} |")
        lines.append("")
    lines += [f"- {escape(item.value)}: {escape(item.note)}" for item in skipped]
    yield "\n".join([*lines, "", "</details>"])


def _code(text: str) -> str:
    return f"`{clean(text, 300).replace('`', '')}`"
