"""What to write by hand at a slow start and in a slow callback, in the program's own names."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatout.causes._by_hand import every_few_epochs, in_a_process, keep
from flatout.model.case import RunPart, Where

LOOP = """rows = []
for line in open("data.csv"):
    cells = line.split(",")
    rows.append([float(cell) for cell in cells])
train(rows)
"""
FUNCTION = """def parse(line):
    cells = line.split(",")
    return [float(cell) for cell in cells]


def main():
    x, y = load("data.csv")
    rows = [parse(line) for line in open("more.csv")]


main()
"""
OBJECTS = """def build():
    total = sum(range(10**8))
    return keras.Model(total)


model = build()
"""
HOOK = """class Gallery(keras.callbacks.Callback):
    def on_epoch_end(self, number, logs=None):
        answers = self.model.predict(self.samples)
        draw(answers, size=4)
        self.show(answers)


def draw(answers, size):
    plot(answers)
"""


def line(directory: Path, text: str, *numbers: int) -> RunPart:
    """Where samples were, from the outermost line to the innermost."""
    path = directory / "train.py"
    path.write_text(text)
    places = [Where(str(path), number) for number in numbers]
    return RunPart("line", "", 3.0, where=places[-1], via=tuple(places[:-1]))


@pytest.mark.parametrize(
    ("text", "numbers", "names", "at"),
    [
        (LOOP, (4,), "rows", "train.py:4"),
        (LOOP, (3,), "rows", "train.py:3"),
        (FUNCTION, (11, 8, 2), "rows", "train.py:8"),
        (FUNCTION, (11, 7), "x and y", "train.py:7"),
        ("x, y = load('a')\n", (1,), "x and y", "train.py:1"),
    ],
)
def test_what_is_made_at_the_start_is_kept_under_its_name(tmp_path, text, numbers, names, at) -> None:
    said = keep(line(tmp_path, text, *numbers))
    assert said.startswith(f"Keep {names} ({at}) in a file: np.savez('{names.replace(' and ', '-')}.npz', ")
    assert f"{names.replace(' and ', ', ')} = kept['" in said


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        (OBJECTS, (6,)),
        ("train_ds = load('a')\n", (1,)),
        ("trainer = Trainer(options)\n", (1,)),
        ("wait()\n", (1,)),
        ("for line in lines:\n    row = parse(line)\n    use(row)\n", (2,)),
    ],
)
def test_objects_and_single_pieces_are_not_put_into_a_file(tmp_path, text, numbers) -> None:
    assert keep(line(tmp_path, text, *numbers)) == ""


def test_a_call_leaves_the_hook_where_it_needs_no_callback(tmp_path: Path) -> None:
    hook = line(tmp_path, HOOK, 2).where
    assert every_few_epochs(hook) == "if number % 10 == 9:"
    said = in_a_process(hook, line(tmp_path, HOOK, 4).where)
    assert said.startswith("train.py:4 becomes self.workers.submit(draw, answers, size=4), ")
    assert in_a_process(hook, line(tmp_path, HOOK, 3).where) == ""
    assert in_a_process(hook, line(tmp_path, HOOK, 5).where) == ""
    assert in_a_process(hook, None) == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("frame = pd.read_csv('data.csv', sep=';')\n", "frame.to_pickle('frame.pkl') once; where that file is there, "
         "frame = pd.read_pickle('frame.pkl') instead."),
        ("rows = pd.read_csv('data.csv').values\n", "np.savez('rows.npz', rows=rows)"),
        ("rows = pd.read_csv('data.csv', chunksize=100)\n", ""),
        ("frame = pd.concat([read(name) for name in names])\n", ""),
    ],
)  # fmt: skip
def test_a_frame_is_not_kept_as_an_array(tmp_path: Path, text: str, said: str) -> None:
    """Which would lose the names of its columns."""
    found = keep(line(tmp_path, text, 1))
    assert said in found
    assert bool(said) == bool(found)
