"""The language server, driven as an editor would drive it: over its standard streams."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pygls")

TEXT = 'import tensorflow as tf\n\nmodel.compile("é", run_eagerly=True)\n'


class Editor:
    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "flatout", "lsp"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._number = 0

    def send(self, method: str, params: Any, ask: bool = False) -> Any:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
        if ask:
            self._number += 1
            message["id"] = self._number
        body = json.dumps(message).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
        self.process.stdin.flush()
        return self.read(lambda answer: answer.get("id") == self._number and "method" not in answer) if ask else None

    def read(self, wanted: Any) -> Any:
        assert self.process.stdout is not None
        while True:
            length = 0
            while line := self.process.stdout.readline().strip():
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            answer = json.loads(self.process.stdout.read(length))
            if wanted(answer):
                return answer

    def findings(self) -> list[Any]:
        answer = self.read(lambda item: item.get("method") == "textDocument/publishDiagnostics")
        return list(answer["params"]["diagnostics"])


@pytest.fixture
def editor(tmp_path: Path) -> Iterator[Editor]:
    made = Editor(tmp_path)
    made.send("initialize", {"processId": None, "rootUri": tmp_path.as_uri(), "capabilities": {}}, ask=True)
    made.send("initialized", {})
    yield made
    made.send("shutdown", None, ask=True)
    made.send("exit", None)
    assert made.process.wait(timeout=20) == 0


def test_findings_appear_change_and_can_be_repaired(editor: Editor, tmp_path: Path) -> None:
    uri = (tmp_path / "train.py").as_uri()
    document = {"uri": uri, "languageId": "python", "version": 1, "text": TEXT}
    editor.send("textDocument/didOpen", {"textDocument": document})
    (found,) = editor.findings()
    assert found["code"] == "run-eagerly"
    assert found["range"]["start"] == {"line": 2, "character": 31}
    asked = {"textDocument": {"uri": uri}, "range": found["range"], "context": {"diagnostics": [found]}}
    (action,) = editor.send("textDocument/codeAction", asked, ask=True)["result"]
    (edit,) = action["edit"]["changes"][uri]
    assert edit["newText"] == 'model.compile("é")\n'
    assert edit["range"] == {"start": {"line": 2, "character": 0}, "end": {"line": 3, "character": 0}}
    page = editor.send(
        "textDocument/hover", {"textDocument": {"uri": uri}, "position": {"line": 2, "character": 3}}, True
    )
    assert "Eager execution was switched on" in page["result"]["contents"]["value"]
    change = {"textDocument": {"uri": uri, "version": 2}, "contentChanges": [{"text": "import tensorflow as tf\n"}]}
    editor.send("textDocument/didChange", change)
    assert editor.findings() == []
