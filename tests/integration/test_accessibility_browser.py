"""axe-core finds no serious fault in a report and in the pages of `flatout serve`, wide and light, narrow and dark.

`benchmarks/accessibility.py` looks at more pages, the web site among them, in all four ways.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed: no browser to look with")
pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed: nothing to check with")

ROOT = Path(__file__).resolve().parent.parent.parent
FIXTURES = ROOT / "tests" / "fixtures"
sys.path[:0] = [str(ROOT / "benchmarks"), str(FIXTURES / "report"), str(ROOT / "tests" / "unit")]

import accessibility  # noqa: E402
from chromium import started  # noqa: E402
from sample_case import sample_case  # noqa: E402

from flatout.report.html import render  # noqa: E402

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with started() as found:
        if found is None:
            pytest.skip("no Chromium on this machine: apt-get install chromium, or playwright install chromium")
        yield found


def serious(browser: Any, address: str) -> list[str]:
    ways = ((1280, "light"), (390, "dark"))
    found = accessibility.faults(browser, accessibility.axe(), address, ways)
    return [text for impact, text in found if impact in accessibility.SERIOUS]


def test_a_fault_is_found(browser: Any, tmp_path: Path) -> None:
    page = tmp_path / "bad.html"
    page.write_text(
        "<html lang=en><title>t</title><p style='color:#bbb;background:white'>pale</p><img src=x.png></html>"
    )
    found = serious(browser, page.as_uri())
    assert any(text.startswith("color-contrast") for text in found)
    assert any(text.startswith("image-alt") for text in found)


def test_the_report_has_no_serious_fault(browser: Any, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(render(sample_case(), None), encoding="utf-8")
    assert serious(browser, page.as_uri()) == []


def test_serve_has_no_serious_fault(browser: Any) -> None:
    with tempfile.TemporaryDirectory() as folder, accessibility.served(Path(folder)) as pages:
        listed, trends, comparison, _ = pages  # a case is shown as its report
        for page in (listed, trends, comparison):
            assert serious(browser, page) == [], page
