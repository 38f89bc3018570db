"""Posts a file on a pull request, in one comment that is renewed. For the GitHub action; needs Python only.

python scripts/post_comment.py NUMBER FILE

GITHUB_API_URL and GITHUB_REPOSITORY are set by the runner, GITHUB_TOKEN by the action.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

MARK = "<!-- flatout -->"
"""How the comment is found again."""
LONGEST = 65_000
"""Characters that GitHub takes, less some."""
PAGES = 30
"""Of a hundred comments each."""


def ask(method: str, path: str, content: dict[str, str] | None = None) -> Any:
    request = urllib.request.Request(
        f"{os.environ['GITHUB_API_URL']}/repos/{os.environ['GITHUB_REPOSITORY']}/{path}",
        data=json.dumps(content).encode() if content is not None else None,
        method=method,
        headers={
            "Authorization": f"Bearer {os.environ['GITHUB_TOKEN']}",
            "Accept": "application/vnd.github+json",
            "Content-Type": "application/json",
        },
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def earlier(number: str) -> int | None:
    """The comment that this script has posted before."""
    for page in range(1, PAGES + 1):
        found = ask("GET", f"issues/{number}/comments?per_page=100&page={page}")
        for one in found:
            if str(one.get("body", "")).startswith(MARK):
                return int(one["id"])
        if len(found) < 100:
            break
    return None


def post(number: str, text: str) -> None:
    body = {"body": f"{MARK}\n{text}"[:LONGEST]}
    known = earlier(number)
    if known is None:
        ask("POST", f"issues/{number}/comments", body)
    else:
        ask("PATCH", f"issues/comments/{known}", body)


def main() -> int:
    number, file = sys.argv[1:]
    if not number.isdigit():
        print("There is no pull request to post on: this workflow runs for something else.", file=sys.stderr)
        return 0
    if not Path(file).is_file():
        print("There is no summary to post: the gate could not judge.", file=sys.stderr)
        return 0
    try:
        post(number, Path(file).read_text(encoding="utf-8"))
    except urllib.error.HTTPError as error:
        hint = " Give the job `permissions: { pull-requests: write }`." if error.code in (401, 403, 404) else ""
        print(f"The summary was not posted: GitHub answered {error.code} ({error.reason}).{hint}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"The summary was not posted: {error}.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
