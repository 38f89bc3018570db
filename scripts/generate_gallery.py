"""Writes docs/gallery/: six programs of tests/programs, slow and cured, as pages and reports.

python scripts/generate_gallery.py                     writes the pages from the cases that are kept
python scripts/generate_gallery.py --check             fails where a page is out of date
python scripts/generate_gallery.py --measure [NAME …]  runs, tunes, patches and runs again; some five minutes a program
python scripts/generate_gallery.py --reports DIR       writes the reports of all kept cases there, one HTML file each

The cases are kept (docs/gallery/cases/), the reports are not: `scripts/docs` makes them anew for the web site.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
GALLERY = ROOT / "docs" / "gallery"
CASES = GALLERY / "cases"
STAGES = ("slow", "tuned", "cured")
COLUMNS = 100
HOME = "/home/ada"
"""Stands for the directory in which the programs ran."""


@dataclass(frozen=True)
class Exhibit:
    """A program of tests/programs, by its folder and name."""

    name: str
    title: str
    about: str
    program: str
    budget: str = "3m"

    @property
    def file(self) -> str:
        return f"{Path(self.program).stem}.py"


EXHIBITS = (
    Exhibit(
        "eager-loop",
        "A training loop written by hand",
        "A recommender that is trained by a loop of its own: a `GradientTape` in a method, called once for each batch.",
        "slow/eager_trainer.py",
    ),
    Exhibit(
        "retracing",
        "A learning rate passed as a Python number",
        "A `tf.function` gets its learning rate as a float that changes in every step, and is traced each time.",
        "slow/retrace_scalar.py",
    ),
    Exhibit(
        "input",
        "A pipeline that works on single elements",
        "A small model in `fit`, fed by a dataset that maps a cheap function over elements before it batches them.",
        "slow/map_before_batch.py",
    ),
    Exhibit(
        "predict",
        "`predict` in a loop",
        "A program that asks a model about one small input at a time with `model.predict`.",
        "slow/predict_loop.py",
    ),
    Exhibit(
        "small-model",
        "A small model in `fit`",
        "A model whose step is so short that starting it costs more than computing it.",
        "slow/tiny_fit.py",
    ),
    Exhibit(
        "session",
        "A session of TensorFlow 1",
        "A loop that adds operations to the graph of a session in every turn.",
        "slow/growing_graph.py",
    ),
)


# ── measuring ────────────────────────────────────────────────────────────────────────────────────────────────────────


def measure(exhibit: Exhibit) -> None:
    """Run, tune, apply the patch, run again; keep the three cases."""
    sys.path.insert(0, str(ROOT / "tests" / "programs"))
    from manifest import without_marker

    with tempfile.TemporaryDirectory(prefix="flatout-gallery-") as name:
        directory = Path(name).resolve()
        source = ROOT / "tests" / "programs" / exhibit.program
        (directory / exhibit.file).write_text(without_marker(source), encoding="utf-8")
        flatout(directory, "run", "--json", "slow.json", exhibit.file)
        flatout(
            directory, "tune", "--budget", exhibit.budget, "--json", "tuned.json", "--patch", "cure.diff", exhibit.file
        )
        cured = (directory / "cure.diff").exists()
        if cured:
            subprocess.run(["patch", "-s", "-p1", "-i", "cure.diff"], cwd=directory, check=True)
            flatout(directory, "run", "--json", "cured.json", exhibit.file)
        CASES.mkdir(parents=True, exist_ok=True)
        for stage in STAGES:
            kept = CASES / f"{exhibit.name}-{stage}.json"
            made = directory / f"{stage}.json"
            if not made.exists():
                kept.unlink(missing_ok=True)
                continue
            text = made.read_text(encoding="utf-8")
            text = text.replace(str(directory), HOME).replace(sys.executable, "/usr/bin/python")
            text = text.replace(sys.prefix, "/usr").replace(str(ROOT), f"{HOME}/flatout")
            kept.write_text(json.dumps(slim(json.loads(text)), ensure_ascii=False) + "\n", encoding="utf-8")


def slim(data: dict[str, Any]) -> dict[str, Any]:
    """Without what belongs to the machine of whoever measured."""
    environment = data.get("environment") or {}
    for name in ("variables", "source"):
        environment.pop(name, None)
    data.pop("logdir", None)
    return data


def flatout(directory: Path, *words: str) -> None:
    print(f"flatout {' '.join(words)}", file=sys.stderr, flush=True)
    variables = {**os.environ, "PYTHONPATH": os.environ.get("PYTHONPATH", str(ROOT / "src"))}
    subprocess.run(
        [sys.executable, "-m", "flatout", *words],
        cwd=directory,
        env=variables,
        stdout=subprocess.DEVNULL,
        check=False,
    )


# ── the pages ────────────────────────────────────────────────────────────────────────────────────────────────────────


def screen(kept: Path) -> str:
    from flatout.model.case import Case
    from flatout.report.terminal import render

    case = Case.from_json(json.loads(kept.read_text(encoding="utf-8")))
    return render(case, "overview", COLUMNS, False, unicode=True).rstrip("\n")


def page(exhibit: Exhibit) -> str:
    headings = {
        "slow": f"## `flatout run {exhibit.file}`",
        "tuned": f"## `flatout tune {exhibit.file}`",
        "cured": "## After the patch",
    }
    parts = [f"# {exhibit.title}", exhibit.about + f" The program is `tests/programs/{exhibit.program}`."]
    for stage in STAGES:
        kept = CASES / f"{exhibit.name}-{stage}.json"
        if kept.exists():
            link = f"[The report of this {'tune' if stage == 'tuned' else 'run'}]({kept.stem}.html)"
            parts += [headings[stage], f"```text\n{screen(kept)}\n```", link]
    return "\n\n".join(parts) + "\n"


def pages() -> dict[str, str]:
    rows = [f"| [{one.title}]({one.name}.md) | {verdict(one)} |" for one in EXHIBITS]
    index = [
        "# Gallery",
        "Six small programs, slow and cured: what `flatout run` says of them, what `flatout tune` finds, and a run "
        "with its patch, each with the page that `flatout report` writes of it. These pages have no timeline and no "
        "flame graph: both are read from the files of a trace, which is not kept here.",
        "\n".join(["| program | what `flatout tune` says |", "|---|---|", *rows]),
        "`scripts/generate_gallery.py --measure` makes all of them anew. What a machine does beside it shows in the "
        "intervals, and is said on the screen.",
    ]
    return {"index.md": "\n\n".join(index) + "\n", **{f"{one.name}.md": page(one) for one in EXHIBITS}}


def verdict(exhibit: Exhibit) -> str:
    """The first sentence of the tune's screen."""
    kept = CASES / f"{exhibit.name}-tuned.json"
    if not kept.exists():
        return "not measured yet"
    paragraphs = screen(kept).split("\n\n")
    return " ".join(paragraphs[1].split())


def write_reports(directory: Path) -> list[Path]:
    """The report of every kept case, for the web site."""
    directory.mkdir(parents=True, exist_ok=True)
    made = []
    for kept in sorted(CASES.glob("*.json")):
        made.append(directory / f"{kept.stem}.html")
        made[-1].write_text(report(kept), encoding="utf-8")
    return made


def report(kept: Path) -> str:
    from flatout.model.case import Case
    from flatout.report.html import render

    with tempfile.TemporaryDirectory() as empty:
        return render(Case.from_json(json.loads(kept.read_text(encoding="utf-8"))), Path(empty))


def outdated() -> list[str]:
    wanted = pages()
    there = {path.name: path.read_text(encoding="utf-8") for path in GALLERY.glob("*.md")}
    return sorted(name for name in wanted.keys() | there.keys() if wanted.get(name) != there.get(name))


def main() -> int:
    parser = argparse.ArgumentParser(description="Write the gallery of docs/.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a page is out of date")
    parser.add_argument("--measure", nargs="*", metavar="NAME", help="run and tune these programs, all without a name")
    parser.add_argument("--reports", type=Path, metavar="DIR", help="write the reports there")
    asked = parser.parse_args()
    if asked.measure is not None:
        for exhibit in EXHIBITS:
            if not asked.measure or exhibit.name in asked.measure:
                measure(exhibit)
    if asked.reports is not None:
        write_reports(asked.reports)
        return 0
    if asked.check:
        return int(bool(outdated()))
    for name, text in pages().items():
        (GALLERY / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
