"""`flatout serve`: the kept cases as a local web page."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    @app.command("serve")
    def _command(
        directory: Annotated[
            Path | None, typer.Argument(help="A directory with .flatout in it; the current one by default.")
        ] = None,
        port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any free port.")] = 8787,
        browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open it in the browser.")] = False,
    ) -> None:
        """Show the kept cases in the browser: list, reports, comparisons, trends, and what runs right now.

        It listens on 127.0.0.1 only, refuses requests from other sites, and changes no case. Ctrl-C stops it.
        """
        serve(directory or Path.cwd(), port, browser)


def serve(directory: Path, port: int, browser: bool) -> None:
    from flatout import store
    from flatout.model.errors import CaseNotFound
    from flatout.serve.server import ADDRESS, make

    home = directory if directory.name == store.HOME else directory / store.HOME
    if not home.is_dir():
        raise CaseNotFound(f"{home} does not exist. Run `flatout run PROGRAM` there first, or name another directory.")
    with make(home, port) as server:
        address = f"http://{ADDRESS}:{server.server_address[1]}/"
        sys.stderr.write(f"flatout: serving {home} at {address} (Ctrl-C stops it)\n")
        sys.stderr.flush()
        if browser:
            import webbrowser

            webbrowser.open(address)
        try:
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            sys.stderr.write("\n")
