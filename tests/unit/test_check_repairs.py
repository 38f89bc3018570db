"""Repairs: `x.in.py` becomes `x.out.py` to the letter, which is a fixed point and parses; each kind has such a pair.

tests/integration/test_check_pairs.py runs both and compares what they print.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from flatout.check.checker import Checker
from flatout.check.selection import select
from flatout.check.text_repair import fix
from flatout.source.analysis.patterns import Diagnostic
from flatout.source.repairs import CHANGES

PROGRAM = "/nowhere/program.py"
"""Of no project: the repository around this test pins a TensorFlow of its own."""
FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "check"
PAIRS = sorted(str(path.relative_to(FIXTURES)).removesuffix(".in.py") for path in FIXTURES.glob("*/*.in.py"))


def everything(item: Diagnostic) -> bool:
    return True


def safe(item: Diagnostic) -> bool:
    return item.repair is not None and item.repair.safe


@pytest.mark.parametrize("pair", PAIRS)
def test_the_repair_is_as_expected_and_a_fixed_point(pair: str) -> None:
    checker = Checker(select([pair]))
    before = (FIXTURES / f"{pair}.in.py").read_bytes()
    wanted = (FIXTURES / f"{pair}.out.py").read_text()
    result = fix(before, PROGRAM, checker, everything)
    assert result.content.decode() == wanted
    assert result.applied
    ast.parse(wanted)
    again = fix(result.content, PROGRAM, checker, everything)
    assert again.content == result.content
    assert not again.applied


def test_every_kind_of_repair_and_every_pattern_with_one_has_a_pair() -> None:
    kinds, patterns = set(), set()
    for path in FIXTURES.glob("*/*.py"):
        for item in Checker(select(["all"])).check(path.read_text(), PROGRAM).diagnostics:
            if item.repair is not None:
                kinds.add(item.repair.kind)
                patterns.add(item.full_name)
    assert set(CHANGES) <= kinds
    assert patterns <= set(PAIRS)


def test_unsafe_repairs_are_left_alone_unless_asked_for() -> None:
    source = b"import tensorflow as tf\nmodel.compile(run_eagerly=True)\noptions.autotune.enabled = False\n"
    result = fix(source, PROGRAM, Checker(select()), safe)
    assert result.content == b"import tensorflow as tf\nmodel.compile(run_eagerly=True)\n"


def test_line_ends_encodings_and_marks_stay() -> None:
    text = "# café\r\nimport tensorflow as tf\r\nmodel.compile('ü', run_eagerly=True)  # é\r\n"
    wanted = "# café\r\nimport tensorflow as tf\r\nmodel.compile('ü')  # é\r\n"
    checker = Checker(select())
    for encoding, head in (("utf-8", ""), ("latin-1", "# -*- coding: latin-1 -*-\r\n"), ("utf-8-sig", "")):
        result = fix((head + text).encode(encoding), PROGRAM, checker, everything)
        assert result.content == (head + wanted).encode(encoding)


def test_a_broken_file_is_left_as_it_is() -> None:
    for content in (b"import tensorflow as tf\nmodel.compile(run_eagerly=True\n", b"\xff\xfe\x00tensorflow", b""):
        assert fix(content, PROGRAM, Checker(select()), everything).content == content


def test_a_function_that_another_file_traces_is_not_decorated() -> None:
    source = (FIXTURES / "eager-step" / "tape-outside-function.in.py").read_bytes()
    result = fix(source, PROGRAM, Checker(select(["eager-step"])), everything, {"train_step"})
    assert b"def train_step(rows, targets)" in result.content
    assert b"@tf.function\ndef train_step(" not in result.content


def test_a_notebook_is_repaired_cell_by_cell() -> None:
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": ["# Title"]},
        {
            "cell_type": "code",
            "metadata": {},
            "outputs": [],
            "source": ["%matplotlib inline\n", "import tensorflow as tf"],
        },
        {"cell_type": "code", "metadata": {}, "outputs": [], "source": "!ls\nmodel.compile('sgd', run_eagerly=True)"},
        {"cell_type": "code", "metadata": {}, "outputs": [], "source": "%%bash\nls run_eagerly"},
    ]
    before = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4}, indent=1).encode()
    result = fix(before, "book.ipynb", Checker(select()), everything)
    after = json.loads(result.content)["cells"]
    assert after[2]["source"] == "!ls\nmodel.compile('sgd')"
    assert [after[0], after[1], after[3]] == [cells[0], cells[1], cells[3]]


def test_arguments_by_place_are_not_left_in_the_wrong_place() -> None:
    source = b"from tensorflow import keras\nmodel = keras.Model()\nmodel.fit_generator(batches, 100, epochs=3)\n"
    assert fix(source, PROGRAM, Checker(select()), everything).content == source


def test_no_import_is_added_for_a_repair() -> None:
    source = b"import tensorflow.compat.v1 as tf\nd = tf.data.Dataset.range(3).map(str, num_parallel_calls=1)\n"
    assert fix(source, PROGRAM, Checker(select(["autotune-off"])), everything).content == source


def test_what_is_not_repaired_in_a_notebook_stays_to_the_byte() -> None:
    cells = [{"cell_type": "code", "source": ["import tensorflow as tf\n", "'caf\u00e9'\n", ""]}]
    cells += [{"cell_type": "code", "source": ["model.run_eagerly = True\n", "x = 1\n", ""]}]
    for ascii_only in (True, False):
        before = json.dumps({"cells": cells}, indent=1, ensure_ascii=ascii_only).encode()
        after = fix(before, "book.ipynb", Checker(select()), everything).content
        assert after == before.replace(b'    "model.run_eagerly = True\\n",\n', b"")


HOISTED = """import numpy as np
import tensorflow as tf
{before}
buf = {made}
{between}
for batch in dataset:
    step(batch, tf.constant(buf))
    {inside}
"""
SAFE_ARRAYS = {
    "zeros": {},
    "read": {"between": "print(buf.shape, buf.mean(), len(buf), f'{buf[0]}', np.mean(buf), buf * 2)"},
    "filled-before": {"between": "buf[:] = 3"},
    "chain": {"made": "np.load('x.npy').astype(np.float32).reshape(3, 3)"},
    "read-by-function": {"before": "def show():\n    print(buf.sum())", "inside": "show()"},
}
ESCAPED_ARRAYS = {
    "view": {"between": "row = buf[0]", "inside": "row[0] += 1"},
    "transposed": {"between": "other = buf.T", "inside": "other[0] += 1"},
    "object": {"between": "env = Environment(buf)", "inside": "env.step()"},
    "attribute": {"between": "env.state = buf", "inside": "env.step()"},
    "list": {"between": "pool = [buf]", "inside": "pool[0][0] = 1"},
    "closure": {"before": "def work():\n    buf[0] += 1", "inside": "work()"},
    "thread": {"between": "threading.Thread(target=fill, args=(buf,)).start()"},
    "out": {"between": "add = lambda: np.add(buf, 1, out=buf)", "inside": "add()"},
    "iterated": {"between": "rows = iter(buf)", "inside": "next(rows)[0] = 1"},
    "shares": {"before": "other = np.zeros(9)", "made": "np.asarray(other)", "inside": "other[0] += 1"},
    "of-file": {"made": "np.load('x.npy', mmap_mode='r+')"},
    "reshaped": {"before": "other = np.zeros(9)", "made": "np.reshape(other, (3, 3))", "inside": "other[0] += 1"},
    "reflection": {"between": "globals()['buf'][0] = 1"},
}


@pytest.mark.parametrize("case", [*SAFE_ARRAYS, *ESCAPED_ARRAYS])
def test_a_conversion_is_hoisted_unasked_where_the_array_is_reached_by_nothing_else(case: str) -> None:
    parts = {"before": "", "made": "np.zeros(9)", "between": "", "inside": "pass"}
    source = HOISTED.format(**parts | (SAFE_ARRAYS | ESCAPED_ARRAYS)[case])
    checker = Checker(select(["tensor-reconversion"]))
    found = checker.check(source, PROGRAM).diagnostics
    assert [item.full_name for item in found] == ["tensor-reconversion/same-array-each-turn"]
    assert safe(found[0]) == (case in SAFE_ARRAYS)
    result = fix(source.encode(), PROGRAM, checker, safe)
    assert bool(result.applied) == (case in SAFE_ARRAYS)


def test_outputs_and_other_cells_of_a_notebook_stay_to_the_byte() -> None:
    """Escapes, floats and spaces that json would write in another way."""
    before = (
        '{"metadata" : {"a": 1.0e5, "b": "\\u003cdiv\\u003e"},\n "cells": [\n'
        '  {"cell_type":"code", "outputs":[{"data": "\\u00e9 \\/ \\ud83d\\ude00", "x": 0.10}],\n'
        '   "source": ["import tensorflow as tf\\n",\n    "é = \\u0027x\\u0027"]},\n'
        '  {"cell_type": "code", "source": [\n      "model.compile(\\u0027sgd\\u0027, run_eagerly=True)\\n",\n'
        '      "y = 2"\n   ], "execution_count":null }\n ]\n}\n'
    ).encode()
    after = fix(before, "book.ipynb", Checker(select()), everything).content
    kept = before.partition(b'"model.compile')[0]
    assert after.startswith(kept)
    assert after.endswith(b'"y = 2"\n   ], "execution_count":null }\n ]\n}\n')
    assert json.loads(after)["cells"][1]["source"] == ["model.compile('sgd')\n", "y = 2"]


def test_a_question_in_a_notebook_is_read() -> None:
    lines = ["import tensorflow as tf\n", "tf.function?\n", "model.compile(run_eagerly=True)  # why?\n"]
    book = json.dumps({"cells": [{"cell_type": "code", "source": lines}]}).encode()
    after = json.loads(fix(book, "book.ipynb", Checker(select()), everything).content)
    assert after["cells"][0]["source"] == [*lines[:2], "model.compile()  # why?\n"]


@pytest.mark.parametrize(
    "code",
    [
        "ds = tf.data.Dataset.range(9)\nfor epoch in range(3):\n    ds.shuffle(9)\n",
        "ds = tf.data.Dataset.range(9)\ndef show():\n    ds.batch(3)\n    print(list(ds))\n",
        "ds = tf.data.Dataset.range(9)\nds.repeat()\nprint(list(ds))\n",
        "ds = tf.data.Dataset.range(9)\nds.repeat(count=-1)\nprint(list(ds))\n",
    ],
)
def test_a_stage_is_not_assigned_where_the_name_would_mean_something_else_or_nothing_ends_it(code: str) -> None:
    source = f"import tensorflow as tf\n{code}".encode()
    checker = Checker(select(["discarded-stage"]))
    assert checker.check(source.decode(), PROGRAM).diagnostics
    assert fix(source, PROGRAM, checker, everything).content == source


def test_a_lost_repeat_that_ends_is_assigned() -> None:
    source = "import tensorflow as tf\nds = tf.data.Dataset.range(9)\nds.repeat(2)\nprint(list(ds))\n"
    checker = Checker(select(["discarded-stage"]))
    assert b"ds = ds.repeat(2)" in fix(source.encode(), PROGRAM, checker, everything).content


@pytest.mark.parametrize(
    ("body", "repaired"),
    [
        ("tf.reshape(x, (n, -1))", True),
        ("x if n % 100 == 0 else -x", True),
        ("x * n", False),
        ("x * [1.0, 2.0][n]", False),
        ('tf.identity(x, name=f"x{n}")', False),
    ],
)
def test_a_number_becomes_a_tensor_only_where_a_tensor_of_integers_will_do(body: str, repaired: bool) -> None:
    source = (
        f"import tensorflow as tf\n@tf.function\ndef step(x, n):\n    return {body}\n"
        "for i in range(1000):\n    step(data, i)\n"
    )
    found = Checker(select(["retracing"])).check(source, PROGRAM).diagnostics
    assert [item.repair is not None for item in found] == [repaired]


@pytest.mark.parametrize(
    ("made", "cured"),
    [
        (".map(aug)", False),
        (".shuffle(9)", False),
        (".repeat(2)", False),
        ("\nds.shuffle(9)", False),
        (".map(same)", True),
        ("", True),
    ],
)
def test_a_lost_cache_is_no_misplaced_one_and_its_cure_makes_none(made: str, cured: bool) -> None:
    source = (
        "import tensorflow as tf\ndef aug(x):\n    return tf.image.random_flip_left_right(x)\n"
        f"def same(x):\n    return x\nds = tf.data.Dataset.range(9){made}\nds.cache()\nmodel.fit(ds)\n"
    )
    checker = Checker(select(["misplaced-cache", "discarded-stage"]))
    found = checker.check(source, PROGRAM).diagnostics
    assert {item.cause for item in found} == {"discarded-stage"}
    assert (found[-1].repair is not None) == cured
    after = fix(source.encode(), PROGRAM, checker, everything).content.decode()
    assert not [item for item in checker.check(after, PROGRAM).diagnostics if item.cause == "misplaced-cache"]
    assert ("ds = ds.cache()" in after) == cured


@pytest.mark.parametrize(
    ("imported", "written", "renamed"),
    [
        ("import tensorflow as tf", "tf.keras.mixed_precision.experimental", True),
        ("from tensorflow import keras", "keras.mixed_precision.experimental", True),
        ("from tensorflow.keras import mixed_precision", "mixed_precision.experimental", True),
        ("from tensorflow.keras.mixed_precision import experimental as mp", "mp", False),
        ("import tensorflow.keras.mixed_precision.experimental as mp", "mp", False),
        ("import tensorflow as tf\nmp = tf.keras.mixed_precision.experimental", "mp", False),
    ],
)
def test_a_call_is_renamed_only_where_its_import_does_not_fail_by_itself(
    imported: str, written: str, renamed: bool
) -> None:
    source = f'import tensorflow as tf\n{imported}\n{written}.set_policy("mixed_float16")\n'
    result = fix(source.encode(), PROGRAM, Checker(select(["gone-api"])), everything).content.decode()
    assert (result != source) == renamed
    left = Checker(select(["gone-api"])).check(result, PROGRAM).diagnostics
    assert bool(left) != renamed


def test_a_form_feed_in_front_of_code_moves_no_edit() -> None:
    source = (
        b"import tensorflow as tf\nmodel = tf.keras.Sequential()\n\x0cmodel.run_eagerly = True\n"
        b"\x0cmodel.compile(run_eagerly=True, loss='a')\nfor i in range(10000):\n\x0c    model.predict(x, verbose=0)\n"
    )
    wanted = (
        b"import tensorflow as tf\nmodel = tf.keras.Sequential()\n"
        b"\x0cmodel.compile(loss='a')\nfor i in range(10000):\n\x0c    model.predict_on_batch(x)\n"
    )
    checker = Checker(select(["run-eagerly", "predict-in-loop"]))
    assert fix(source, PROGRAM, checker, everything).content == wanted


def test_each_unsafe_repair_says_what_it_assumes() -> None:
    silent = set()
    for path in FIXTURES.glob("*/*.py"):
        for item in Checker(select(["all"])).check(path.read_text(), PROGRAM).diagnostics:
            if item.repair is not None and not item.repair.safe and not item.repair.assumes:
                silent.add(item.full_name)
    assert not silent
