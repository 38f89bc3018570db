"""Requests → pages. Only GET and HEAD, only from this machine, only files of `.flatout/`, and nothing is changed."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from flatout import store
from flatout.model.errors import CaseNotFound, FlatoutError, InvalidOption, ToolMissing
from flatout.serve import guard
from flatout.serve.case_directory import CaseDirectory, UnfinishedCase
from flatout.serve.pages import case_list, comparison, layout, progress, trends

ADDRESS = "127.0.0.1"
LONGEST = 4000
"""Characters of an address at most."""
SCRIPTS = (("flatout.report.html", ("core.js", "theme.js", "tables.js")), ("flatout.serve", ("pages.js",)))
"""The scripts of the report, and those of these pages."""


@dataclass(frozen=True)
class Answer:
    text: str
    kind: str = "text/html"
    policy: str = guard.PAGE_POLICY
    status: int = 200
    name: str = ""
    """A file name, if the browser is to save the answer."""


class Site:
    """The pages by address."""

    def __init__(self, home: Path) -> None:
        self.cases = CaseDirectory(home)

    def answer(self, target: str) -> Answer:
        try:
            address = urlsplit(target)
            path = unquote(address.path)
            query = parse_qs(address.query, max_num_fields=20)
        except ValueError:
            raise CaseNotFound("There is no such page.") from None
        parts = [part for part in path.split("/") if part]
        routes: dict[tuple[str, int], Callable[[], Answer]] = {
            ("", 0): self._list,
            ("mark.json", 1): lambda: Answer(json.dumps({"mark": self.cases.mark()}), "application/json"),
            ("assets", 2): lambda: _asset(parts[1]),
            ("case", 2): lambda: self._report(parts[1]),
            ("case", 3): lambda: self._json(parts[1], parts[2]),
            ("compare", 1): lambda: self._compare(query),
            ("trends", 1): self._trends,
            ("follow", 2): lambda: self._follow(parts[1]),
            ("follow", 3): lambda: self._progress(parts[1], parts[2]),
        }
        route = routes.get((parts[0] if parts else "", len(parts)))
        if route is None:
            raise CaseNotFound("There is no such page.")
        return route()

    def _list(self) -> Answer:
        mark = self.cases.mark()  # before the list is read, so that a change in between is noticed
        return Answer(case_list.write(self.cases.kept(), self.cases.begun(), str(self.cases.home), mark))

    def _report(self, name: str) -> Answer:
        path = self.cases.file(name)
        stat = path.stat()
        return _report(path, stat.st_mtime_ns, stat.st_size)

    def _json(self, name: str, file: str) -> Answer:
        if file != store.FILE:
            raise CaseNotFound("There is no such page.")
        text = self.cases.file(name).read_text(encoding="utf-8", errors="replace")
        return Answer(text, "application/json", name=f"{name}.json")

    def _compare(self, query: dict[str, list[str]]) -> Answer:
        from flatout.compare.case_selection import load_run
        from flatout.compare.comparison import compare
        from flatout.history.series import repeats_of

        chosen = [self.cases.file(name) for name in query.get("case", [])]
        chosen.sort(key=lambda path: path.stat().st_mtime)
        chosen = [self.cases.file(name) for key in ("before", "after") for name in query.get(key, [])[:1]] or chosen
        if len(chosen) != 2:
            raise InvalidOption("Choose exactly two cases to compare.")
        before, after = map(load_run, chosen)
        return Answer(comparison.write(compare([before], [after], None, repeats_of((before, after), self.cases.home))))

    def _trends(self) -> Answer:
        from flatout.history.series import all_series

        return Answer(trends.write(all_series(self.cases.home)))

    def _follow(self, name: str) -> Answer:
        return Answer(progress.write(self._begun(name)))

    def _progress(self, name: str, file: str) -> Answer:
        from flatout.serve.progress import progress

        if file != "progress.json":
            raise CaseNotFound("There is no such page.")
        return Answer(json.dumps(_finite(progress(self._begun(name)))), "application/json")

    def _begun(self, name: str) -> UnfinishedCase:
        """A case whose program is running, or has ended since the page was opened."""
        directory = self.cases.directory(name)
        for one in self.cases.begun():
            if one.name == name:
                return one
        kind = "tune" if name.startswith("tune-") else "run"
        return UnfinishedCase(name, kind, directory, False, (directory / store.FILE).stat().st_mtime)


def make(home: Path, port: int) -> ThreadingHTTPServer:
    """A server that listens. `serve_forever()` starts to answer."""
    site = Site(home)

    class Handler(_Handler):
        def answer(self, target: str) -> Answer:
            return site.answer(target)

    try:
        return _Server((ADDRESS, port), Handler)
    except OSError as error:
        raise InvalidOption(
            f"Port {port} cannot be used: {error.strerror or error}. Choose another with --port; 0 takes any free one."
        ) from None


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], OSError):  # a closed connection is not an error
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server_version = "flatout"
    sys_version = ""
    timeout = 30

    def answer(self, target: str) -> Answer:
        raise NotImplementedError

    def do_GET(self) -> None:
        why = guard.refusal(self.headers, self.connection.getsockname()[1])
        if why is not None:
            self._send(Answer(why + "\n", "text/plain", status=403))
            return
        try:
            if len(self.path) > LONGEST:
                raise CaseNotFound("There is no such page.")
            found = self.answer(self.path)
        except CaseNotFound as error:
            found = Answer(layout.message("Not found", str(error)), status=404)
        except FlatoutError as error:
            found = Answer(layout.message("This cannot be shown", str(error)), status=422)
        except Exception as error:  # a damaged case must not stop the server
            sys.stderr.write(f"flatout: {self.path[:200]!r}: {type(error).__name__}: {error}\n")
            text = f"A part of this case could not be shown: {type(error).__name__}: {error}"
            found = Answer(layout.message("This cannot be shown", text), status=500)
        self._send(found)

    do_HEAD = do_GET  # noqa: N815

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Other methods and malformed requests get a plain answer too."""
        self._send(Answer("Only GET and HEAD are supported.\n", "text/plain", status=code))

    def _send(self, found: Answer) -> None:
        body = found.text.encode("utf-8", "replace")
        self.send_response(found.status)
        self.send_header("Content-Type", f"{found.kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", found.policy)
        if found.name:
            self.send_header("Content-Disposition", f'attachment; filename="{found.name}"')
        for name, value in guard.HEADERS.items():
            self.send_header(name, value)
        self.end_headers()
        if getattr(self, "command", None) != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        pass  # no log of requests


@functools.lru_cache(maxsize=8)
def _report(path: Path, changed: int, size: int) -> Answer:
    """The report of a case. `changed` and `size` make the cache notice new content."""
    case = store.load(path)
    try:
        from flatout.report.html import render

        return Answer(render(case, path.parent), policy=guard.REPORT_POLICY)
    except ToolMissing as error:
        from flatout.report.html.markup import tag, verbatim
        from flatout.report.terminal import render as as_text

        text = as_text(case, width=110, color=False, directory=path.parent, unicode=True)
        return Answer(layout.page(path.parent.name, tag("p", str(error)), tag("pre", verbatim(text, 100_000))))


@functools.cache
def _asset(name: str) -> Answer:
    from flatout.report.html.document import _styles as styles_of_report

    if name == "style.css":
        return Answer(styles_of_report() + _read("flatout.serve", "pages.css"), "text/css")
    if name == "script.js":
        texts = [_read(package, file) for package, names in SCRIPTS for file in names]
        return Answer("\n".join(texts), "text/javascript")
    raise CaseNotFound("There is no such page.")


def _read(package: str, name: str) -> str:
    return (files(package) / "assets" / name).read_text("utf-8")


def _finite(value: Any) -> Any:
    """JSON has no infinity."""
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list) else value
