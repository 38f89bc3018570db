"""The report in a real Chromium: every view draws from real cases, answers to pointer and keys, and asks for nothing.

`watched` fails a test for every error in the console, every dialog and every request.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed: no browser to look with")
pytest.importorskip("plotly", reason="the charts of a report come from plotly, which is not installed")

TESTS = Path(__file__).resolve().parent.parent
FIXTURES = TESTS / "fixtures"
sys.path[:0] = [str(FIXTURES / "report"), str(TESTS / "unit")]

from attack import EVIL, hostile  # noqa: E402
from chromium import Watched, started, watched  # noqa: E402
from large_trace import large_trace  # noqa: E402
from sample_case import sample_case  # noqa: E402
from trace_bytes import plane, space  # noqa: E402

from flatout import store  # noqa: E402
from flatout.causes import diagnose  # noqa: E402
from flatout.model.case import Case, Program  # noqa: E402
from flatout.report.html import render  # noqa: E402
from flatout.trace import analyse  # noqa: E402

pytestmark = pytest.mark.slow

KEPT = ("retrace_scalar", "serial_augment", "tune_tiny_fit")
TRACES = ("keras-starved",)
EVERY = ("serial_augment", "tune_tiny_fit", "keras-starved", "optimize-model", "sample")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with started() as found:
        if found is None:
            pytest.skip("no Chromium on this machine: apt-get install chromium, or playwright install chromium")
        yield found


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of each kind of case: observed runs, a tune, a trace of a GPU, one that has everything."""
    folder = tmp_path_factory.mktemp("reports")
    for name in KEPT:
        directory = folder / name
        shutil.copytree(FIXTURES / "report" / name, directory)
        text = (directory / "case.json").read_text(encoding="utf-8")
        (directory / "case.json").write_text(text.replace('"/programs', f'"{TESTS / "programs"}'), encoding="utf-8")
        write(folder, name, store.load(directory / "case.json"), directory)
    for name in TRACES:
        write(folder, name, diagnose(analyse(FIXTURES / "traces" / f"{name}.xplane.pb.gz")), None)
    served = store.load(FIXTURES / "cases" / "before-rebuild" / "optimize-model" / "case.json")
    write(folder, "optimize-model", served, None)
    write(folder, "sample", sample_case(), None)
    return folder


def write(folder: Path, name: str, case: Case, directory: Path | None) -> Path:
    file = folder / f"{name}.html"
    file.write_text(render(case, directory), encoding="utf-8")
    return file


def overflow(seen: Watched) -> list[str]:
    """What sticks out to the right: nothing may, unless it scrolls in a box of its own."""
    found: list[str] = seen.page.evaluate(
        """() => {
          const room = document.documentElement.clientWidth;
          if (document.documentElement.scrollWidth <= room) return [];
          const held = (e) => e && (getComputedStyle(e).overflowX !== "visible" || held(e.parentElement));
          const wide = (e) => e.getBoundingClientRect().right > room + 1 && !held(e.parentElement);
          const out = [...document.querySelectorAll("body *")].filter(wide);
          const told = out.slice(0, 5).map((e) => `${e.tagName}.${e.className} ${e.textContent.slice(0, 40)}`);
          return ["the page is wider than its window", ...told];
        }"""
    )
    return found


def cut_tables(seen: Watched) -> list[str]:
    """Tables that would have to be scrolled for their last columns."""
    found: list[str] = seen.page.evaluate(
        """() => [...document.querySelectorAll(".scroll")].filter((e) => e.scrollWidth > e.clientWidth)
          .map((e) => `${e.getAttribute("aria-label")}: ${e.scrollWidth} in ${e.clientWidth}`)"""
    )
    return found


def span(seen: Watched) -> float:
    box = seen.page.locator(".timeline")
    seen.page.wait_for_timeout(50)  # the next frame
    return float(box.get_attribute("data-to")) - float(box.get_attribute("data-from"))


# ── everything is drawn ──


@pytest.mark.parametrize("name", EVERY)
def test_every_view_is_drawn_at_any_width(browser: Any, reports: Path, name: str) -> None:
    with watched(browser, reports / f"{name}.html", color_scheme="light") as seen:
        assert seen.page.locator("main > section").count() >= 3
        for kind in (".chart", ".timeline", ".flame"):
            for at in range(seen.page.locator(kind).count()):
                seen.drawn(f"{kind} >> nth={at}")
        for at in range(seen.page.locator(".chart").count()):
            # A chart that plotly has drawn holds its shapes; an empty one would hold none.
            assert seen.page.locator(".chart").nth(at).locator("svg path").count() > 0
        assert "cannot be shown" not in seen.page.locator("main").inner_text()
        seen.page.evaluate("document.querySelectorAll('details').forEach((fold) => (fold.open = true))")
        for width in (1440, 1280, 768, 390):
            seen.page.set_viewport_size({"width": width, "height": 800})
            seen.page.wait_for_timeout(50)  # charts follow in the next frames
            assert overflow(seen) == [], width
            assert width == 768 or cut_tables(seen) == [], width
        seen.page.emulate_media(color_scheme="dark")
        seen.page.locator("html[data-theme=dark]").wait_for(state="attached")
        assert overflow(seen) == []


# ── the timeline ──


def test_the_timeline_zooms_and_moves(browser: Any, reports: Path) -> None:
    with watched(browser, reports / "serial_augment.html") as seen:
        seen.drawn(".timeline")
        whole = span(seen)
        box = seen.page.locator(".stage canvas").bounding_box()
        seen.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 80)
        seen.page.mouse.wheel(0, 10)  # without Ctrl it is the page that scrolls
        assert span(seen) == whole
        seen.near(".timeline .lanes")
        box = seen.page.locator(".stage canvas").bounding_box()
        seen.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 80)
        seen.page.keyboard.down("Control")
        for _ in range(5):
            seen.page.mouse.wheel(0, -60)
        seen.page.keyboard.up("Control")
        zoomed = span(seen)
        assert zoomed < whole / 3
        before = float(seen.page.locator(".timeline").get_attribute("data-from"))
        seen.page.mouse.down()
        seen.page.mouse.move(box["x"] + box["width"] / 2 - 100, box["y"] + 80, steps=4)
        seen.page.mouse.up()
        assert span(seen) == pytest.approx(zoomed)
        moved = float(seen.page.locator(".timeline").get_attribute("data-from")) - before
        assert moved == pytest.approx(100 / box["width"] * zoomed, rel=0.05)
        seen.page.locator('.timeline [data-do="all"]').click()
        assert span(seen) == whole


def test_the_timeline_answers_to_keys_alone(browser: Any, reports: Path) -> None:
    with watched(browser, reports / "keras-starved.html") as seen:
        seen.drawn(".timeline")
        whole = span(seen)
        seen.page.locator(".timeline .lanes").focus()
        for key in ("+", "+", "ArrowRight"):
            seen.page.keyboard.press(key)
        assert span(seen) == pytest.approx(whole / 4, rel=0.01)
        assert float(seen.page.locator(".timeline").get_attribute("data-from")) > 0
        seen.page.keyboard.press("n")
        first = seen.page.locator(".timeline .selected").inner_text()
        assert "of this name" in first
        seen.page.keyboard.press("n")
        assert seen.page.locator(".timeline .selected").inner_text() != first
        seen.page.keyboard.press("p")
        assert seen.page.locator(".timeline .selected").inner_text() == first
        seen.page.keyboard.press("Home")
        assert span(seen) == whole


def test_the_run_over_time_zooms_and_scrolls(browser: Any, reports: Path) -> None:
    with watched(browser, reports / "sample.html") as seen:
        wide = "(() => { const s = document.querySelector('.strip'); return s.scrollWidth / s.clientWidth; })()"
        assert seen.page.evaluate(wide) == 1
        assert "Gallery.on_epoch_end train.py:19" in seen.page.locator(".stretch").nth(2).get_attribute("title")
        assert seen.page.locator(".epoch").count() == 3
        seen.page.locator(".strip").focus()
        seen.page.keyboard.press("+")
        seen.page.locator("[data-zoom='2']").click()
        assert seen.page.evaluate(wide) == pytest.approx(4, rel=0.01)
        assert seen.page.evaluate("document.querySelector('.strip').scrollLeft") > 0
        assert seen.page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        seen.page.locator("[data-zoom='0']").click()
        assert seen.page.evaluate(wide) == 1


def test_events_are_found_and_told(browser: Any, reports: Path) -> None:
    with watched(browser, reports / "serial_augment.html") as seen:
        seen.drawn(".timeline")
        name = seen.page.locator("#timeline .table tbody tr").first.locator("td").first.inner_text()
        field = seen.page.locator(".timeline .find")
        field.fill(name)
        count = seen.page.locator("#timeline .table tbody tr").first.locator("td").nth(1).inner_text()
        found = seen.page.locator(".timeline .found").inner_text()
        assert int(found.split()[0].replace(",", "")) >= int(count.replace(",", ""))
        field.press("Enter")
        assert name in seen.page.locator(".timeline .selected").inner_text()
        field.fill("no event has such a name")
        assert seen.page.locator(".timeline .found").inner_text().startswith("0 events")
        field.fill("")
        assert seen.page.locator(".timeline .found").inner_text() == ""
        tip = seen.page.locator(".timeline .tip")
        box = seen.near(".timeline .lanes").bounding_box()
        for y in range(50, int(box["height"]), 8):
            seen.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + y)
            if tip.is_visible():
                break
        assert "ms" in tip.inner_text() or "µs" in tip.inner_text()


# ── the flame graph, tables, theme, downloads ──


def test_the_flame_graph_goes_into_a_frame_and_back(browser: Any, reports: Path) -> None:
    with watched(browser, reports / "retrace_scalar.html") as seen:
        seen.drawn(".flame")
        frames = seen.page.locator(".flame .frames").first
        frames.focus()
        for key in ("ArrowDown", "Enter"):
            seen.page.keyboard.press(key)
        selected = seen.page.locator(".flame .selected").first
        assert "retrace_scalar.py" in selected.inner_text()
        assert "sample" in selected.inner_text()
        seen.page.locator(".flame .find").first.fill("retrace_scalar.py")
        assert seen.page.locator(".flame .found").first.inner_text().endswith("of all")
        seen.page.locator('.flame [data-do="all"]').first.click()
        assert "100 %" in selected.inner_text()


def test_a_table_is_sorted_and_searched(browser: Any, reports: Path) -> None:
    with watched(browser, reports / "serial_augment.html") as seen:
        box = seen.near("#ops .table")
        rows = box.locator("tbody tr:visible")
        assert rows.count() == 15
        box.locator("button.more").click()
        assert rows.count() > 100
        heads = box.locator("thead button")
        heads.nth(0).click()
        assert box.locator("thead th").nth(0).get_attribute("aria-sort") == "descending"
        heads.nth(0).click()
        values = [
            float(v) for v in box.locator("tbody tr td:first-child").evaluate_all("l => l.map(e => e.dataset.by)")
        ]
        assert values == sorted(values)
        box.locator(".find").fill("conv2d")
        assert 0 < rows.count() < 100
        assert all("conv2d" in text.lower() for text in rows.all_inner_texts())


def test_the_theme_is_chosen_and_redrawn(browser: Any, reports: Path) -> None:
    with watched(browser, reports / "sample.html", color_scheme="light") as seen:
        seen.drawn("#steps .chart")
        paper = "document.querySelector('#steps .chart .main-svg').style.background"
        light = seen.page.evaluate(paper)
        button = seen.page.get_by_role("button", name="Theme")
        button.click()
        button.click()
        assert seen.page.evaluate("document.documentElement.dataset.theme") == "dark"
        until = time.monotonic() + 10
        while seen.page.evaluate(paper) == light:
            assert time.monotonic() < until, "the chart keeps the colours of the other theme"
            seen.page.wait_for_timeout(50)
        button.click()
        assert seen.page.evaluate("document.documentElement.dataset.theme") == "light"


def test_the_json_is_the_case(browser: Any, reports: Path) -> None:
    with watched(browser, reports / "sample.html", accept_downloads=True) as seen:
        with seen.page.expect_download() as download:
            seen.page.get_by_role("button", name="JSON").click()
        assert Case.from_json(json.loads(download.value.path().read_text())) == sample_case()
        with seen.page.expect_download() as download:
            seen.page.get_by_role("button", name="Download the patch").click()
        assert download.value.path().read_text() == sample_case().patch


def test_it_prints(browser: Any, reports: Path) -> None:
    with watched(browser, reports / "sample.html", color_scheme="dark") as seen:
        seen.page.emulate_media(media="print")
        assert not seen.page.locator("nav").is_visible()
        seen.page.locator("html[data-theme=light]").wait_for(state="attached")
        assert len(seen.page.pdf(format="A4")) > 20_000


def test_a_reader_without_scripts_has_all_text_and_tables(browser: Any, reports: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((reports / "sample.html").as_uri())
    assert page.locator("#ops tbody tr:visible").count() == 41
    assert "The step waits for its input" in page.locator("h1").inner_text()
    context.close()


def test_a_screen_reader_finds_names_for_all_it_can_reach(browser: Any, reports: Path) -> None:
    with watched(browser, reports / "sample.html") as seen:
        nameless = seen.page.evaluate(
            """() => [...document.querySelectorAll("button, input, [role=img], [role=application], [role=region], nav")]
              .filter((e) => !(e.getAttribute("aria-label") || e.textContent).trim()).map((e) => e.outerHTML)"""
        )
        assert nameless == []
        assert seen.page.locator("h1").count() == 1
        seen.page.keyboard.press("Tab")
        assert seen.page.evaluate("document.activeElement.className") == "skip"


# ── the worst cases ──


def test_hostile_text_runs_nowhere(browser: Any, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    events = [(f"{EVIL}{n}", 1000.0 * n, 900.0, {"tf_op": EVIL, "step_num": n}) for n in range(50)]
    (tmp_path / "logs" / "x.xplane.pb").write_bytes(space(plane("/host:CPU", {EVIL: events}), host=EVIL))
    frame = [[EVIL, 3, EVIL, 1]]
    samples = {"kind": "samples", "total": 9, "interval": 0.04, "rows": [[9, frame, [EVIL, EVIL], False]]}
    (tmp_path / "counters.jsonl").write_text(json.dumps(samples) + "\n")
    case = hostile(sample_case())
    case = type(case)(**{**vars(case), "logdir": "logs", "program": Program((EVIL,), EVIL, EVIL)})
    file = write(tmp_path, "hostile", case, tmp_path)
    with watched(browser, file) as seen:
        seen.page.evaluate("document.querySelectorAll('details').forEach((fold) => (fold.open = true))")
        for kind in (".chart", ".timeline", ".flame"):
            for at in range(seen.page.locator(kind).count()):
                drawn = seen.drawn(f"{kind} >> nth={at}")
                drawn.hover()
        seen.page.locator(".timeline .lanes").focus()
        seen.page.keyboard.press("n")
        assert "<script>window.hit=1</script>" in seen.page.locator(".timeline .selected").inner_text()
        seen.page.locator(".flame .frames").first.focus()
        seen.page.keyboard.press("ArrowDown")
        assert "<script>" in seen.page.locator(".flame .selected").first.inner_text()
        assert "<script>window.hit=1</script>" in seen.page.locator("h1").inner_text()
        assert seen.page.evaluate("window.hit") is None
        assert seen.page.locator("img").count() == 0
        assert overflow(seen) == []
        seen.page.set_viewport_size({"width": 380, "height": 800})
        assert overflow(seen) == []


def test_two_hundred_thousand_events_fit_and_are_drawn(browser: Any, tmp_path: Path) -> None:
    """How long it takes is for benchmarks/report.py to say."""
    trace = tmp_path / "host.xplane.pb"
    trace.write_bytes(large_trace(200_000))
    file = write(tmp_path, "large", Case("trace", program=Program(("trace", str(trace)))), None)
    assert file.stat().st_size < 25e6
    with watched(browser, file) as seen:
        seen.drawn(".timeline")
        assert "200,000 events" in seen.page.locator("#timeline").inner_text()
        seen.page.locator(".timeline .find").fill("block_7")
        assert not seen.page.locator(".timeline .found").inner_text().startswith("0 ")
