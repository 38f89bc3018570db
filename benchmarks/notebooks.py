"""flatout on notebooks that others wrote: what `run` names by cell and line, what `tune` patches.

    python benchmarks/notebooks.py --make               the notebooks with our edits, beside the project
    python benchmarks/notebooks.py --run 3 7            `flatout run` on some of them
    python benchmarks/notebooks.py --tune --budget 5m   `flatout tune --patch`, and what else the patch changed

benchmarks/notebooks/README.md has the rule of the draw and what was found.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence, Set
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
import _public_checkout as checkout
import _public_list as listed
import _public_runs as runs

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "benchmarks" / "notebooks"
EDITED_LINES = 10
"""The rule of the draw: a notebook that needs more of them to run is passed over."""
TAKEN = ("number", "drawn", "repository", "commit", "path", "pattern", "needs", "edit", "found")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("make", "run", "tune"):
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("numbers", nargs="*", type=int, help="all by default")
    parser.add_argument("--budget", default="5m", help="of tune")
    parser.add_argument("--lever", action="append", default=[], help="of tune: these alone")
    parser.add_argument("--checkouts", type=Path, default=ROOT.parent / "public-notebooks")
    parser.add_argument("--mirror", default=checkout.GITHUB, help="where to clone from, with {owner} and {name}")
    parser.add_argument("--packages", type=Path, action="append", default=[], help="a directory for PYTHONPATH")
    options = parser.parse_args()
    options.checkouts = options.checkouts.resolve()
    options.checkouts.mkdir(parents=True, exist_ok=True)
    packages = tuple(path.resolve() for path in options.packages)
    setting = runs.Setting(options.checkouts, options.mirror, packages)
    for notebook in load():
        if options.numbers and notebook.number not in options.numbers:
            continue
        place = made(notebook, setting)
        print(f"{notebook.title}: {place / notebook.path}", flush=True)
        if options.run:
            shown(runs.flatout(notebook, place, setting, ["run"]))
        if options.tune:
            patched = place / "patched.ipynb"
            patched.unlink(missing_ok=True)
            words = ["tune", "--budget", options.budget, "--patch", str(patched)]
            levers = [word for lever in options.lever for word in ("--lever", lever)]
            shown(runs.flatout(notebook, place, setting, [*words, *levers]))
            if patched.is_file():
                print(f"  {kept_of(place / notebook.path, patched)}", flush=True)


def load() -> list[listed.Program]:
    return [read(file) for file in sorted(LIST.glob("*.toml"))]


def read(file: Path) -> listed.Program:
    """An entry of the list as a program without a cure; `file` of an edit is `cell N`, counted as flatout counts."""
    data: dict[str, Any] = listed.tomllib.loads(file.read_text(encoding="utf-8"))
    listed.known(data, TAKEN, file.name)
    return listed.Program(
        number=data["number"],
        name=file.stem.partition("-")[2],
        repository=data["repository"],
        commit=data["commit"],
        path=data["path"],
        directory=str(Path(data["path"]).parent),
        pattern=data["pattern"],
        finding=(),
        needs=tuple(data["needs"]),
        edits=listed.rules(data, "edit"),
        cures=(),
        expert=listed.Expert(1.0, ""),
        paths=(data["path"],),
    )


def made(notebook: listed.Program, setting: runs.Setting) -> Path:
    """The directory with the edited notebook; made once."""
    target = setting.checkouts / notebook.title
    file = target / notebook.path
    if not file.is_file():
        target.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target) as whole:
            checkout.unpack(notebook, Path(whole), setting.checkouts, setting.mirror)
            text = edited((Path(whole) / notebook.path).read_text(encoding="utf-8"), notebook.edits)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return target


def edited(text: str, rules: Sequence[listed.Rule]) -> str:
    if not rules:
        return text
    content = json.loads(text)
    for name in dict.fromkeys(rule.file for rule in rules):
        cell = content["cells"][int(name.removeprefix("cell ")) - 1]
        source = checkout.rewritten("".join(cell["source"]), [rule for rule in rules if rule.file == name])
        cell["source"] = source.splitlines(keepends=True)
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def kept_of(before: Path, after: Path) -> str:
    """Which cells differ, and whether all that is not their source is what it was, as a value and as bytes."""
    old, new = (json.loads(file.read_bytes()) for file in (before, after))
    pairs = list(zip(old["cells"], new["cells"], strict=True))
    differ = [place for place, (one, other) in enumerate(pairs, 1) if one["source"] != other["source"]]
    sources: set[bytes] = set()
    for content in (old, new):
        for place in differ:
            cell = content["cells"][place - 1]
            sources |= {
                json.dumps(line, ensure_ascii=ascii).encode() for line in cell["source"] for ascii in (True, False)
            }
            cell["source"] = []
    same = old == new and beside(before, sources) == beside(after, sources)
    return f"changed cells: {differ}; the rest {'is' if same else 'IS NOT'} byte for byte what it was"


def beside(file: Path, sources: Set[bytes]) -> list[bytes]:
    """The lines of the file that are none of these sources."""
    return [line for line in file.read_bytes().splitlines() if line.strip().rstrip(b",") not in sources]


def shown(ended: runs.Ended) -> None:
    print(f"  ended with {ended.status} after {ended.whole:.0f} s\n{ended.output}", flush=True)


if __name__ == "__main__":
    main()
