"""`flatout serve` in a real Chromium: the list, a report, a comparison, the trends, a run followed while it goes on.

Every page is watched: an error in the console, a dialog, or a request to anywhere but the server fails the test.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed: no browser to look with")
pytest.importorskip("plotly", reason="the charts of a report come from plotly, which is not installed")

TESTS = Path(__file__).resolve().parent.parent
FIXTURES = TESTS / "fixtures"
sys.path[:0] = [str(FIXTURES / "report"), str(TESTS / "unit")]

import runs  # noqa: E402
from chromium import started  # noqa: E402
from observed import environment  # noqa: E402

from flatout import store  # noqa: E402
from flatout.serve.case_directory import CaseDirectory  # noqa: E402
from flatout.serve.server import make  # noqa: E402

pytestmark = pytest.mark.slow

KEPT = ("retrace_scalar", "serial_augment", "tune_tiny_fit")
HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)>'
PROGRAM = """
import sys, time
import tensorflow
observer = next(finder.observer for finder in sys.meta_path if hasattr(finder, "observer"))
def probe():
    return observer.streams.make("fit", "steps", "sleeps")
stream = probe()
for step in range(400):
    began = time.perf_counter()
    time.sleep(0.01)  # what a step takes
    observer.ticks.tick(stream, began, time.perf_counter())
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with started() as found:
        if found is None:
            pytest.skip("no Chromium on this machine: apt-get install chromium, or playwright install chromium")
        yield found


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Real cases of runs and a tune, a program at several commits, and one case that means harm."""
    home = tmp_path_factory.mktemp("project") / store.HOME
    for name in KEPT:
        shutil.copytree(FIXTURES / "report" / name, home / "cases" / name)
    for seed, (commit, median) in enumerate([("a", 20.0), ("a", 20.3), ("b", 20.1), ("c", 27.0), ("c", 26.5)]):
        runs.keep(home, runs.case(median, seed, environment=runs.source(commit * 40)))
    evil = runs.case(21.0, 9, command=("python", HOSTILE), environment={"cpu": {"model": HOSTILE}}, verdict=HOSTILE)
    runs.keep(home, evil, "hostile")
    runs.keep(home, replace(evil, program=replace(evil.program, error=HOSTILE)), "hostile")
    return home


@pytest.fixture(scope="module")
def address(home: Path) -> Iterator[str]:
    server = make(home, 0)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@contextlib.contextmanager
def opened(browser: Any, address: str, path: str = "/", **options: Any) -> Iterator[Any]:
    context = browser.new_context(**{"viewport": {"width": 1440, "height": 900}, **options})
    page = context.new_page()
    faults: list[str] = []

    def asked(request: Any) -> None:
        if not request.url.startswith((f"{address}/", "data:", "blob:")):
            faults.append(f"asked for {request.url}")

    page.on("request", asked)
    page.on("pageerror", lambda error: faults.append(f"error: {error}"))
    page.on("dialog", lambda dialog: (faults.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on(
        "console", lambda said: faults.append(f"console: {said.text}") if said.type in ("error", "warning") else None
    )
    page.goto(f"{address}{path}")
    try:
        yield page
    finally:
        context.close()
    assert not faults, faults


def case_names(home: Path, title: str) -> list[str]:
    return sorted(path.name for path in (home / "cases").iterdir() if path.name.startswith(title))


def test_from_the_list_to_a_report_and_back(browser: Any, address: str) -> None:
    with opened(browser, address) as page:
        assert page.locator("tbody tr").count() == 10
        page.click('a[href="/case/serial_augment"]')
        page.wait_for_selector("html[data-ready]", state="attached")
        assert page.locator(".split .segment").count() > 0
        assert page.locator("main > section").count() >= 3
        page.locator(".chart").first.scroll_into_view_if_needed()
        page.wait_for_selector('.chart[data-state="drawn"]')  # the charts come through both policies
        page.go_back()
        assert page.locator("h1").inner_text() == "Cases"


def test_the_list_is_searched_and_sorted(browser: Any, home: Path, address: str) -> None:
    for _ in range(14):
        runs.keep(home, runs.case(20.0, 30, command=("python", "many.py")), "many")
    try:
        with opened(browser, address) as page:
            page.fill("input.find", "serial_augment")
            assert page.locator("tbody tr:visible").count() == 1
            page.fill("input.find", "")
            page.click("th.number >> text=step")
            shown = page.locator("tbody tr td.number:nth-child(4)").evaluate_all(
                "cells => cells.map(c => Number(c.dataset.by))"
            )
            assert shown == sorted(shown, reverse=True)
    finally:
        for name in case_names(home, "many"):
            shutil.rmtree(home / "cases" / name)


def test_the_list_shows_what_is_kept_meanwhile(browser: Any, home: Path, address: str) -> None:
    try:
        with opened(browser, address) as page:
            before = page.locator("tbody tr").count()
            runs.keep(home, runs.case(20.0, 31, command=("python", "new.py")), "new")
            page.wait_for_selector("tbody >> text=new.py")
            assert page.locator("tbody tr").count() == before + 1
            page.locator("tbody input").first.check()
            runs.keep(home, runs.case(20.0, 32, command=("python", "newer.py")), "newer")
            page.wait_for_selector("text=The list has changed")
            assert page.locator("tbody input").first.is_checked(), "what someone has chosen is not taken away"
            page.click("#new >> text=reload")
            page.wait_for_selector("tbody >> text=newer.py")
    finally:
        for name in case_names(home, "new"):
            shutil.rmtree(home / "cases" / name)


def test_two_chosen_cases_are_compared(browser: Any, home: Path, address: str) -> None:
    names = case_names(home, "train")
    with opened(browser, address) as page:
        assert page.locator("#compare").is_disabled()
        page.check(f'input[value="{names[0]}"]')
        assert page.locator("#compare").is_disabled()
        page.check(f'input[value="{names[3]}"]')
        page.click("#compare")
        assert "Slower: a step takes" in page.locator("h1").inner_text()
        assert page.locator(".forest tbody tr").count() >= 4
        page.click("text=swap")
        assert "Faster: a step takes" in page.locator("h1").inner_text()


def test_the_theme_is_kept_from_page_to_page(browser: Any, address: str) -> None:
    with opened(browser, address, color_scheme="light") as page:
        before = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.click('[data-do="theme"]')
        page.click('[data-do="theme"]')
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert dark != before
        page.click('a[href="/trends"]')
        page.wait_for_selector("h1 >> text=Trends")
        page.wait_for_selector('html[data-theme="dark"]')
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == dark


def test_hostile_text_is_text(browser: Any, home: Path, address: str) -> None:
    evil = case_names(home, "hostile")[0]
    other = case_names(home, "train")[0]
    for path in ("/", "/trends", f"/case/{evil}", f"/compare?before={other}&after={evil}", f"/follow/{evil}"):
        with opened(browser, address, path) as page:
            page.wait_for_timeout(100)
            assert page.evaluate("document.querySelectorAll('img, main script:not([type]):not([src])').length") == 0
            if not path.startswith("/follow"):
                assert "<script>alert(1)</script>" in page.locator("body").inner_text()


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_sticks_out(browser: Any, home: Path, address: str, width: int) -> None:
    one, other = case_names(home, "train")[:2]
    for path in ("/", "/trends", f"/compare?before={one}&after={other}", f"/follow/{one}"):
        with opened(browser, address, path, viewport={"width": width, "height": 800}) as page:
            page.wait_for_timeout(100)
            room, needed = page.evaluate("[document.documentElement.clientWidth, document.documentElement.scrollWidth]")
            assert needed <= room, path
            if path.startswith(("/trends", "/compare")):
                tables = "[...document.querySelectorAll('.scroll')]"
                sizes = page.evaluate(f"{tables}.map((one) => [one.clientWidth, one.scrollWidth])")
                assert sizes
                assert all(wide <= seen for seen, wide in sizes), "a column is cut"


def test_a_page_of_another_site_learns_nothing(browser: Any, address: str) -> None:
    """A foreign page in the same browser asks for the list, as script, picture, frame and by fetch."""
    context = browser.new_context()
    page = context.new_page()
    page.route("http://evil.example/", lambda route: route.fulfill(body="<p>evil</p>", content_type="text/html"))
    page.goto("http://evil.example/")
    told = page.evaluate(
        """async (address) => {
          const seen = [];
          for (const mode of ["cors", "no-cors"]) {
            try { seen.push((await (await fetch(address, { mode })).text()).length); }
            catch (e) { seen.push("refused"); }
          }
          const loaded = (name) => new Promise((done) => {
            const made = document.createElement(name);
            made.onload = () => done("loaded"); made.onerror = () => done("refused");
            made.src = address + "/assets/script.js"; document.body.append(made);
          });
          return [...seen, await loaded("script"), await loaded("img")];
        }""",
        address,
    )
    context.close()
    assert told[0] == "refused"
    assert told[1] in ("refused", 0)
    assert told[2:] == ["refused", "refused"]


def steps_beyond(page: Any, count: int) -> int:
    """Wait until the page tells of more steps; its policy lets nobody evaluate a condition in it."""
    for _ in range(300):
        told = page.locator("[data-field=steps]").text_content().replace(",", "")
        if told.isdigit() and int(told) > count:
            return int(told)
        page.wait_for_timeout(100)
    raise AssertionError(f"no step after {count} was told")


def test_a_run_is_followed_while_it_goes_on(browser: Any, home: Path, address: str) -> None:
    project = home.parent
    (project / "train.py").write_text(PROGRAM)
    (project / "tensorflow.py").write_text("__version__ = '2.21.0'\n")
    command = [sys.executable, "-m", "flatout", "run", "-q", "train.py"]
    known = set(case_names(home, "train"))
    running = subprocess.Popen(command, cwd=project, env=environment(), stderr=subprocess.DEVNULL)
    try:
        while not (begun := [one for one in CaseDirectory(home).begun() if one.running and one.name not in known]):
            assert running.poll() is None
        (name,) = (one.name for one in begun)
        with opened(browser, address) as page:
            page.click(f'a[href="/follow/{name}"]')
            first = steps_beyond(page, 20)
            assert page.locator(".live svg polyline").count() == 1
            assert steps_beyond(page, first) > first
            page.wait_for_selector("text=Open the report", timeout=60_000)
            page.click("text=Open the report")
            page.wait_for_selector("html[data-ready]", state="attached")
    finally:
        running.kill()
        running.wait()
