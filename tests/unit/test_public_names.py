"""What users may rely on, and what it must not cost them."""

import subprocess
import sys
from pathlib import Path

import pytest

import flatout
from flatout.cli import COMMANDS, make_app, overview
from flatout.model.errors import CaseNotFound


def test_exported_members() -> None:
    assert flatout.__all__ == [
        *(
            "Observer",
            "__version__",
            "bisect",
            "check",
            "cluster",
            "compare_environments",
            "distill",
            "fold",
            "inspect",
            "load",
            "observe",
            "optimize",
            "prune",
            "quantize",
            "run",
            "tune",
        ),
        "tune_dataset",
    ]
    assert all(hasattr(flatout, name) for name in flatout.__all__)


def test_load_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CaseNotFound):
        flatout.load()


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (["--help"], "Usage: "),
        (["run", "--help"], "Run a program unchanged"),
        (["tune", "--help"], "Try cures on the unmodified program"),
        (["tune", "-h"], "Try cures on the unmodified program"),
        (["explain"], "host-sync"),
        (["explain", "xla"], "xla"),
        (["env", "--quick"], "python"),
    ],
    ids=["help", "run --help", "tune --help", "tune -h", "explain", "explain xla", "env"],
)
def test_no_command_of_the_parent_imports_tensorflow(arguments: list[str], printed: str, tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "sys.argv = ['flatout', *sys.argv[1:]]\n"
        "from flatout.cli import main\n"
        "code = 0\n"
        "try:\n    main()\nexcept SystemExit as left:\n    code = left.code\n"
        "sys.exit('imported' if 'tensorflow' in sys.modules or 'keras' in sys.modules else code)"
    )
    done = subprocess.run([sys.executable, "-c", script, *arguments], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert printed.lower() in done.stdout.lower()


def test_the_overview_lists_every_command_within_80_columns() -> None:
    registered = {command.name for command in make_app().registered_commands}
    registered |= {group.typer_instance.info.name for group in make_app().registered_groups if group.typer_instance}
    assert registered == set(COMMANDS)
    lines = overview().splitlines()
    assert max(map(len, lines)) <= 80
    listed = [line.split()[0] for line in lines[: lines.index("Options:")] if line.startswith("  ")]
    assert listed[-len(COMMANDS) :] == list(COMMANDS)
