"""A real notebook in a real kernel, without a browser: `%%flatout` on a cell, and a case that shows itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from observed import environment

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

pytestmark = pytest.mark.slow

CELLS = (
    "%load_ext flatout\nimport tensorflow as tf",
    "weights = [tf.Variable(tf.ones((8, 8))) for _ in range(20)]\noptimizer = tf.keras.optimizers.SGD(0.01)",
    "def train_step(batch):\n    with tf.GradientTape() as tape:\n        out = batch\n"
    "        for one in weights:\n            out = tf.tanh(out @ one)\n        loss = tf.reduce_mean(out**2)\n"
    "    optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))\n    return loss",
    "%%flatout\nfor number in range(120):\n    loss = train_step(tf.ones((4, 8)))\nprint('trained', number)",
    "number, float(loss) > 0",
    "import flatout\nflatout.load()",
    "%%flatout --nothing\nx = 1",
    "%%flatout --no-trace\nraise KeyError('mine')",
)


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    place = tmp_path_factory.mktemp("notebook")
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in CELLS])
    client = nbclient.NotebookClient(book, timeout=400, allow_errors=True, resources={"metadata": {"path": str(place)}})
    client.execute(env=environment())
    assert (Path(place) / ".flatout" / "cases").is_dir()
    return list(book.cells)


def html_of(cell: Any) -> str:
    return "".join(
        "".join(one.get("data", {}).get("text/html", "")) for one in cell.outputs if one.output_type != "stream"
    )


def text_of(cell: Any) -> str:
    return "".join(one.text for one in cell.outputs if one.output_type == "stream")


def test_the_cell_runs_in_the_notebook_and_its_verdict_is_under_it(cells: list[Any]) -> None:
    observed = cells[3]
    assert "trained 119" in text_of(observed)
    assert "eager-step" in html_of(observed)
    assert "In [3] line 1" in html_of(observed), html_of(observed)
    assert "(119, True)" in cells[4].outputs[0].data["text/plain"], "names that the cell made are the notebook's"


def test_a_case_shows_itself(cells: list[Any]) -> None:
    assert "flatout-case" in html_of(cells[5])


def test_what_is_wrong_is_one_line_and_an_error_of_the_cell_is_its_own(cells: list[Any]) -> None:
    assert text_of(cells[6]).startswith("flatout: %%flatout does not take '--nothing'")
    told = [one for one in cells[7].outputs if one.output_type == "error"]
    assert [one.ename for one in told] == ["KeyError"]
