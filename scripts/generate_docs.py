"""Writes docs/causes/, docs/levers/, docs/routes/ and docs/checks/ from the catalogues.

The pages are docstrings of the code that they describe, so that both are changed together; docs/ is a copy for readers
of the web site. `--check` writes nothing and fails where a file is out of date.
"""

from __future__ import annotations

import argparse
import sys
from itertools import groupby
from pathlib import Path

from flatout.causes import Cause, catalogue
from flatout.cures import LoadedCure, levers
from flatout.cures import catalogue as cure_catalogue
from flatout.environment.checks import catalogue as check_catalogue
from flatout.environment.reading import Check
from flatout.plugins import Loaded, page_of
from flatout.routes import Route
from flatout.routes import catalogue as route_catalogue

DOCS = Path(__file__).resolve().parent.parent / "docs"
FOLDERS = ("causes", "levers", "routes", "checks")

GROUPS = {
    "input": "The input pipeline",
    "graph": "Graphs, eager code and the loop around them",
    "numerics": "Types and layouts",
    "hardware": "Devices, memory and libraries",
    "api": "Removed and superseded interfaces",
    "run": "The run around the steps",
    "job": "A job of many processes",
}


def pages() -> dict[str, str]:
    """File names and contents of all pages, the indexes among them."""
    causes, cures = list(catalogue().values()), list(cure_catalogue().values())
    routes, checks = list(route_catalogue().values()), list(check_catalogue().values())
    return {
        "causes/index.md": _index(causes),
        **{f"causes/{cause.name}.md": _page(cause) for cause in causes},
        "levers/index.md": _cure_index(cures),
        **{f"levers/{cure.name}.md": _cure_page(cure) for cure in cures},
        "routes/index.md": _route_index(routes),
        **{f"routes/{route.name}.md": _route_page(route) for route in routes},
        "checks/index.md": _check_index(checks),
        **{f"checks/{check.name}.md": _check_page(check) for check in checks},
    }


def _route_page(route: Route) -> str:
    title, page = page_of(type(route))
    facts = (
        f"Runtime: {route.family} · Format: {route.format} · Precision: {route.precision} · "
        f"Equivalence: {route.equivalence}"
    )
    return "\n\n".join(filter(None, (f"# {route.name}", f"{title}.", facts, _spaced(page)))) + "\n"


def _route_index(routes: list[Route]) -> str:
    rows = "\n".join(
        f"| [{route.name}]({route.name}.md) | {page_of(type(route))[0]} | {route.family} | {route.precision} |"
        for route in routes
    )
    return (
        "# Routes\n\nThe ways to serve a model that `flatout optimize` tries. "
        "`flatout explain NAME` shows the same page.\n\n"
        f"| route | what it is | runtime | precision |\n|---|---|---|---|\n{rows}\n"
    )


def _check_page(check: Loaded[Check]) -> str:
    return f"# {check.name}\n\n{check.title}.\n\nGroup: {check.spec.group}\n\n{_spaced(check.page)}\n"


def _check_index(checks: list[Loaded[Check]]) -> str:
    rows = "\n".join(f"| [{check.name}]({check.name}.md) | {check.title} | {check.spec.group} |" for check in checks)
    return (
        "# Checks of the environment\n\nWhat `flatout env` looks at. `flatout explain NAME` shows the same page.\n\n"
        f"| check | what it looks at | group |\n|---|---|---|\n{rows}\n"
    )


def _cure_page(cure: LoadedCure) -> str:
    facts = f"Equivalence: {cure.spec.equivalence} · Side: {cure.spec.side}"
    return f"# {cure.name}\n\n{cure.title}.\n\n{facts}\n\n{_spaced(cure.page)}\n"


def _cure_index(cures: list[LoadedCure]) -> str:
    def rows(those: list[LoadedCure]) -> str:
        return "\n".join(
            f"| [{cure.name}]({cure.name}.md) | {cure.title} | {cure.spec.side} | {cure.spec.equivalence} |"
            for cure in those
        )

    header = "| lever | what it does | side | equivalence |\n|---|---|---|---|\n"
    of_programs = [cure for cure in cures if cure.name in levers()]
    of_datasets = [cure for cure in cures if cure.name not in levers()]
    return (
        "# Levers\n\nChanges that `flatout tune` injects into an unmodified program, one at a time, and measures. "
        "`flatout run --with NAME` runs a\nprogram for real with one; `flatout explain NAME` shows the same page.\n\n"
        f"{header}{rows(of_programs)}\n\n"
        "Rewrites that only `flatout data tune` makes, of a dataset:\n\n"
        f"{header}{rows(of_datasets)}\n"
    )


def _page(cause: Loaded[Cause]) -> str:
    levers = ", ".join(f"`{lever}`" for lever in cause.spec.cures) or "none"
    facts = f"Group: {cause.spec.group} · Levers: {levers}"
    return f"# {cause.name}\n\n{cause.title}.\n\n{facts}\n\n{_spaced(cause.page)}\n"


def _spaced(page: str) -> str:
    """Empty lines around headings, lists and code: strict readers of Markdown want them."""
    lines: list[str] = []
    in_code = False
    previous = ""
    for line in page.splitlines():
        fence = line.startswith("```")
        starts = (fence and not in_code) or (line.startswith("- ") and not previous.startswith(("- ", "  ")))
        if line and previous and not in_code and (starts or previous.startswith(("#", "```"))):
            lines.append("")
        lines.append(line)
        previous = line
        in_code ^= fence
    return "\n".join(lines)


def _index(causes: list[Loaded[Cause]]) -> str:
    parts = [
        "# Causes of slowness\n\nWhat flatout looks for. Each page says what the cause is, what it costs, "
        "how it looks, how it is cured, and when it is not worth curing.\n`flatout explain NAME` shows the "
        "same page.\n"
    ]
    for group, members in groupby(causes, key=lambda cause: cause.spec.group):
        rows = "\n".join(f"| [{cause.name}]({cause.name}.md) | {cause.title} |" for cause in members)
        parts.append(f"## {GROUPS[group]}\n\n| cause | what it is |\n|---|---|\n{rows}\n")
    return "\n".join(parts)


def outdated(directory: Path = DOCS) -> list[str]:
    """Names of files that are missing, different, or of plugins that are gone."""
    wanted = pages()
    there = {
        str(path.relative_to(directory)): path.read_text(encoding="utf-8")
        for folder in FOLDERS
        for path in (directory / folder).glob("*.md")
    }
    return sorted(name for name in wanted.keys() | there.keys() if wanted.get(name) != there.get(name))


def write(directory: Path = DOCS) -> list[str]:
    changed = outdated(directory)
    for folder in FOLDERS:
        (directory / folder).mkdir(parents=True, exist_ok=True)
    wanted = pages()
    for name in changed:
        if name in wanted:
            (directory / name).write_text(wanted[name], encoding="utf-8")
        else:
            (directory / name).unlink()
    return changed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write the pages of causes, levers, routes and checks into docs/.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a page is out of date")
    parser.add_argument("--to", type=Path, default=DOCS, metavar="DIR", help="write there, not into docs/")
    asked = parser.parse_args()
    if asked.check:
        stale = outdated(asked.to)
        if stale:
            sys.exit(f"Out of date: {', '.join(stale)}. Run `python scripts/generate_docs.py`.")
    else:
        print(f"{len(write(asked.to))} pages written, {len(pages())} in all, in {asked.to}")
