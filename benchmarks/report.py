"""How large a report gets and how well it moves: a case with many timeline events in a real Chromium.

    python benchmarks/report.py [--events 200000]

Needs a Chromium and playwright (`pip install playwright`). Says how large the file is, how long writing it takes, when
the page answers and when its timeline is drawn, and the longest task of the browser while the timeline is moved and
zoomed. Leaves with exit code 1 where a bar is missed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "fixtures" / "report"))

from chromium import started, watched  # noqa: E402
from large_trace import large_trace  # noqa: E402

BARS = {"megabytes": 25.0, "interactive_s": 3.0, "longest_task_ms": 200.0}

WATCH = """() => {
  window.tasks = [];
  new PerformanceObserver((list) => window.tasks.push(...list.getEntries().map((entry) => entry.duration)))
    .observe({ entryTypes: ["longtask"] });
}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=200_000)
    events = parser.parse_args().events
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "report.html"
        found: dict[str, float] = write(Path(directory), file, events)
        with started() as browser:
            if browser is None:
                sys.exit("No Chromium was found: apt-get install chromium, or playwright install chromium.")
            found |= move(browser, file)
    for name, value in found.items():
        bar = BARS.get(name)
        print(f"{name:<18} {value:>10,.2f}" + (f"   (bar: at most {bar:g})" if bar else ""))
    sys.exit(any(found[name] > bar for name, bar in BARS.items()))


def write(directory: Path, file: Path, events: int) -> dict[str, float]:
    from flatout.report.html import render
    from flatout.trace import analyse

    (directory / "trace").mkdir()
    trace = directory / "trace" / "host.xplane.pb"
    trace.write_bytes(large_trace(events))
    case = analyse(trace)
    begin = time.perf_counter()
    file.write_text(render(case, directory), encoding="utf-8")
    return {
        "events": float(events),
        "write_s": time.perf_counter() - begin,
        "megabytes": file.stat().st_size / 1e6,
    }


def move(browser: Any, file: Path) -> dict[str, float]:
    since_navigation = "performance.now() / 1000"
    with watched(browser, file) as seen:
        ready = seen.page.evaluate(since_navigation)
        seen.drawn(".timeline")
        interactive = seen.page.evaluate(since_navigation)
        seen.page.evaluate(WATCH)
        box = seen.page.locator(".stage canvas").bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + 120
        frames = seen.page.evaluate_handle(
            "() => { const f = []; let l = performance.now(); (function g(n) "
            "{ f.push(n - l); l = n; requestAnimationFrame(g); })(l); return f; }"
        )
        seen.page.mouse.move(x, y)
        seen.page.keyboard.down("Control")
        for _ in range(40):
            seen.page.mouse.wheel(0, -60)
        for _ in range(20):
            seen.page.mouse.wheel(0, 60)
        seen.page.keyboard.up("Control")
        seen.page.mouse.down()
        for step in range(60):
            seen.page.mouse.move(x - 8 * (step % 30), y)
        seen.page.mouse.up()
        seen.page.locator(".timeline .find").fill("block_7")
        seen.page.locator('.timeline [data-do="all"]').click()
        seen.page.wait_for_timeout(300)
        tasks = seen.page.evaluate("window.tasks")
        longest_frame = seen.page.evaluate("frames => Math.max(...frames)", frames)
    return {
        "ready_s": ready,
        "interactive_s": interactive,
        "longest_task_ms": max(tasks, default=0.0),
        "longest_frame_ms": longest_frame,
    }


if __name__ == "__main__":
    main()
