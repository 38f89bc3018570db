"""SARIF 2.1.0, which code hosts and editors read."""

from __future__ import annotations

import hashlib
from json import dumps
from typing import Any
from urllib.parse import quote

from flatout.causes import catalogue
from flatout.check.output import View
from flatout.model.version import __version__
from flatout.source.analysis.patterns import Diagnostic

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def render(view: View) -> str:
    names = sorted({item.cause for _, item in view.report.all()})
    run = {
        "tool": {
            "driver": {
                "name": "flatout",
                "version": __version__,
                "rules": [_rule(name) for name in names],
            }
        },
        "columnKind": "unicodeCodePoints",
        "results": [_result(view, path, item, names.index(item.cause)) for path, item in view.report.all()],
        "invocations": [
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": [
                    {
                        "level": "warning",
                        "message": {"text": problem.text},
                        "locations": [{"physicalLocation": {"artifactLocation": {"uri": _uri(view, problem.path)}}}],
                    }
                    for problem in view.report.problems
                ],
            }
        ],
    }
    return dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _rule(name: str) -> dict[str, Any]:
    cause = catalogue()[name]
    return {
        "id": name,
        "shortDescription": {"text": f"{cause.title}."},
        "help": {"text": cause.page, "markdown": cause.page},
        "properties": {"tags": ["performance", cause.spec.group]},
        "defaultConfiguration": {"level": "warning"},
    }


def _result(view: View, path: str, item: Diagnostic, rule: int) -> dict[str, Any]:
    location: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": {"uri": _uri(view, path)},
            "region": {
                "startLine": item.line,
                "startColumn": item.column,
                "endLine": item.end_line,
                "endColumn": max(item.end_column, 1),
                "snippet": {"text": item.code},
            },
        }
    }
    if item.function:
        location["logicalLocations"] = [{"name": item.function, "kind": "function"}]
    message = item.message if item.cell is None else f"Cell {item.cell}: {item.message}"
    return {
        "ruleId": item.cause,
        "ruleIndex": rule,
        "level": "warning",
        "message": {"text": f"{message} {item.advice}"},
        "locations": [location],
        "partialFingerprints": {"flatout/v1": _fingerprint(view, path, item)},
        "properties": {"pattern": item.full_name, "equivalence": item.equivalence},
    }


def _fingerprint(view: View, path: str, item: Diagnostic) -> str:
    """Stays while lines above come and go."""
    known = f"{view.relative(path)}|{item.full_name}|{item.function}|{item.code}"
    return hashlib.blake2b(known.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


def _uri(view: View, path: str) -> str:
    return quote(view.relative(path).encode("utf-8", "surrogateescape"))
