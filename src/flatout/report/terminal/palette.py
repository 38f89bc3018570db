"""The colours of the terminal: of glyphs alone, and legible on any background.

What `red` or `cyan` looks like is up to the terminal's theme, and so is whether it can be read: cyan on white has a
contrast of 2, `bright black` of Solarized is its background, and `dim` fades on all light ones. So letters and digits
keep the colour that the user has chosen, and are bold where they matter. Bars, curves and marks, which are told apart
by their glyphs as well, take colours from the fixed part of the 256, which no theme changes. Each has a contrast of 3
and more against white, black and what the common themes have between them.
"""

from __future__ import annotations

AMBER = "color(136)"
MAGENTA = "color(133)"
RED = "color(197)"
GREEN = "color(64)"
TEAL = "color(30)"
BLUE = "color(32)"
GREY = "color(102)"

PLAIN = ""
"""For the lightest shade: a quarter of its dots is drawn, which needs the contrast that letters have."""

COLOURS = (AMBER, MAGENTA, RED, GREEN, TEAL, BLUE, GREY)
"""All that flatout shows in a terminal."""
