"""Takes pictures of what a person sees, to be looked at: the terminal, the report, `flatout serve` and the web site.

python scripts/look.py                         all of it, into build/look (the site where scripts/docs has built it)
python scripts/look.py terminal report         these kinds only: terminal, report, serve, site
python scripts/look.py --command "flatout check examples"      the terminal of one command

A terminal is a tmux of 80 and 120 columns, in dark, light and Solarized's colours, and besides with NO_COLOR, with
TERM=dumb and through a pipe. Pages are taken in a real Chromium, 1280 and 390 pixels wide, light and dark, in pieces as
tall as a screen. It says which pages are wider than their window. Whether all is well, only eyes can tell.
"""

from __future__ import annotations

import argparse
import io
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "tests" / "fixtures"
sys.path[:0] = [str(ROOT / "benchmarks"), str(FIXTURES / "report")]
KINDS = ("terminal", "report", "serve", "site")
WIDTHS = (80, 120)
WINDOWS = ((1280, "light"), (1280, "dark"), (390, "light"), (390, "dark"))
TALLEST = 2000
"""Pixels of one picture."""
PIECES = 8
"""Of one page at most: a report's long tables are alike."""
LINES = 250

COMMANDS = {
    "help": "flatout --help",
    "run-slow": "flatout show tests/fixtures/screens/run-slow.json",
    "run-gpu": "flatout show tests/fixtures/screens/run-gpu.json",
    "run-job": "flatout show tests/fixtures/screens/run-job.json",
    "run-good": "flatout show tests/fixtures/screens/run-good.json",
    "run-failed": "flatout show tests/fixtures/screens/run-failed.json",
    "run-no-step": "flatout show tests/fixtures/screens/run-no-step.json",
    "input": "flatout show docs/gallery/cases/input-slow.json",
    "tune-won": "flatout show tests/fixtures/screens/tune-won.json",
    "tune-gpu": "flatout show tests/fixtures/screens/tune-gpu.json",
    "tune-refused": "flatout show tests/fixtures/screens/tune-refused.json",
    "tune-undecided": "flatout show tests/fixtures/screens/tune-undecided.json",
    "tune-long-patch": "flatout show tests/fixtures/screens/tune-long-patch.json",
    "details": "flatout show --view details tests/fixtures/report/serial_augment/case.json",
    "timeline": "flatout show --view timeline tests/fixtures/report/serial_augment/case.json",
    "ops": "flatout show --view ops tests/fixtures/report/serial_augment/case.json",
    "memory": "flatout show --view memory tests/fixtures/report/serial_augment/case.json",
    "views-input": "flatout show --view input tests/fixtures/report/serial_augment/case.json",
    "functions": "flatout show --view functions tests/fixtures/report/retrace_scalar/case.json",
    "trials": "flatout show --view trials tests/fixtures/report/tune_tiny_fit/case.json",
    "trace": "flatout trace --no-save tests/fixtures/traces/keras-starved.xplane.pb.gz",
    "compare": "flatout compare docs/gallery/cases/eager-loop-slow.json docs/gallery/cases/eager-loop-cured.json",
    "check": "flatout check examples",
    "env": "flatout env",
    "explain": "flatout explain eager-step",
    "typo": "flatout explain eagre-step",
}
"""Name of the picture, and what is typed."""

TANGO = ((46, 52, 54), (204, 0, 0), (78, 154, 6), (196, 160, 0), (52, 101, 164), (117, 80, 123), (6, 152, 154),
         (211, 215, 207))  # fmt: skip
TANGO_BRIGHT = ((85, 87, 83), (239, 41, 41), (138, 226, 52), (252, 233, 79), (114, 159, 207), (173, 127, 168),
                (52, 226, 226), (238, 238, 236))  # fmt: skip
SOLARIZED = ((7, 54, 66), (220, 50, 47), (133, 153, 0), (181, 137, 0), (38, 139, 210), (211, 54, 130), (42, 161, 152),
             (238, 232, 213))  # fmt: skip
SOLARIZED_BRIGHT = ((0, 43, 54), (203, 75, 22), (88, 110, 117), (101, 123, 131), (131, 148, 150), (108, 113, 196),
                    (147, 161, 161), (253, 246, 227))  # fmt: skip
THEMES = {
    "dark": ((23, 20, 33), (208, 207, 204), TANGO, TANGO_BRIGHT),
    "light": ((255, 255, 255), (23, 20, 33), TANGO, TANGO_BRIGHT),
    "solarized": ((253, 246, 227), (101, 123, 131), SOLARIZED, SOLARIZED_BRIGHT),
}
"""Background, foreground, the eight colours and their bright ones."""


@dataclass(frozen=True)
class Pictures:
    folder: Path
    browser: Any

    def page(self, kind: str, name: str, address: str) -> Iterator[str]:
        """Pictures of a page in each window; what is wider than its window."""
        for width, scheme in WINDOWS:
            context = self.browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
            page = context.new_page()
            page.goto(address)
            page.wait_for_timeout(500)
            height = page.evaluate("document.documentElement.scrollHeight")
            for top in range(0, height, 800):  # charts are drawn when they come near
                page.mouse.wheel(0, 800)
                page.wait_for_timeout(60 if top < PIECES * TALLEST else 0)
            page.evaluate("scrollTo(0, 0)")
            page.wait_for_timeout(300)
            room, needed, height = page.evaluate(
                "(({clientWidth, scrollWidth, scrollHeight}) => [clientWidth, scrollWidth, scrollHeight])"
                "(document.documentElement)"
            )
            if needed > room:
                yield f"{name}: {needed} pixels wide in a window of {room}"
            for piece, top in enumerate(range(0, min(height, PIECES * TALLEST), TALLEST)):
                clip = {"x": 0, "y": top, "width": width, "height": min(TALLEST, height - top)}
                file = self.folder / kind / f"{name}-{width}-{scheme}-{piece}.png"
                page.screenshot(path=file, clip=clip, full_page=True)
            context.close()

    def terminal(self, name: str, text: str, columns: int, theme: str) -> None:
        from rich.console import Console
        from rich.terminal_theme import TerminalTheme
        from rich.text import Text

        console = Console(record=True, width=columns, file=io.StringIO(), force_terminal=True,
                          color_system="truecolor", legacy_windows=False)  # fmt: skip
        console.print(Text.from_ansi(text), soft_wrap=True)
        form = (
            "<html><head><meta charset=utf-8><style>{stylesheet} pre {{ display: inline-block;"
            " padding: 12px; margin: 0; font: 14px/1.2 'DejaVu Sans Mono', monospace; border-right: 1px solid red }}"
            " body {{ margin: 0; color: {foreground}; background: {background} }}</style></head>"
            f"<body><pre style='width:{columns}ch'><code>{{code}}</code></pre></body></html>"
        )
        (self.folder / "terminal").mkdir(parents=True, exist_ok=True)
        page = self.browser.new_page(viewport={"width": 12 * columns, "height": 300})
        page.set_content(console.export_html(theme=TerminalTheme(*THEMES[theme]), code_format=form))
        page.locator("pre").screenshot(path=self.folder / "terminal" / f"{name}-{columns}-{theme}.png")
        page.close()


def typed(command: str, columns: int, **variables: str) -> str:
    """What a tmux of so many columns holds after a command, with its colours."""
    socket = f"look-{os.getpid()}"
    ours = f"{shlex.quote(sys.executable)} -m flatout"
    line = command.replace("flatout ", f"{ours} ", 1)
    given = " ".join(f"{key}={shlex.quote(value)}" for key, value in variables.items())
    shell = f"cd {shlex.quote(str(ROOT))}; env -u COLUMNS -u LINES {given} {line}"
    tmux = ["tmux", "-L", socket, "-f", os.devnull]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
    environment = {key: value for key, value in environment.items() if key not in ("NO_COLOR", "CI", "TMUX")}
    start = ["-x", str(columns), "-y", str(LINES), f"{shell}; tmux -L {socket} wait-for -S done; sleep 60"]
    try:
        subprocess.run([*tmux, "new-session", "-d", *start], env=environment, check=True)
        subprocess.run([*tmux, "wait-for", "done"], check=True, timeout=120)
        time.sleep(0.2)  # tmux draws what has come
        asked = [*tmux, "capture-pane", "-e", "-p"]
        return subprocess.run(asked, check=True, capture_output=True, text=True).stdout.rstrip() + "\n"
    finally:
        subprocess.run([*tmux, "kill-server"], check=False, stderr=subprocess.DEVNULL)


def terminals(pictures: Pictures, commands: dict[str, str]) -> None:
    for name, command in commands.items():
        for columns in WIDTHS:
            text = typed(command, columns)
            for theme in THEMES:
                pictures.terminal(name, text, columns, theme)
        pictures.terminal(f"{name}-no-color", typed(command, 80, NO_COLOR="1"), 80, "light")
        pictures.terminal(f"{name}-dumb", typed(command, 80, TERM="dumb"), 80, "light")
        pictures.terminal(f"{name}-pipe", typed(f"{command} 2>&1 | cat", 80), 80, "light")


def pages(pictures: Pictures, kinds: set[str]) -> Iterator[str]:
    import accessibility

    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if "report" in kinds:
            for address in accessibility.reports(folder):
                yield from pictures.page("report", Path(address).stem, address)
        if "serve" in kinds:
            with accessibility.served(folder) as addresses:
                for address in addresses:
                    name = urlsplit(address).path.strip("/").replace("/", "-")
                    yield from pictures.page("serve", name or "list", address)
        if "site" in kinds:
            for one in accessibility.SITE:
                file = ROOT / "build" / "site" / f"{one}.html"
                if file.exists():
                    yield from pictures.page("site", one.replace("/", "-"), file.as_uri())


def main() -> int:
    parser = argparse.ArgumentParser(description="Take pictures of what a person sees.")
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"{', '.join(KINDS)}; all by default")
    parser.add_argument("--command", help="a command of flatout whose terminal is wanted, and nothing else")
    parser.add_argument("--to", type=Path, default=ROOT / "build" / "look", help="the folder of the pictures")
    asked = parser.parse_args()
    if unknown := set(asked.kinds) - set(KINDS):
        parser.error(f"no kind {', '.join(unknown)}: there are {', '.join(KINDS)}")
    kinds = {"terminal"} if asked.command else set(asked.kinds or KINDS)
    if "terminal" in kinds and not shutil.which("tmux"):
        sys.exit("No tmux here: apt-get install tmux.")
    from chromium import started

    wide: list[str] = []
    with started() as browser:
        if browser is None:
            sys.exit("No Chromium here: apt-get install chromium, or `playwright install chromium`.")
        pictures = Pictures(asked.to.resolve(), browser)
        if "terminal" in kinds:
            terminals(pictures, {"command": asked.command} if asked.command else COMMANDS)
        for fault in pages(pictures, kinds):
            wide.append(fault)
            print(fault, flush=True)
    count = len(list(pictures.folder.rglob("*.png")))
    print(f"{count} pictures in {pictures.folder}; {len(wide)} pages wider than their window")
    return int(bool(wide))


if __name__ == "__main__":
    raise SystemExit(main())
