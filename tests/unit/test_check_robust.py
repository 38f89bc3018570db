"""Files that are broken, odd, huge, deep or unreadable give one clear line each and never end the check."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from flatout.check.checker import VERSION, Checker
from flatout.check.driver import Job, check, check_content, check_text
from flatout.check.selection import select
from flatout.check.settings import Settings, load, matches_path
from flatout.model.errors import FlatoutError, UnknownCause

BAD = "import tensorflow as tf\nmodel.compile(run_eagerly=True)\n"


def job(root: Path, **changes: object) -> Job:
    return Job(select(), Settings(root=root, **changes), processes=1, cache_root=root)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"import tensorflow\nmodel.compile(run_eagerly=True\n", "not valid Python"),
        (b"import tensorflow\nprint 'predict'\n", "not valid Python"),
        (b"import tensorflow as tf\nfor i in range(3:\n", "line 2: not valid Python"),  # no word that a pattern wants
        (b"def f(:\n", "line 1: not valid Python"),  # not of TensorFlow at all
        (b"import tensorflow\nmodel.predict(\x00)\n", "not valid Python"),
        (b"# -*- coding: nonsense -*-\nimport tensorflow\nmodel.predict()", "not readable as text"),
        (b"import tensorflow\nmodel.predict('\xff')\n", "not readable as text"),
        (b"import tensorflow\nx = " + b"(" * 5000 + b"predict" + b")" * 5000, ""),
    ],
)
def test_a_broken_file_gives_one_line(content: bytes, says: str) -> None:
    outcome = check_content(content, "a.py", Checker(select()))
    assert says in outcome.problem
    assert outcome.problem
    assert "\n" not in outcome.problem


def test_a_thousand_elifs_and_long_sums_are_read() -> None:
    elifs = "if x == 0:\n  pass\n" + "".join(f"elif x == {n}:\n  y = {n}\n" for n in range(800))
    total = "z = " + " + ".join(["1"] * 800) + "\n"
    outcome = Checker(select()).check(BAD + elifs + total, "a.py")
    assert not outcome.problem
    assert [item.cause for item in outcome.diagnostics] == ["run-eagerly"]


def test_fifty_thousand_lines_are_read() -> None:
    text = BAD + "def f(x):\n    return tf.reduce_sum(x)\n" * 25_000
    outcome = Checker(select()).check(text, "a.py")
    assert len(outcome.diagnostics) == 1
    assert outcome.lines > 50_000


def test_other_encodings_are_read() -> None:
    checker = Checker(select())
    for encoding, head in (("latin-1", "# coding: latin-1\n"), ("utf-8-sig", ""), ("utf-16", "")):
        outcome = check_content((head + "# é\n" + BAD).encode(encoding), "a.py", checker)
        assert bool(outcome.diagnostics) != bool(outcome.problem)
        assert bool(outcome.diagnostics) == (encoding != "utf-16")


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", b"[1]", b'{"cells": 3}', b"not json", b'{"cells": [1, {"cell_type": "code"}, null]}', b"\xff"],
)
def test_invalid_notebooks(content: bytes) -> None:
    outcome = check_content(content, "a.ipynb", Checker(select()))
    assert not outcome.diagnostics
    assert "\n" not in outcome.problem


def test_a_notebook_names_cell_and_line_and_survives_a_broken_cell() -> None:
    cells = [
        {"cell_type": "code", "source": ["%load_ext x\n", "import tensorflow as tf\n", "files = !ls\n"]},
        {"cell_type": "markdown", "source": "text"},
        {"cell_type": "code", "source": "this is ( broken"},
        {"cell_type": "code", "source": "x = 1\nmodel.compile(run_eagerly=True)"},
    ]
    outcome = check_content(json.dumps({"cells": cells}).encode(), "a.ipynb", Checker(select()))
    assert [(item.cell, item.line, item.cause) for item in outcome.diagnostics] == [(4, 2, "run-eagerly")]
    assert outcome.problem == "not valid Python in cell 3"


def test_links_in_a_loop_unreadable_folders_and_odd_names(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text(BAD)
    (tmp_path / "src" / "again").symlink_to(tmp_path)
    (tmp_path / "src" / "gone.py").symlink_to(tmp_path / "nowhere")
    (tmp_path / "src" / "folder.py").mkdir()
    os.mkfifo(tmp_path / "src" / "pipe.py")
    odd = os.fsencode(tmp_path / "src") + b"/\xff.py"
    Path(os.fsdecode(odd)).write_text(BAD)
    report = check([str(tmp_path)], job(tmp_path))
    assert report.count == 2
    assert sorted(Path(problem.path).name for problem in report.problems) == ["gone.py", "pipe.py"]


def test_a_notebook_of_three_thousand_cells() -> None:
    cells = [{"cell_type": "code", "source": f"x{number} = tf.constant({number})\n"} for number in range(2999)]
    cells.append({"cell_type": "code", "source": BAD})
    outcome = check_content(json.dumps({"cells": cells}).encode(), "a.ipynb", Checker(select()))
    assert not outcome.problem
    assert [(item.cell, item.line) for item in outcome.diagnostics] == [(3000, 2)]


def test_files_of_a_hundred_megabytes_are_left_out_with_one_line(tmp_path: Path) -> None:
    for name, size in (("data.py", 100 * 2**20), ("book.ipynb", 300 * 2**20)):
        with (tmp_path / name).open("wb") as stream:
            stream.truncate(size)  # takes no room on the disk
    (tmp_path / "code.ipynb").write_text(json.dumps({"cells": [{"cell_type": "code", "source": "#" * 9 * 2**20}]}))
    (tmp_path / "a.py").write_text(BAD)
    report = check([str(tmp_path)], job(tmp_path))
    assert report.count == 1
    assert sorted((Path(problem.path).name, problem.text) for problem in report.problems) == [
        ("book.ipynb", "is left out: it has 300 MiB, which no source has"),
        ("code.ipynb", "is left out: its cells have 9 MiB of source"),
        ("data.py", "is left out: it has 100 MiB, which no source has"),
    ]


_BOMBS = {
    "parentheses": "x = " + "(" * 100_000 + "model.predict(1)" + ")" * 100_000,
    "signs": "x = " + "-" * 100_000 + "model.predict(1)",
    "calls": "x = model" + ".predict(1)" * 50_000,
    "lambdas": "x = " + "lambda: " * 3000 + "model.predict(1)",
    "sums": "x = 1" + " + model.predict(1)" * 30_000,
    "stages": "ds = tf.data.Dataset.range(3)" + ".map(f)" * 5000 + ".batch(2)",
    "blocks": "".join(" " * depth + "if x:\n" for depth in range(120)) + " " * 120 + "model.predict(1)",
    "functions": "".join(f"{' ' * depth}def f(x):\n" for depth in range(90)) + " " * 90 + "model.predict(1)",
}


@pytest.mark.parametrize("text", _BOMBS.values(), ids=list(_BOMBS))
def test_code_that_is_nested_too_deeply_gives_one_line_at_most(text: str) -> None:
    outcome = check_content(f"import tensorflow as tf\n{text}\n".encode(), "a.py", Checker(select(["all"])))
    assert "\n" not in outcome.problem
    assert "failed" not in outcome.problem  # no detector broke


def test_a_file_that_takes_too_long_is_checked_no_further() -> None:
    text = "import tensorflow as tf\n" + "for a in ds:\n    model.predict(a)\n" * 20
    for patience, findings, says in (
        (0.0, 0, "line 3: is checked no further: the file takes too long"),
        (60.0, 20, ""),
    ):
        outcome = Checker(select(["all"]), patience=patience).check(text, "a.py")
        assert (len(outcome.diagnostics), outcome.problem) == (findings, says)


def test_functions_and_datasets_that_go_round_in_circles() -> None:
    circle = "".join(f"def g{n}(x):\n    return g{(n + 1) % 500}(x)\n" for n in range(500))
    chain = "".join(f"d{n + 1} = d{n}.map(g0)\n" for n in range(500)) + "d0 = d500.batch(2)\n"
    text = (
        f"import tensorflow as tf\n{circle}@tf.function\ndef h(x):\n    return g0(x)\n{chain}for a in d0:\n    h(a)\n"
    )
    outcome = check_content(text.encode(), "a.py", Checker(select(["all"])))
    assert not outcome.problem


def test_results_come_from_the_cache_until_the_content_changes(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text(BAD)
    (tmp_path / "b.py").write_text("x = 1\n")
    first = check([str(tmp_path)], job(tmp_path))
    second = check([str(tmp_path)], job(tmp_path))
    assert (first.from_cache, second.from_cache) == (0, 2)
    assert list(first.all()) == list(second.all())
    file.write_text(BAD + "model.run_eagerly = True\n")
    third = check([str(tmp_path)], job(tmp_path))
    assert (third.from_cache, third.count) == (1, 2)
    (tmp_path / ".flatout" / "check" / "cache.json").write_text("{broken")
    assert check([str(tmp_path)], job(tmp_path)).count == 2
    assert check([str(tmp_path)], job(tmp_path, tf=(2, 5))).from_cache == 0


def test_many_processes_find_the_same_as_one(tmp_path: Path) -> None:
    for number in range(130):
        (tmp_path / f"a{number}.py").write_text(BAD if number % 10 == 0 else "x = 1\n")
    one = check([str(tmp_path)], Job(select(), Settings(root=tmp_path), 1, cached=False))
    two = check([str(tmp_path)], Job(select(), Settings(root=tmp_path), 2, cached=False))
    assert list(one.all()) == list(two.all())
    assert one.count == 13


def test_settings_of_pyproject(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.flatout.check]\nignore = ["host-sync"]\nexclude = ["old"]\ntf = "2.12"\n'
        '[tool.flatout.check.per-file-ignores]\n"scripts/*" = ["run-eagerly"]\n'
    )
    (tmp_path / "scripts").mkdir()
    (tmp_path / "old").mkdir()
    for name in ("scripts/a.py", "old/b.py", "c.py"):
        (tmp_path / name).write_text(BAD)
    settings = load(tmp_path / "scripts")
    assert settings.tf == (2, 12)
    assert settings.ignore == ("host-sync",)
    report = check([str(tmp_path)], Job(select(), settings, 1, cached=False))
    assert [Path(path).name for path in report.files] == ["c.py"]


@pytest.mark.parametrize(
    "text",
    [
        "[tool.flatout.check]\nselekt = []",
        "[tool.flatout.check]\nselect = 'a'",
        "[tool",
        "[tool.flatout.check]\ntf='x'",
        "[tool.flatout.check]\ntf = 2.20",  # TOML reads a number, 2.2
        "[tool.flatout.check]\ntests = 'false'",
        "[tool.flatout.check]\nconfidence = 1",
        "[tool.flatout]\ncheck = 3",
        "[tool]\nflatout = 3",
        "tool = 3",
    ],
)
def test_wrong_settings_say_what_to_do(tmp_path: Path, text: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(FlatoutError):
        load(tmp_path)


def test_patterns_of_files(tmp_path: Path) -> None:
    assert matches_path(str(tmp_path / "a" / "b.py"), "a", tmp_path)
    assert matches_path(str(tmp_path / "a" / "b.py"), "*.py", tmp_path)
    assert matches_path(str(tmp_path / "a" / "b.py"), "a/*", tmp_path)
    assert not matches_path(str(tmp_path / "a" / "b.py"), "b/*", tmp_path)


@pytest.mark.parametrize(
    ("written", "floor"),
    [
        (
            '[project]\ndependencies = ["numpy>=1.2", "tensorflow-cpu[and-cuda] <3, >=2.4.1; python_version<\'4\'"]\n',
            (2, 4),
        ),
        ('[project]\ndependencies = ["tensorflow ~= 2.12.0"]\n', (2, 12)),
        ('[project]\ndependencies = ["tensorflow>=2.4"]\n[tool.flatout.check]\ntf = "2.9"\n', (2, 9)),
        ('[project]\ndependencies = ["tensorflow>=2.4"]\n[tool.flatout.check]\ntests = true\n', (2, 4)),
        ('[project]\ndependencies = ["tensorflow<2.4", "tensorflow-datasets>=2.0"]\n', VERSION),
        ('[project]\ndependencies = ["tensorflow-datasets<5,>=4.0"]\n', VERSION),
        (
            "[project]\ndependencies = [\"tensorflow>=2.16; python_version>'3.11'\", "
            "\"tensorflow>=2.9; python_version<'3.12'\"]\n",
            (2, 9),
        ),
        ("project = 3\n", VERSION),
    ],
)
def test_the_oldest_tensorflow_is_what_the_project_requires(
    tmp_path: Path, written: str, floor: tuple[int, int]
) -> None:
    (tmp_path / "pyproject.toml").write_text(written)
    assert load(tmp_path).tf == floor


def test_a_serial_map_is_a_fault_where_tensorflow_leaves_it_serial() -> None:
    text = "import tensorflow as tf\nds = tf.data.Dataset.range(9).map(lambda x: x + 1)\n"
    old = Checker(select(version=(2, 6)), (2, 6)).check(text, "a.py")
    assert [(item.full_name, item.line) for item in old.diagnostics] == [("autotune-off/no-parallel-calls", 2)]
    assert not Checker(select(version=(2, 7)), (2, 7)).check(text, "a.py").diagnostics


def test_an_unknown_name_gets_a_suggestion() -> None:
    with pytest.raises(UnknownCause, match="Did you mean"):
        select(["host-synk"])


def test_selection_by_group_cause_and_pattern() -> None:
    assert {item.cause for item in select(["retracing"])} == {"retracing"}
    assert [item.full_name for item in select(["late-batch/cheap-map"])] == ["late-batch/cheap-map"]
    assert len(select(["all"])) > len(select(["input"])) > 10
    assert len(select((), ["late-batch/cheap-map"])) == len(select()) + 1
    assert not [item for item in select((), (), ["late-batch"]) if item.cause == "late-batch"]


@pytest.mark.parametrize(
    ("comment", "left"),
    [
        ("# flatout: ignore", 0),
        ("# flatout: ignore[run-eagerly]", 0),
        ("# flatout: ignore[host-sync, run-eagerly/compile]", 0),
        ("# flatout: ignore[host-sync]", 1),
        ("# flatout ignore", 1),
        ("# flatout: ignored", 1),
        ("# flatout: ignore - to step through it", 0),
        ("# flatout: ignore-line", 1),
        ("# flatout: ignore: host-sync", 1),
        ("# flatout: ignore host-sync", 1),
        ("# flatout: ignore run-eagerly", 1),
        ("# flatout: ignore run-eagerly/compile", 1),
        ("# flatout: ignore retracing, host-sync", 1),
        ("# flatout: ignore all of it", 0),
        ("# flatout: ignore  # run-eagerly is wanted", 0),
        ("# flatout: ignore-file host-sync", 1),
        ("# flatout: ignore[host-sync", 1),
        ("# flatout: ignore(run-eagerly)", 1),
        ("# flatout: ignore-file[run-eagerly", 1),
    ],
)
def test_comments_silence(comment: str, left: int) -> None:
    behind = f"import tensorflow as tf\nmodel.compile(run_eagerly=True)  {comment}\n"
    above = f"import tensorflow as tf\n{comment}\nmodel.compile(run_eagerly=True)\n"
    text = f"import tensorflow as tf\nx = '{comment}'; model.compile(run_eagerly=True)\n"
    checker = Checker(select())
    assert len(checker.check(behind).diagnostics) == left
    assert len(checker.check(above).diagnostics) == left
    assert len(checker.check(text).diagnostics) == 1


@pytest.mark.parametrize(
    ("comment", "told"),
    [
        ("# flatout: ignore-line", "ignores nothing"),
        ("# flatout: ignore: host-sync", "ignores nothing"),
        ("# flatout: ignore host-sync", "ignores nothing"),
        ("# flatout: ignore host-snyc", "ignores nothing"),
        ("# flatout: ignore[run-eagerly", "ignores nothing"),
        ("# flatout: ignore[run-eagrly]", "'run-eagrly'"),
        ("# flatout: ignore-file[run-eagrly, host-sync]", "'run-eagrly'"),
        ("# flatout: ignore[run-eagerly, gpu-idle]", ""),
        ("# flatout: ignore because it is shown so", ""),
    ],
)
def test_a_comment_that_ignores_nothing_is_told(comment: str, told: str, tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text(f"import tensorflow as tf\nmodel.compile(run_eagerly=True)  {comment}\n")
    for _ in range(2):  # the second time from the cache
        report = check([str(file)], job(tmp_path))
        assert not report.problems
        assert len(report.remarks) == bool(told)
        assert all(text.startswith(f"{file}:2: ") and told in text for text in report.remarks)
    assert report.from_cache == 1


STEP = """\
def train_step(x):
    with tf.GradientTape() as tape:
        loss = loss_of(model(x))
    optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
"""


@pytest.mark.parametrize(
    ("call", "left"),
    [
        ("# flatout: ignore\nmodel.compile(\n    'adam',\n    run_eagerly=True,\n)\n", 0),
        ("model.compile(  # flatout: ignore\n    'adam',\n    run_eagerly=True,\n)\n", 0),
        ("model.compile(\n    'adam',\n    run_eagerly=True,\n)  # flatout: ignore\n", 0),
        ("model.compile(\n    # flatout: ignore\n    run_eagerly=True,\n)\n", 0),
        ("model.compile(\n    # flatout: ignore\n    'adam',\n    run_eagerly=True,\n)\n", 1),
        ("model.compile(\n    run_eagerly=True,\n    # flatout: ignore\n)\n", 1),
        ("x = 1\rmodel.compile(run_eagerly=True)  # flatout: ignore\r", 0),
        ("# flatout: ignore\nx = 1\nmodel.compile(run_eagerly=True)\n", 1),
        ("# flatout: ignore\nif x:\n    model.compile(run_eagerly=True)\n", 1),
        (f"@timed\n{STEP}", 1),
        (f"# flatout: ignore\n@timed\n{STEP}", 0),
        ("# flatout: ignore\n@timed\ndef f(x):\n    model.compile(run_eagerly=True)\n", 1),
    ],
)
def test_comments_silence_the_whole_of_a_statement(call: str, left: int) -> None:
    assert len(Checker(select()).check("import tensorflow as tf\n" + call).diagnostics) == left


def test_a_whole_file_is_silenced() -> None:
    assert not Checker(select()).check("# flatout: ignore-file\n" + BAD).diagnostics
    assert Checker(select()).check("# flatout: ignore-file[retracing]\n" + BAD).diagnostics


def test_a_text_that_is_no_file(tmp_path: Path) -> None:
    report = check_text(BAD.encode(), "buffer.py", job(tmp_path))
    assert [path for path, _ in report.all()] == ["buffer.py"]
