"""The layout of every page: head, header with links to the other pages, footer."""

from __future__ import annotations

from flatout.model.version import __version__
from flatout.report.html.markup import Child, tag

PAGES = (("/", "Cases"), ("/trends", "Trends"))


def page(title: str, *content: Child, here: str = "", live: str | None = None, mark: str | None = None) -> str:
    """A whole page. Its script polls the address `live`, and reports when the list has another `mark`."""
    links = [tag("a", name, href=path, aria_current="page" if path == here else None) for path, name in PAGES]
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
    """A page that says why something cannot be shown."""
    return page(
        title,
        tag("section", tag("h1", title, class_="verdict"), tag("p", text), tag("p", tag("a", "All cases", href="/"))),
    )
