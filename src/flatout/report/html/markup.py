"""HTML that is safe against injection: text is escaped when it is inserted, and only `tag` makes markup.

With a template language every template would have to mark what is safe. Here a plain `str` is always text, and `Html`
is what `tag` has built. Text also passes through `clean`, so that no invisible or direction-changing character makes a
name look like another one.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterable
from typing import Any

from flatout.report.formatting import clean

VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})


class Html(str):
    """Finished markup, made by the functions of this module only."""

    __slots__ = ()


Child = str | Html | None | Iterable["Child"]


def tag(name: str, /, *children: Child, **attributes: Any) -> Html:
    """An element. `class_` is class, `data_x` is data-x; True is a bare attribute, None and False are left out."""
    start = f"<{name}{''.join(_attribute(key, value) for key, value in attributes.items())}>"
    return Html(start) if name in VOID else Html(f"{start}{join(*children)}</{name}>")


def join(*children: Child) -> Html:
    return Html("".join(_parts(children)))


def verbatim(text: str, limit: int = 4000) -> Html:
    """Source as written, with its blanks; invisible characters are replaced."""
    shown = ("".join(map(_visible, line.expandtabs(4))) for line in text[:limit].split("\n"))
    return Html(html.escape("\n".join(shown), quote=True))


def escape(text: object, limit: int = 2000) -> Html:
    return Html(html.escape(clean(text, limit), quote=True))


def data(value: Any, identity: str | None = None) -> Html:
    """Values for a script, as JSON inside the page. `<` is escaped so that no text can end the block."""
    text = json.dumps(_finite(value), ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return block("application/json", text, identity)


def block(kind: str, text: str, identity: str | None = None) -> Html:
    """A data block, which the browser does not run. `text` must not contain `<`."""
    if "<" in text:
        raise ValueError(f"a data block of {kind} contains markup")
    return tag("script", Html(text), type=kind, id=identity)


def _parts(children: Iterable[Child]) -> Iterable[str]:
    for child in children:
        if child is None:
            continue
        if isinstance(child, Html):
            yield child
        elif isinstance(child, str):
            yield _spaced(child)
        else:
            yield from _parts(child)


def _spaced(text: str) -> str:
    """`clean` strips blanks at the ends; between two elements they matter."""
    inner = escape(text)
    return (" " if text[:1].isspace() else "") + inner + (" " if inner and text[-1:].isspace() else "")


def _attribute(key: str, value: Any) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(value)}"'


def _visible(character: str) -> str:
    return character if character.isprintable() else "\N{REPLACEMENT CHARACTER}"


def _finite(value: Any) -> Any:
    """JSON has no infinity: None takes the place of what is not finite."""
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, (list, tuple)) else value
