"""The layers of the package, held by import-linter: the contracts stand in pyproject.toml, without exceptions."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def lint_imports(directory: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as run; run()", "--no-cache"]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=120)


def test_no_import_points_upward_and_no_room_has_a_cycle() -> None:
    done = lint_imports(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 kept, 0 broken" in done.stdout


def test_there_are_no_exceptions() -> None:
    settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8").partition("[tool.importlinter]")[2]
    assert settings, "pyproject.toml has no contract"
    assert "ignore_imports" not in settings
    assert not re.search(r"exclude_type_checking_imports\s*=\s*true", settings)


def test_every_package_is_in_a_layer() -> None:
    settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8").partition("[tool.importlinter]")[2]
    layers = set(re.findall(r"[a-z_]+", settings.partition("layers = [")[2].partition("]")[0]))
    packages = {path.parent.name for path in (ROOT / "src" / "flatout").glob("*/__init__.py")}
    assert packages <= layers, "a room without a layer is not checked"


def test_a_planted_upward_import_is_found(tmp_path: Path) -> None:
    """A copy of the package's bottom with one import to the top."""
    for room in ("model", "cli"):
        (tmp_path / "house" / room).mkdir(parents=True)
        (tmp_path / "house" / room / "__init__.py").write_text("")
    (tmp_path / "house" / "__init__.py").write_text("")
    (tmp_path / "house" / "model" / "case.py").write_text("def late():\n    from house import cli\n    return cli\n")
    (tmp_path / "pyproject.toml").write_text(
        '[tool.importlinter]\nroot_package = "house"\n[[tool.importlinter.contracts]]\nname = "layers"\n'
        'type = "layers"\ncontainers = ["house"]\nlayers = ["cli", "model"]\n'
    )
    done = lint_imports(tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "house.model.case -> house.cli" in done.stdout
