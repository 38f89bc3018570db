"""What users may rely on, and what it must not cost them."""

import subprocess
import sys

import pytest

import flatout
from flatout.model.errors import CaseNotFound


def test_exported_members():
    assert flatout.__all__ == [
        *(
            "Observer",
            "__version__",
            "cluster",
            "distill",
            "fold",
            "inspect",
            "load",
            "observe",
            "optimize",
            "prune",
            "quantize",
        ),
        "tune_dataset",
    ]
    assert all(hasattr(flatout, name) for name in flatout.__all__)


def test_load_says_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CaseNotFound):
        flatout.load()


@pytest.mark.parametrize(
    "arguments", [["--help"], ["run", "--help"], ["tune", "-h"], ["explain"], ["explain", "xla"], ["env", "--quick"]]
)
def test_no_command_of_the_parent_imports_tensorflow(arguments, tmp_path):
    script = (
        "import sys\n"
        "sys.argv = ['flatout', *sys.argv[1:]]\n"
        "from flatout.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "sys.exit('tensorflow' in sys.modules or 'keras' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script, *arguments], cwd=tmp_path, capture_output=True)
    assert done.returncode == 0, done.stderr
