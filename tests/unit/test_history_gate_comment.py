"""What the GitHub action posts on a pull request, with a real server in place of GitHub's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).resolve().parent.parent.parent / "scripts" / "post_comment.py"


class Server(ThreadingHTTPServer):
    """Keeps comments as GitHub's interface does."""

    comments: list[dict[str, Any]]
    seen: list[tuple[str, str, str]]
    refuse = 0


class Handler(BaseHTTPRequestHandler):
    server: Server

    def answer(self) -> None:
        content = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "{}")
        path = self.path.partition("?")[0]
        self.server.seen.append((self.command, path, self.headers["Authorization"]))
        result: Any = content
        if self.server.refuse:
            self.send_error(self.server.refuse)
            return
        if self.command == "GET":
            result = self.server.comments
        elif self.command == "POST":
            self.server.comments.append({"id": len(self.server.comments) + 1, **content})
        else:
            self.server.comments[int(path.rpartition("/")[2]) - 1].update(content)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(result).encode())

    do_GET = do_POST = do_PATCH = answer  # noqa: N815  # the names of the base class

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server(("127.0.0.1", 0), Handler)
    made.comments, made.seen = [{"id": 1, "body": "Nice."}], []
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield made
    made.shutdown()
    made.server_close()
    thread.join()


def post(server: Server, number: str, file: Path) -> subprocess.CompletedProcess[str]:
    variables = {
        **os.environ,
        "GITHUB_API_URL": f"http://127.0.0.1:{server.server_address[1]}",
        "GITHUB_REPOSITORY": "ada/rates",
        "GITHUB_TOKEN": "secret",
        "no_proxy": "127.0.0.1",
    }
    return subprocess.run(
        [sys.executable, SCRIPT, number, file], env=variables, capture_output=True, text=True, timeout=60
    )


def test_one_comment_is_made_and_renewed(server: Server, tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    for text in ("Slower.", "Faster."):
        summary.write_text(text, encoding="utf-8")
        done = post(server, "7", summary)
        assert done.returncode == 0, done.stderr
    assert [one["body"] for one in server.comments] == ["Nice.", "<!-- flatout -->\nFaster."]
    assert [one[:2] for one in server.seen if one[0] != "GET"] == [
        ("POST", "/repos/ada/rates/issues/7/comments"),
        ("PATCH", "/repos/ada/rates/issues/comments/2"),
    ]
    assert {one[2] for one in server.seen} == {"Bearer secret"}


def test_what_is_not_allowed_is_told(server: Server, tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("Slower.", encoding="utf-8")
    server.refuse = 403
    done = post(server, "7", summary)
    assert done.returncode == 1
    assert "GitHub answered 403" in done.stderr
    assert "pull-requests: write" in done.stderr
    assert "secret" not in done.stderr


@pytest.mark.parametrize(("number", "file"), [("", "summary.md"), ("7", "missing.md")])
def test_without_a_pull_request_or_a_summary_nothing_is_posted(
    server: Server, tmp_path: Path, number: str, file: str
) -> None:
    (tmp_path / "summary.md").write_text("Slower.", encoding="utf-8")
    assert post(server, number, tmp_path / file).returncode == 0
    assert server.seen == []
