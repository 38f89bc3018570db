"""Serious faults that axe-core finds in the report, in `flatout serve` and in the web site: none is the bar.

    python benchmarks/accessibility.py [ADDRESS …]     addresses or files; else reports of kept cases, serve, build/site

Each page is looked at in a real Chromium, as wide as a desktop and as narrow as a phone, light and dark. What lies in
folds is unfolded.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "tests" / "fixtures"
sys.path[:0] = [str(FIXTURES / "report"), str(ROOT / "scripts"), str(ROOT / "tests" / "unit")]
SEEN = tuple((width, scheme) for width in (1280, 390) for scheme in ("light", "dark"))
SERIOUS = ("serious", "critical")
SITE = ("index", "start", "tutorials/training", "views", "gallery/index", "gallery/eager-loop", "catalogue",
        "causes/index", "causes/eager-step", "method", "commands", "comparison", "compress")  # fmt: skip


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def axe() -> str:
    try:
        import axe_playwright_python
    except ImportError:
        sys.exit("axe-core is not here: scripts/test installs it, or pip install axe-playwright-python")
    assert axe_playwright_python.__file__ is not None
    return (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")


def reports(folder: Path) -> list[str]:
    import generate_pictures
    from sample_case import sample_case

    from flatout.model.case import Case
    from flatout.report.html import render

    made = [generate_pictures.report(name, folder) for name in generate_pictures.REPORTS]
    cases = {"sample": sample_case()}
    for path in (FIXTURES / "screens" / "tune-won.json", FIXTURES / "cases/before-rebuild/optimize-model/case.json"):
        cases[f"{path.parent.name}-{path.stem}"] = Case.from_json(json.loads(path.read_text(encoding="utf-8")))
    for name, case in cases.items():
        made.append(folder / f"{name}.html")
        made[-1].write_text(render(case, None), encoding="utf-8")
    return [path.as_uri() for path in made]


@contextmanager
def served(folder: Path) -> Iterator[list[str]]:
    """`flatout serve` on kept cases: the addresses of its pages."""
    cases = folder / ".flatout" / "cases"
    for name in ("serial_augment", "retrace_scalar", "tune_tiny_fit"):
        shutil.copytree(FIXTURES / "report" / name, cases / name)
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "flatout", "serve", "--port", str(port)]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(100):
            try:
                urllib.request.urlopen(address, timeout=5).close()
                break
            except OSError:
                time.sleep(0.2)
        yield [
            address,
            f"{address}/trends",
            f"{address}/compare?before=serial_augment&after=retrace_scalar",
            f"{address}/case/serial_augment",
        ]
    finally:
        process.terminate()
        process.wait(10)


Way = tuple[int, str]
"""The width of the window and the colour scheme."""


def faults(browser: Any, script: str, address: str, ways: Sequence[Way] = SEEN) -> Iterator[tuple[str, str]]:
    """Each fault that axe-core finds: its impact, then what and where."""
    for width, scheme in ways:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True)
        page = context.new_page()
        page.goto(address)
        page.wait_for_timeout(1500)
        page.evaluate("document.querySelectorAll('details').forEach((fold) => (fold.open = true))")
        page.evaluate(script)
        found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        for fault in found["violations"]:
            for node in fault["nodes"][:5]:
                told = [one["message"] for one in (node["any"] or node["all"] or node["none"])[:1]]
                where = f"{width} {scheme} {' '.join(map(str, node['target']))}"
                yield fault["impact"], f"{fault['id']}: {where}: {' '.join(told)[:160]}"
        context.close()


def main() -> int:
    from chromium import started

    script, count = axe(), 0
    with tempfile.TemporaryDirectory() as name, started() as browser:
        if browser is None:
            sys.exit("No Chromium here: apt-get install chromium, or `playwright install chromium`.")
        folder = Path(name)
        with served(folder) as pages:
            site = [(ROOT / "build" / "site" / f"{one}.html") for one in SITE]
            given = [one if "://" in one else Path(one).resolve().as_uri() for one in sys.argv[1:]]
            asked = given or [*reports(folder), *pages, *(one.as_uri() for one in site if one.exists())]
            for address in asked:
                found = list(faults(browser, script, address))
                serious = [text for impact, text in found if impact in SERIOUS]
                count += len(serious)
                print(f"{len(serious):4d} serious, {len(found) - len(serious):3d} others   {address}", flush=True)
                for text in serious:
                    print(f"       {text}")
    print(f"{count} serious faults (bar 0)")
    return int(count > 0)


if __name__ == "__main__":
    raise SystemExit(main())
