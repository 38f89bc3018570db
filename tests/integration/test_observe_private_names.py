"""The table of private names against the installed TensorFlow: a release that moves one must fail here first."""

from __future__ import annotations

import json

import forked
import pytest
from observed import write

from flatout.observe.private_names import PRIVATE_NAMES

ASK = """
import importlib, json, sys
installed = {}
for package in ("tensorflow", "keras", "tf_keras"):
    try:
        installed[package] = importlib.import_module(package).__version__
    except ImportError:
        pass
from flatout.observe.private_names import PRIVATE_NAMES, Missing, resolve
missing = {}
for key, name in PRIVATE_NAMES.items():
    if name.package not in installed:
        continue
    try:
        found = resolve(key)[2]
        if not callable(found) and not isinstance(found, property):
            missing[key] = "is no function, no class and no property"
    except Missing as error:
        missing[key] = str(error)
print(json.dumps({"installed": installed, "missing": missing}))
"""


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """One process for all rows."""
    directory = tmp_path_factory.mktemp("names")
    code, said, errors = forked.run(write(directory, ASK), directory=directory)
    assert code == 0, errors
    return dict(json.loads(said.splitlines()[-1]))


@pytest.mark.slow
@pytest.mark.parametrize("key", PRIVATE_NAMES)
def test_a_private_name_is_there(key: str, answer: dict[str, dict[str, str]]) -> None:
    name = PRIVATE_NAMES[key]
    if name.package not in answer["installed"]:
        pytest.skip(f"{name.package} is not installed")
    assert key not in answer["missing"], f"lost: {name.view}. {answer['missing'][key]}"


def test_each_row_says_what_is_lost_and_where_it_was_tried() -> None:
    assert len(PRIVATE_NAMES) >= 50
    for key, name in PRIVATE_NAMES.items():
        assert name.view, key
        assert name.known, key
        assert name.package in ("tensorflow", "keras", "tf_keras"), key
        assert name.module.partition(".")[0] in (name.package, "libtensorflow_framework"), key
