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
    """`causes/*` → `causes/index.md` and the other pages of that folder by name."""
    made: list[Any] = []
    for entry in nav:
        if isinstance(entry, dict):
            made.append({title: _section(value, docs) for title, value in entry.items()})
        elif entry.endswith("/*"):
            made += _folder(entry, docs)
        else:
            made.append(entry)
    return made


def _section(value: Any, docs: Path) -> Any:
    if isinstance(value, list):
        return expanded(value, docs)
    return _folder(value, docs) if value.endswith("/*") else value


def _folder(entry: str, docs: Path) -> list[str]:
    folder = entry.removesuffix("/*")
    names = sorted(path.name for path in (docs / folder).glob("*.md"))
    return [f"{folder}/{name}" for name in sorted(names, key=lambda name: (name != "index.md", name))]


def pages_of(nav: list[Any], docs: Path = DOCS) -> Iterator[str]:
    """Every page that the navigation names."""
    for entry in expanded(nav, docs):
        values = entry.values() if isinstance(entry, dict) else [entry]
        for value in values:
            if isinstance(value, list):
                yield from pages_of(value, docs)
            else:
                yield value


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
