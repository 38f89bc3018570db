"""Writes docs/pictures/: terminals as SVG, from the real output of kept cases, and the report's views as PNG.

python scripts/generate_pictures.py            all; the PNGs need playwright and a Chromium
python scripts/generate_pictures.py --svg      the terminals only
python scripts/generate_pictures.py --check    fails where a terminal is out of date
"""

from __future__ import annotations

import argparse
import io
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
FIXTURES = ROOT / "tests" / "fixtures"
COLUMNS = 100

TERMINALS = {"run": "screens/run-slow.json", "tune": "screens/tune-won.json"}
"""Picture and kept case."""
REPORTS = {
    "serial_augment": ("summary", "findings", "steps", "timeline", "ops", "flame", "input", "memory"),
    "retrace_scalar": ("functions",),
    "tune_tiny_fit": ("trials",),
    "keras-starved": ("devices", "kernels"),
}
"""Kept case or trace, and the views of its report that are taken."""
TALLEST = 760


def svg(case_file: str, command: str) -> str:
    """What the command prints at its end, as a terminal shows it; no font is fetched."""
    from rich._export_format import CONSOLE_SVG_FORMAT
    from rich.console import Console
    from rich.terminal_theme import SVG_EXPORT_THEME
    from rich.text import Text

    from flatout.model.case import Case
    from flatout.report.terminal import render

    case = Case.from_json(json.loads((FIXTURES / case_file).read_text(encoding="utf-8")))
    text = render(case, "overview", COLUMNS, True, unicode=True).rstrip("\n")
    console = Console(
        record=True,
        width=COLUMNS,
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
        legacy_windows=False,
    )
    console.print(Text.from_ansi(text), soft_wrap=True)
    form = CONSOLE_SVG_FORMAT
    while "@font-face" in form:
        begin = form.index("@font-face")
        form = form[:begin] + form[form.index("}}", begin) + 2 :]
    form = form.replace("font-family: Fira Code", "font-family: ui-monospace, DejaVu Sans Mono, Menlo, Consolas")
    made = console.export_svg(
        title=command, theme=SVG_EXPORT_THEME, code_format=form, unique_id=f"flatout-{Path(case_file).stem}"
    )
    return "\n".join(line.rstrip() for line in made.splitlines()) + "\n"


def terminals() -> dict[str, str]:
    return {
        f"{name}.svg": svg(case_file, f"flatout {name} examples/slow_training.py")
        for name, case_file in TERMINALS.items()
    }


def outdated() -> list[str]:
    wanted = terminals()
    return [n for n, text in wanted.items() if not (PICTURES / n).exists() or (PICTURES / n).read_text("utf-8") != text]


def report(name: str, folder: Path) -> Path:
    from flatout import store
    from flatout.causes import diagnose
    from flatout.report.html import render
    from flatout.trace import analyse

    file = folder / f"{name}.html"
    kept = FIXTURES / "report" / name
    if kept.is_dir():
        file.write_text(render(store.load(kept / "case.json"), kept), encoding="utf-8")
    else:
        file.write_text(render(diagnose(analyse(FIXTURES / "traces" / f"{name}.xplane.pb.gz")), None), encoding="utf-8")
    return file


def photograph(browser: Any) -> None:
    """One PNG for each view, light, as wide as a laptop shows it."""
    with tempfile.TemporaryDirectory() as temporary:
        for name, views in REPORTS.items():
            page = browser.new_page(viewport={"width": 1180, "height": 900}, color_scheme="light")
            page.goto(report(name, Path(temporary)).as_uri())
            page.locator("html[data-ready]").wait_for(state="attached")
            page.evaluate("document.querySelectorAll('header').forEach((one) => { one.style.position = 'static' })")
            for view in views:
                section = page.locator(f"#{view}").first
                section.scroll_into_view_if_needed()
                page.wait_for_timeout(700)  # the picture of a chart comes when it is near
                box = section.bounding_box()
                if box is None:
                    sys.exit(f"{name} has no view {view}")
                below = page.evaluate("window.scrollY")  # a box is seen from the window, a clip from the page
                clip = {**box, "y": box["y"] + below, "height": min(box["height"], TALLEST)}
                page.screenshot(path=PICTURES / f"{view}.png", clip=clip, full_page=True)
            page.close()


def main() -> int:
    parser = argparse.ArgumentParser(description="Write the pictures of docs/.")
    parser.add_argument("--svg", action="store_true", help="the terminals only")
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a terminal is out of date")
    asked = parser.parse_args()
    if asked.check:
        return int(bool(outdated()))
    PICTURES.mkdir(parents=True, exist_ok=True)
    for name, text in terminals().items():
        (PICTURES / name).write_text(text, encoding="utf-8")
    if not asked.svg:
        sys.path.insert(0, str(FIXTURES / "report"))
        from chromium import started

        with started() as browser:
            if browser is None:
                sys.exit("No Chromium here: apt-get install chromium, or `playwright install chromium`.")
            photograph(browser)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
