"""What stands around every page: head, header with the way to the other pages, footer."""

from __future__ import annotations

from flatout.model.version import __version__
from flatout.report.html.markup import Child, tag

PLACES = (("/", "Cases"), ("/trends", "Trends"))


def page(title: str, *content: Child, here: str = "", live: str | None = None, mark: str | None = None) -> str:
    """A whole page. `live` is the address that its script asks again and again; `mark` is what the list is known by."""
    links = [tag("a", name, href=path, aria_current="page" if path == here else None) for path, name in PLACES]
    body = tag(
        "body",
        tag("a", "Skip to the content", href="#content", class_="skip"),
        tag(
            "header",
            tag("a", "flatout", href="/", class_="brand"),
            tag("span", links, class_="places", role="navigation", aria_label="Pages"),
            tag("span", tag("button", "Theme", type="button", data_do="theme"), class_="buttons"),
            class_="top",
        ),
        tag("main", *content, id="content", class_="plain"),
        tag("footer", tag("p", f"flatout {__version__}, on this machine alone."), class_="quiet"),
        tag("script", src="/assets/script.js"),
        data_live=live,
        data_mark=mark,
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{title} · flatout"),
        tag("link", rel="icon", href="data:,"),
        tag("link", rel="stylesheet", href="/assets/style.css"),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def message(title: str, text: str) -> str:
    """Something that cannot be shown, and why."""
    return page(
        title,
        tag("section", tag("h1", title, class_="verdict"), tag("p", text), tag("p", tag("a", "All cases", href="/"))),
    )
