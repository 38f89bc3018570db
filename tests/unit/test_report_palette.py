"""What flatout shows in a terminal can be read on any background: letters in the user's own colour, glyphs in colours
with enough contrast on white, on black, and on what the common themes have between them.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.color import Color
from rich.console import Console
from sample_case import sample_case

from flatout.model.case import Case
from flatout.report.terminal import VIEWS, render
from flatout.report.terminal.output import styled
from flatout.report.terminal.palette import COLOURS

ROOT = Path(__file__).resolve().parent.parent.parent
FIXTURES = ROOT / "tests" / "fixtures"
BACKGROUNDS = {
    "white": "ffffff",
    "black": "000000",
    "Solarized light": "fdf6e3",
    "Solarized dark": "002b36",
    "VS Code dark": "1e1e1e",
    "One Dark": "282c34",
    "One Light": "fafafa",
    "Ubuntu": "300a24",
}
LEAST = 3.0
"""The contrast that WCAG 2.1 asks for of what is no text (1.4.11)."""
CODES = re.compile(r"\x1b\[([0-9;]*)m([^\x1b]*)")
NAMED = re.compile(r"""["'](?:bold )?(?:dim|black|red|green|yellow|blue|magenta|cyan|white|bright_\w+|grey\d+)["']""")


def luminance(triplet: tuple[int, ...]) -> float:
    parts = [value / 255 for value in triplet]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: tuple[int, ...], other: tuple[int, ...]) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("name", BACKGROUNDS)
def test_each_colour_is_seen(name: str) -> None:
    behind = tuple(bytes.fromhex(BACKGROUNDS[name]))
    for colour in COLOURS:
        assert Color.parse(colour).number in range(16, 256)  # those before are up to the theme
        assert contrast(tuple(Color.parse(colour).get_truecolor()), behind) >= LEAST, colour


def pages() -> Iterator[tuple[str, str]]:
    paths = sorted([*FIXTURES.glob("screens/*.json"), *FIXTURES.glob("cases/before-rebuild/*/case.json")])
    cases = {f"{path.parent.name}-{path.stem}": json.loads(path.read_text(encoding="utf-8")) for path in paths}
    for name, case in [("sample", sample_case()), *((name, Case.from_json(kept)) for name, kept in cases.items())]:
        for view in VIEWS:
            if VIEWS[view].has_data(case):
                yield f"{name} {view}", render(case, view, 100, color=True, unicode=True)


def test_letters_and_digits_keep_the_users_colour_and_glyphs_have_ours() -> None:
    allowed, seen = {Color.parse(colour).number for colour in COLOURS}, set()
    count = 0
    for name, text in pages():
        count += 1
        for codes, content in CODES.findall(text):
            if codes in ("0", "1"):
                continue
            assert codes.startswith("38;5;"), f"{name}: {codes} {content[:60]}"
            assert int(codes.removeprefix("38;5;")) in allowed, f"{name}: {codes} {content[:60]}"
            assert not re.search(r"\w", content.replace("o", "")), f"{name}: {content[:60]}"
            seen.add(codes)
    assert count > 60
    assert len(seen) >= 5


def test_the_audit_of_a_machine_has_no_colour_of_a_theme() -> None:
    from flatout.environment.table import show

    case = Case.from_json(json.loads((FIXTURES / "cases/before-rebuild/env/case.json").read_text(encoding="utf-8")))
    file = io.StringIO()
    show(case, Console(file=file, force_terminal=True, color_system="256", highlight=False, width=100))
    codes = {codes for codes, _ in CODES.findall(file.getvalue())}
    assert codes == {"0", "1"}


def test_no_style_of_a_theme_is_in_the_source() -> None:
    files = [path for path in (ROOT / "src" / "flatout").rglob("*.py") if "html" not in path.parts]
    using = [path for path in files if "from rich" in (text := path.read_text(encoding="utf-8")) or "page." in text]
    assert len(using) > 20
    assert {path.name: found for path in using if (found := NAMED.findall(path.read_text(encoding="utf-8")))} == {}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_who_wants_none_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert styled(Terminal())
    assert not styled(io.StringIO())
    monkeypatch.setenv("TERM", "dumb")
    assert not styled(Terminal())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    assert not styled(Terminal())
