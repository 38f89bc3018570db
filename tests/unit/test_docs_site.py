"""The web site of docs/: every page is in the navigation, links lead somewhere, what is shown is real.

Nothing is built here: mkdocs is not among the tests' packages. `scripts/docs` builds, strictly.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from flatout.model.case import Case
from flatout.report.terminal import render

ROOT = Path(__file__).resolve().parent.parent.parent
DOCS = ROOT / "docs"
sys.path.insert(0, str(ROOT / "scripts"))

import generate_gallery  # noqa: E402
import generate_pictures  # noqa: E402
import site_nav  # noqa: E402

PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
SHOWN = re.compile(r"^<!-- shown: (\S+)(?: (\w+))? -->\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def text_of(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


@cache
def anchors(page: str) -> set[str]:
    """As GitHub and the site name them."""
    titles = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```$", "", text_of(page), flags=re.M | re.S), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def configuration() -> dict[str, object]:
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def test_the_navigation_has_every_page_once() -> None:
    nav = configuration()["nav"]
    assert isinstance(nav, list)
    named = list(site_nav.pages_of(nav))
    assert len(named) > 150
    assert sorted(named) == PAGES


def test_nothing_is_fetched_from_elsewhere() -> None:
    theme, text = configuration()["theme"], (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert isinstance(theme, dict)
    assert theme["font"] is False
    assert "http" not in text
    for picture in (DOCS / "pictures").glob("*.svg"):
        assert re.findall(r"url\((?!#)|@import|href=.http", picture.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    for link in LINK.findall(CODE.sub("", text_of(page))):
        if link.startswith(("https://", "http://")):
            continue
        name, _, anchor = link.partition("#")
        target = (DOCS / page).parent / name if name else DOCS / page
        made = target.suffix == ".html" and (DOCS / "gallery" / "cases" / f"{target.stem}.json").exists()
        assert made or target.exists(), f"{page}: {link}"
        if anchor:
            assert anchor in anchors(target.resolve().relative_to(DOCS).as_posix()), f"{page}: {link}"


def test_links_of_the_readme_lead_somewhere() -> None:
    links = LINK.findall(CODE.sub("", (ROOT / "README.md").read_text(encoding="utf-8")))
    assert len(links) > 20
    assert [link for link in links if "://" not in link and not (ROOT / link.partition("#")[0]).exists()] == []


def test_pictures_are_described() -> None:
    found = [(page, text) for page in PAGES for text in re.findall(r"!\[([^\]]*)\]\(", CODE.sub("", text_of(page)))]
    assert len(found) > 10
    assert [page for page, text in found if len(text) < 10] == []


def test_what_is_shown_is_what_kept_cases_render() -> None:
    found = [(page, *shown) for page in PAGES for shown in SHOWN.findall(text_of(page))]
    assert len(found) >= 8
    for page, kept, view, block in found:
        case = Case.from_json(json.loads((ROOT / kept).read_text(encoding="utf-8")))
        now = render(case, view or "overview", 100, False, unicode=True).splitlines()
        lines = [line for line in block.splitlines() if line.strip() not in ("", "⋮")]
        assert lines
        assert [line for line in lines if line not in now] == [], f"{page} shows what {kept} does not say any more"


@pytest.mark.parametrize("name", ["gallery", "pictures"])
def test_generated_pages_and_pictures_are_up_to_date(name: str) -> None:
    module = {"gallery": generate_gallery, "pictures": generate_pictures}[name]
    assert module.outdated() == [], f"python scripts/generate_{name}.py writes them again"


def test_the_gallery_shows_six_programs_with_reports() -> None:
    assert len(generate_gallery.EXHIBITS) == 6
    for one in generate_gallery.EXHIBITS:
        assert (ROOT / "tests" / "programs" / one.program).exists()
        kept = sorted(generate_gallery.CASES.glob(f"{one.name}-*.json"))
        assert {path.stem.rpartition("-")[2] for path in kept} >= {"slow", "tuned"}
        for path in kept:
            assert path.stat().st_size < 400_000
            assert str(ROOT) not in path.read_text(encoding="utf-8")


def test_the_navigation_needs_no_mkdocs() -> None:
    """So that this file holds where only the tests' packages are."""
    code = "import sys; sys.path.insert(0, 'scripts'); import site_nav; assert 'mkdocs' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
