"""Cures as plugins: what each declares, the order of all, and the errors for parts that declare nothing usable."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from flatout import cures
from flatout.cures import _catalogue
from flatout.model.case import Case
from flatout.model.errors import UnknownLever
from flatout.process.fence.means import Fence

PAGE = ("## What it does", "## When it pays", "## What it changes", "## In the source")
INPUT = ("autotune", "vectorize-map", "parallel-map", "threadpool", "cache", "prefetch")

SPEC = 'from flatout.cures import Cure\nCURE = Cure(equivalence="exact", side="input")\n'


def python(code: str, plugins: Path | None = None) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, **({"FLATOUT_PLUGINS": str(plugins)} if plugins else {})}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=variables, timeout=60)


def plugin(directory: Path, name: str, **files: str) -> None:
    folder = directory / "cures" / name
    folder.mkdir(parents=True)
    for file, text in files.items():
        (folder / f"{'__init__' if file == 'spec' else file}.py").write_text(text)


@pytest.mark.parametrize("name", cures.catalogue())
def test_every_cure_has_a_whole_page(name: str) -> None:
    page = cures.catalogue()[name].page
    assert [line for line in page.splitlines() if line.startswith("## ")] == list(PAGE)


def test_names_in_specs_exist() -> None:
    for cure in cures.catalogue().values():
        assert {*cure.spec.after, *cure.spec.conflicts} <= set(cures.catalogue()), cure.name


def test_no_cure_conflicts_with_itself() -> None:
    for name, cure in cures.catalogue().items():
        assert name not in cure.spec.conflicts


# ── order ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_each_cure_comes_behind_those_that_it_names() -> None:
    order = cures.order()
    assert sorted(order) == sorted(cures.catalogue())
    for name, cure in cures.catalogue().items():
        for earlier in cure.spec.after:
            assert order.index(earlier) < order.index(name), f"{name} comes after {earlier}"


def test_the_cures_of_the_input_are_applied_in_one_order_everywhere() -> None:
    assert cures.in_order(sorted(INPUT)) == INPUT
    assert tuple(name for name in cures.rewrites() if name in INPUT) == INPUT


def test_levers_keep_their_settings_when_they_are_put_in_order() -> None:
    given = ("xla", "prefetch", "threadpool=16", "function=train.py:3", "function=train.py:9")
    ordered = ("threadpool=16", "prefetch", "function=train.py:3", "function=train.py:9", "xla")
    assert cures.in_order(given) == ordered


def test_a_child_installs_its_levers_in_that_order(tmp_path: Path) -> None:
    from flatout.trial import child_process

    launch = child_process.Launch(("python", "train.py"), levers=("prefetch", "parallel-map", "vectorize-map"))
    settings = child_process._settings(launch, tmp_path, child_process.ScoutSettings(), Fence())
    assert settings.levers == ("vectorize-map", "parallel-map", "prefetch")


# ── parts ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_edits_and_rewrites_have_the_types_that_are_declared_for_them() -> None:
    for cure in cures.catalogue().values():
        edit = cures.edit_of(cure)
        if edit is not None:
            hints = get_type_hints(edit)
            assert hints == {"source": str, "path": str, "case": Case, "value": str, "return": str | None}, cure.name
    for name, rewrite in cures.rewrites().items():
        hints = get_type_hints(rewrite)
        assert list(hints) == ["dataset", "context", "return"], name
        assert hints["dataset"] is Any


@pytest.mark.parametrize("name", cures.levers())
def test_a_lever_can_be_injected_or_written(name: str) -> None:
    cure = cures.catalogue()[name]
    assert cures.is_injected(cure) or cures.edit_of(cure) is not None


def test_a_rewrite_of_datasets_alone_is_no_lever() -> None:
    assert "tidy" in cures.catalogue()
    assert "tidy" not in cures.levers()
    with pytest.raises(UnknownLever, match="tidy rewrites datasets only: use `flatout data tune`"):
        cures.find("tidy")


def test_the_catalogue_imports_neither_libcst_nor_tensorflow_nor_a_part() -> None:
    code = (
        "import sys\nfrom flatout import cures\ncures.levers(), cures.order()\n"
        "parts = ('inject', 'edit', 'dataset')\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('libcst', 'tensorflow', 'keras', 'numpy')"
        " or (name.startswith('flatout.cures.') and name.split('.')[-1] in parts)])"
    )
    done = python(code)
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize("name", cures.levers())
def test_a_part_that_injects_has_a_hook(name: str) -> None:
    hooks = _catalogue.hooks_of(cures.catalogue()[name])
    assert hooks is None or any(hooks.of(package) for package in ("tensorflow", "keras", "tf_keras"))


def test_names_are_patched_only_through_the_table_of_private_names() -> None:
    for path in Path(cures.__file__).parent.rglob("*.py"):
        assert "setattr(" not in path.read_text(encoding="utf-8"), path


# ── plugins from outside ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_cure_from_outside_is_found_with_its_parts_and_its_place(tmp_path: Path) -> None:
    spec = (
        '"""A toy."""\nfrom flatout.cures import Cure\nCURE = Cure(equivalence="exact", side="input", after=("cache",))'
    )
    plugin(tmp_path, "toy", spec=spec, edit="def edit(source, path, case, value):\n    return source + value\n")
    code = (
        "from flatout import cures\n"
        "toy = cures.find('toy')\n"
        "print(cures.is_injected(toy), cures.edit_of(toy)('a', '', None, 'b'), cures.in_order(['toy', 'cache']))"
    )
    done = python(code, tmp_path)
    assert done.stdout.strip() == "False ab ('cache', 'toy')", done.stderr


@pytest.mark.parametrize(
    ("files", "call", "expected"),
    [
        ({"spec": "CURE = 3"}, "cures.catalogue()", "`CURE = Cure(…)` was expected"),
        ({"spec": SPEC, "edit": "x = 1"}, "cures.edit_of(cures.find('toy'))", "`def edit(source, path, case, value)`"),
        (
            {"spec": SPEC, "edit": "def edit(source): ..."},
            "cures.edit_of(cures.find('toy'))",
            "`def edit(source, path, case, value)`",
        ),
        ({"spec": SPEC, "dataset": "x = 1"}, "cures.rewrites()", "`def rewrite(dataset, context)`"),
        ({"spec": SPEC, "inject": "x = 1"}, "_catalogue.hooks_of(_catalogue.load('toy'))", "`HOOKS = Hooks(…)`"),
    ],
)
def test_a_part_that_declares_nothing_usable_is_an_error(
    files: dict[str, str], call: str, expected: str, tmp_path: Path
) -> None:
    plugin(tmp_path, "toy", **files)
    done = python(f"from flatout import cures\nfrom flatout.cures import _catalogue\n{call}", tmp_path)
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("flatout.model.errors.PluginInvalid"), done.stderr
    assert expected in last
    assert "toy" in last
