"""A hook of mkdocs.yml: whole folders in the navigation, and the reports of the gallery.

`pages_of` needs neither mkdocs nor flatout, so that a test can hold the navigation against docs/ without building.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SCRIPTS = Path(__file__).resolve().parent
DOCS = SCRIPTS.parent / "docs"


def expanded(nav: list[Any], docs: Path = DOCS) -> list[Any]:
    """`causes/*` → `causes/index.md` and the other pages of that folder by name; `*` → pages that nothing names."""
    return _expanded(nav, docs, set(_named(nav)))


def _expanded(nav: list[Any], docs: Path, named: set[str]) -> list[Any]:
    made: list[Any] = []
    for entry in nav:
        if isinstance(entry, dict):
            made.append({title: _section(value, docs, named) for title, value in entry.items()})
        elif entry == "*":
            made += sorted(path.name for path in docs.glob("*.md") if path.name not in named)
        elif entry.endswith("/*"):
            made += _folder(entry, docs)
        else:
            made.append(entry)
    return made


def _named(nav: list[Any]) -> Iterator[str]:
    for entry in nav:
        for value in entry.values() if isinstance(entry, dict) else [entry]:
            if isinstance(value, list):
                yield from _named(value)
            else:
                yield value


def _section(value: Any, docs: Path, named: set[str]) -> Any:
    if isinstance(value, list):
        return _expanded(value, docs, named)
    return _folder(value, docs) if value.endswith("/*") else value


def _folder(entry: str, docs: Path) -> list[str]:
    folder = entry.removesuffix("/*")
    names = sorted(path.name for path in (docs / folder).glob("*.md"))
    return [f"{folder}/{name}" for name in sorted(names, key=lambda name: (name != "index.md", name))]


def pages_of(nav: list[Any], docs: Path = DOCS) -> list[str]:
    """Every page that the navigation names."""
    return list(_named(expanded(nav, docs)))


# ── what mkdocs calls ────────────────────────────────────────────────────────────────────────────────────────────────


def on_config(config: Any) -> Any:
    from pymdownx.slugs import slugify

    config.nav = expanded(config.nav, Path(config.docs_dir))
    config.mdx_configs["toc"]["slugify"] = slugify(case="lower")  # links to headings work on GitHub too
    return config


def on_files(files: Any, config: Any) -> Any:
    from mkdocs.structure.files import File

    sys.path.insert(0, str(SCRIPTS))
    import generate_gallery

    for kept in sorted(generate_gallery.CASES.glob("*.json")):
        page = generate_gallery.report(kept)
        files.append(File.generated(config, f"gallery/{kept.stem}.html", content=page))
    return files


def on_post_page(output: str, page: Any, config: Any) -> str:
    """The theme's search is a dialog without a name, of which a screen reader says only "dialog"."""
    return output.replace(
        'data-md-component="search" role="dialog"', 'data-md-component="search" role="dialog" aria-label="Search"'
    )
