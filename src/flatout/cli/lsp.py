"""`flatout lsp`: a language server, so that editors show the findings of `check` and offer its repairs."""

from __future__ import annotations

import typer


def register(app: typer.Typer) -> None:
    app.command("lsp")(lsp)


def lsp(
    port: int = typer.Option(
        None, "--port", min=1, max=65535, help="Listen on localhost; standard streams by default."
    ),
) -> None:
    """Speak the Language Server Protocol with an editor, over standard input and output."""
    from flatout.model.errors import ToolMissing

    try:
        from flatout.check.language_server import make_server
    except ModuleNotFoundError as error:
        if error.name not in ("pygls", "lsprotocol"):
            raise
        raise ToolMissing('The language server needs pygls. Install it: pip install "flatout[lsp]".') from None
    server = make_server()
    if port is None:
        server.start_io()
    else:
        server.start_tcp("127.0.0.1", port)
