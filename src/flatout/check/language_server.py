"""A language server: editors show the findings while the user types, and offer the repairs.

It checks the text in the editor, which need not be saved. Settings come from the nearest pyproject.toml. pygls
implements the protocol.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from flatout.causes import find
from flatout.check import settings as settings_of
from flatout.check.driver import Job, check_text
from flatout.check.selection import OLDEST, asked, select
from flatout.check.text_repair import fix
from flatout.model.errors import FlatoutError
from flatout.model.version import __version__
from flatout.source.analysis.patterns import Diagnostic

NAME = "flatout"


def make_server() -> LanguageServer:
    server = LanguageServer(NAME, __version__)

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenTextDocumentParams) -> None:
        _publish(server, params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: types.DidChangeTextDocumentParams) -> None:
        _publish(server, params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        _send(server, params.text_document.uri, [])

    @server.feature(
        types.TEXT_DOCUMENT_CODE_ACTION,
        types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix]),
    )
    def actions(params: types.CodeActionParams) -> list[types.CodeAction]:
        return list(_actions(server, params))

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(params: types.HoverParams) -> types.Hover | None:
        return _hover(server, params)

    return server


def _job(path: str) -> Job:
    settings = settings_of.load(Path(path).parent)
    version = settings.tf if settings.is_pinned else OLDEST
    patterns = select(settings.select, settings.extend_select, settings.ignore, version)
    return Job(patterns, settings, 1, cached=False, asked=asked(settings.select, settings.extend_select))


def _path(uri: str) -> str:
    return unquote(urlparse(uri).path) or "buffer.py"


def _diagnostics(server: LanguageServer, uri: str) -> list[Diagnostic]:
    text = server.workspace.get_text_document(uri).source
    path = _path(uri)
    report = check_text(text.encode("utf-8", "surrogatepass"), path, _job(path))
    return [item for _, item in report.all()]


def _publish(server: LanguageServer, uri: str) -> None:
    try:
        found = _diagnostics(server, uri)
    except FlatoutError as error:  # an invalid pyproject.toml
        server.window_show_message(types.ShowMessageParams(types.MessageType.Warning, f"flatout: {error}"))
        found = []
    _send(server, uri, [_diagnostic(server, uri, item) for item in found])


def _send(server: LanguageServer, uri: str, found: list[types.Diagnostic]) -> None:
    server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, found))


def _diagnostic(server: LanguageServer, uri: str, item: Diagnostic) -> types.Diagnostic:
    return types.Diagnostic(
        range=_range(server, uri, (item.line, item.column, item.end_line, item.end_column)),
        message=f"{item.message} {item.advice}",
        severity=types.DiagnosticSeverity.Warning,
        code=item.cause,
        source=NAME,
        data={"pattern": item.full_name},
    )


def _range(server: LanguageServer, uri: str, span: tuple[int, int, int, int]) -> types.Range:
    """Editors count in UTF-16 units unless they negotiated something else, which pygls knows."""
    document = server.workspace.get_text_document(uri)
    ends = [types.Position(span[0] - 1, span[1] - 1), types.Position(span[2] - 1, span[3] - 1)]
    codec = document.position_codec
    return types.Range(*(codec.position_to_client_units(document.lines, end) for end in ends))


def _actions(server: LanguageServer, params: types.CodeActionParams) -> Any:
    """An edit for each finding that has one and touches the selection."""
    uri = params.text_document.uri
    text = server.workspace.get_text_document(uri).source
    path = _path(uri)
    for item in _diagnostics(server, uri):
        position = _range(server, uri, (item.line, item.column, item.end_line, item.end_column))
        apart = position.end.line < params.range.start.line or position.start.line > params.range.end.line
        if item.repair is None or apart:
            continue
        alone = Job(select([item.full_name]), _job(path).settings, 1, cached=False).checker()
        result = fix(text.encode("utf-8", "surrogatepass"), path, alone, lambda seen, wanted=item: _same(seen, wanted))  # type: ignore[misc]
        after = result.content.decode("utf-8", "surrogatepass")
        if after == text:
            continue
        yield types.CodeAction(
            title=f"flatout: {item.advice}" + ("" if item.repair.safe else f" ({item.equivalence})"),
            kind=types.CodeActionKind.QuickFix,
            diagnostics=[_diagnostic(server, uri, item)],
            is_preferred=item.repair.safe,
            edit=types.WorkspaceEdit(changes={uri: [_edit(server, uri, text, after)]}),
        )


def _same(seen: Diagnostic, wanted: Diagnostic) -> bool:
    return (seen.line, seen.column) == (wanted.line, wanted.column)


def _edit(server: LanguageServer, uri: str, before: str, after: str) -> types.TextEdit:
    """Only the lines that differ, so that the cursor stays where it is."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[len(old) - 1 - end] == new[len(new) - 1 - end]:
        end += 1
    changed = types.Range(types.Position(start, 0), types.Position(len(old) - end, 0))
    return types.TextEdit(changed, "".join(new[start : len(new) - end]))


def _hover(server: LanguageServer, params: types.HoverParams) -> types.Hover | None:
    """The page of the cause that is reported here."""
    uri, line = params.text_document.uri, params.position.line + 1
    for item in _diagnostics(server, uri):
        if item.line <= line <= item.end_line:
            cause = find(item.cause)
            page = f"# {cause.name}\n\n{cause.title}.\n\n{cause.page}"
            return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, page))
    return None
