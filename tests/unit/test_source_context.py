"""What stands around a line of the user's source."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatout.source import context

SOURCE = """\
import tensorflow as tf

options = tf.data.Options()
options.autotune.enabled = False
options.autotune.enabled = (
    True
)
for epoch in range(3):
    for images, labels in dataset:
        for image, label in zip(images, labels):
            step(image, label)
    while waiting:
        check()


def prepare(rows, table):
    for i in range(10):
        total += rows[i, :]
    for name in ("a", "b"):
        table.use(name)
    for i in range(10):
        weights[i] = i


@tf.function
def train(self, batch):
    with tf.GradientTape() as tape, other():
        loss = model(batch)
    gradients = tape.gradient(
        loss,
        model.trainable_variables,
    )

    def inner(x):
        for row in tf.unstack(x):
            use(row)
        for layer in self:
            layer(batch)

    return inner(gradients)


class Trainer:
    async def run(self, stream):
        async for item in stream:
            await self.step(item)
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "program.py"
    path.write_text(SOURCE)
    return str(path)


def number(text: str) -> int:
    """The line of the first occurrence, so that the tests above read without counting."""
    return next(place for place, line in enumerate(SOURCE.splitlines(), 1) if text in line)


def test_all_loops_outer_ones_first(file: str) -> None:
    found = context.loops(file)
    assert [(loop.iterated, loop.variables, loop.in_function) for loop in found] == [
        ("range(3)", ("epoch",), None),
        ("dataset", ("images", "labels"), None),
        ("zip(images, labels)", ("image", "label"), None),
        ("", (), None),
        ("range(10)", ("i",), "prepare"),
        ("('a', 'b')", ("name",), "prepare"),
        ("range(10)", ("i",), "prepare"),
        ("tf.unstack(x)", ("row",), "inner"),
        ("self", ("layer",), "inner"),
        ("stream", ("item",), "run"),
    ]
    assert (found[0].line, found[0].end) == (number("for epoch"), number("check()"))


def test_loops_around_a_line(file: str) -> None:
    line = number("step(image, label)")
    around = context.enclosing_loops(file, line)
    assert [loop.iterated for loop in around] == ["zip(images, labels)", "dataset", "range(3)"]
    assert context.innermost_loop(file, line) == around[0]
    # A loop's own line is run by what is around it.
    assert context.innermost_loop(file, number("for images")) == around[2]
    assert context.innermost_loop(file, number("options =")) is None


@pytest.mark.parametrize(
    ("line", "definition"),
    [
        ("total += rows", "def prepare"),
        ("def prepare", "def prepare"),
        ("@tf.function", "def train"),
        ("loss = model", "def train"),
        ("use(row)", "def inner"),
        ("return inner", "def train"),
        ("await", "async def run"),
    ],
)
def test_the_function_around_a_line(line: str, definition: str, file: str) -> None:
    assert context.definition_line(file, number(line)) == number(definition)


def test_module_level_has_no_function(file: str) -> None:
    assert context.definition_line(file, number("step(image, label)")) is None


@pytest.mark.parametrize(
    ("line", "loop"),
    [
        ("step(image, label)", "for image, label"),
        ("total += rows", "for i in range"),
        ("use(row)", "for row"),
        ("self.step(item)", "async for"),
        ("table.use(name)", None),  # two names in the source are no samples
        ("weights[i] = i", None),  # nothing that came with the batch is indexed
        ("layer(batch)", None),  # the layers of a model are no samples either
        ("check()", None),
    ],
)
def test_loops_over_samples(line: str, loop: str | None, file: str) -> None:
    found = context.loop_over_samples(file, number(line))
    assert (found.line if found else None) == (number(loop) if loop else None)


def test_the_tape_before_a_line(file: str) -> None:
    tape = number("GradientTape")
    assert context.tape_line(file, number("loss = model")) == tape
    assert context.tape_line(file, number("gradients = tape")) == tape
    assert context.tape_line(file, tape) == tape
    assert context.tape_line(file, number("def prepare")) is None


def test_the_last_assignment_before_a_line(file: str) -> None:
    first, second = number("enabled = False"), number("enabled = (")
    assert context.assignment_line(file, "enabled", before=100) == second
    assert context.assignment_line(file, "enabled", before=second - 1) == first
    assert context.assignment_line(file, "enabled", before=first - 1) is None
    assert context.assignment_line(file, "disabled", before=100) is None


def test_a_place_carries_its_text(file: str) -> None:
    place = context.where(file, number("loss = model"), "train")
    assert place is not None
    assert (place.code, place.function) == ("loss = model(batch)", "train")
    assert str(place) == f"{file}:{number('loss = model')}"
    module = context.where(file, 1, "<module>")
    assert module is not None
    assert module.function is None
    beyond = context.where(file, 9999)
    assert beyond is not None
    assert beyond.code is None
    assert context.where(None, 3) is None


@pytest.mark.parametrize("content", ["def broken(:\n    for x in y:\n", "\x00", None])
def test_sources_that_cannot_be_read(content: str | None, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    if content is not None:
        path.write_text(content)
    file = str(path)
    assert context.loops(file) == ()
    assert context.innermost_loop(file, 1) is None
    assert context.loop_over_samples(file, 1) is None
    assert context.definition_line(file, 1) is None
    assert context.tape_line(file, 1) is None
    assert context.assignment_line(file, "x", before=1) is None


PULLS = """
import numpy as np
for features in dataset:
    loss = step(features)
    weights = [v.numpy() for v in model.variables]  # pull
    moved = np.abs(
        weights[0] - before[0]
    ).mean()
    before = weights
    scores.append(float(moved))
    state = simulator.advance(weights)
    other = np.zeros(3)
"""


def test_numpy_goes_on_with_what_was_pulled_but_other_code_does_not(tmp_path: Path) -> None:
    path = tmp_path / "pulls.py"
    path.write_text(PULLS)
    line = {text.strip(): number for number, text in enumerate(PULLS.splitlines(), start=1)}
    pull = next(number for text, number in line.items() if text.endswith("# pull"))
    found = context.numpy_work_on(str(path), frozenset({pull}))
    assert found == {line["moved = np.abs("] + offset for offset in range(4)}


def test_a_tape_in_another_function_is_not_the_lines(tmp_path: Path) -> None:
    file = tmp_path / "accumulate.py"
    file.write_text(
        "@tf.function\n"
        "def gradients(x):\n"
        "    with tf.GradientTape() as tape:\n"
        "        loss = model(x)\n"
        "    return tape.gradient(loss, model.trainable_variables)\n"
        "for x in data:\n"
        "    optimizer.apply_gradients(zip(gradients(x), model.trainable_variables))\n"
    )
    assert context.tape_line(str(file), 7) is None
    assert context.tape_line(str(file), 5) == 3


def test_a_cell_of_a_notebook_is_read_where_tracebacks_find_it() -> None:
    import linecache

    from flatout.source import context

    name = "/nowhere/ipykernel_1/12345.py"
    linecache.cache[name] = (10, None, ["x = 1\n", "y = 2\n"], name)
    try:
        assert context.lines(name) == ("x = 1", "y = 2")
        assert context.lines("no\0file") == ()
    finally:
        del linecache.cache[name]
        context.lines.cache_clear()


def test_a_file_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_bytes(b"\xef\xbb\xbffor x in data:\n    step(x)\n")
    assert [loop.line for loop in context.loops(str(file))] == [1]


def test_a_tape_before_the_loop_is_another_ones(tmp_path: Path) -> None:
    file = tmp_path / "two.py"
    file.write_text(
        "for a in data:\n    with tf.GradientTape() as tape:\n        one(a)\n"
        "for b in data:\n    two(b)\n"
        "with tf.GradientTape() as tape:\n    for c in data:\n        three(c)\n"
        "tape.gradient(loss, weights)\n"
    )
    assert [context.tape_line(str(file), line) for line in (3, 5, 8, 9)] == [2, None, 6, 6]


def test_lines_are_counted_as_python_counts_them(tmp_path: Path) -> None:
    """A form feed between sections, as older sources have it, and a separator in a string end no line."""
    program = tmp_path / "train.py"
    program.write_bytes("import a\r\n\x0c\r\nmark = '\u2028\x1c'\r\nfor batch in data:\r\n    step(batch)\r\n".encode())
    found = context.where(str(program), 5)
    assert found is not None
    assert found.code == "step(batch)"
    assert [loop.line for loop in context.loops(str(program))] == [4]
    assert len(context.lines(str(program))) == 5
