"""`flatout verify ARTEFACT`: repeat the check of an artefact that `optimize` made, on this machine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    @app.command("verify")
    def _command(
        artefact: Annotated[Path, typer.Argument(help="The directory that `flatout optimize` wrote.")],
        json: Annotated[
            str | None, typer.Option("--json", metavar="FILE", help="Write the findings as JSON (- is stdout).")
        ] = None,
        quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only what is wrong.")] = False,
    ) -> None:
        """Check an artefact here: its files, weights, precision and answers, and how fast it is on this machine."""
        from flatout.optimize.verification import Finding, verify
        from flatout.report.formatting import clean

        findings: list[Finding] = []
        people = sys.stderr if json == "-" else sys.stdout

        def say(finding: Finding) -> None:
            findings.append(finding)
            if not quiet or not finding.ok:
                mark = "ok    " if finding.ok else "WRONG "
                people.write(f"{mark} {finding.what:<9} {clean(finding.text)}\n")
                people.flush()

        passed = verify(artefact, say)
        if json is not None:
            from flatout.cli.compare import write_json

            write_json({"passed": passed, "findings": [vars(finding) for finding in findings]}, json)
        sys.exit(0 if passed else 1)
