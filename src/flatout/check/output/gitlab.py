"""The Code Quality report of GitLab."""

from __future__ import annotations

import hashlib
from json import dumps

from flatout.check.output import View


def render(view: View) -> str:
    seen: dict[str, int] = {}
    rows = []
    for path, item in view.report.all():
        identity = f"{view.relative(path)}|{item.full_name}|{item.code}"
        seen[identity] = seen.get(identity, 0) + 1  # the same line twice needs two fingerprints
        mark = hashlib.blake2b(
            f"{identity}|{seen[identity]}".encode("utf-8", "surrogateescape"), digest_size=16
        ).hexdigest()
        rows.append(
            {
                "check_name": item.full_name,
                "description": f"{item.message} {item.advice}",
                "fingerprint": mark,
                "severity": "minor",
                "location": {"path": view.relative(path), "lines": {"begin": item.line, "end": item.end_line}},
            }
        )
    return dumps(rows, indent=2) + "\n"
