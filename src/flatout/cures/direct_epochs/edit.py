"""`direct-epochs`: a function that trains on one batch for some epochs, called in place of `fit`."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from flatout.cures._keras_call_edits import Arguments, calls_at, defines, has_metric_of_own
from flatout.cures.direct_epochs import fits
from flatout.cures.direct_predict.edit import keep_only
from flatout.model.case import Case
from flatout.source.editing import case_facts, imports, statements, tf_functions
from flatout.source.editing.document import Document, free, read

_ORDER = ("x", "y", "batch_size", "epochs", "verbose", "callbacks", "validation_split", "validation_data", "shuffle")
_KEPT = ("x", "y", "epochs")
_DROPPED = ("batch_size", "verbose", "shuffle")
_LEAVES = (
    *("def train_step(", "def fit(", "def reset_metrics(", "def reset_state(", "make_train_function"),
    *("run_eagerly", "steps_per_execution", "use_ema", "stateful=True", "distribute"),
)
"""With any of these in the program an epoch may be something else than its only step."""


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    document = read(source) if "fit" in source else None
    if document is None or any(defines(case, source, text) for text in _LEAVES):
        return None
    places = (item.where for item in fits(case) if item.where is not None and item.where.line)
    lines = {where.line for where in places if where.line and case_facts.same_file(path, where.file)}
    found = (
        [call for call in calls_at(document, lines, "fit", case, path) if _is_plain(document, call)] if lines else []
    )
    if not found or has_metric_of_own(case, source, path):
        return None
    name = free(document, "fit_epochs")
    for call in found:
        model = call.func.value if isinstance(call.func, cst.Attribute) else call.func
        start, end = document.span(call.func)
        kept = [arg for arg in call.args if any(Arguments(call, _ORDER).given.get(name) is arg for name in _KEPT)]
        document.replace(start, end, name)
        document.insert(document.span(call.args[0])[0], f"{document.text(model)}, ")
        keep_only(document, call, kept)
    first = min(document.line(call) for call in found)
    above = next(item for item in document.tree.body if first in document.lines(item))
    statements.define(document, above, *_function(document, name))
    return document.result()


def _is_plain(document: Document, call: cst.Call) -> bool:
    """`model.fit(x, y, epochs=…)`, for a model that has a name."""
    arguments = Arguments(call, _ORDER)
    model = call.func.value if isinstance(call.func, cst.Attribute) else None
    named = isinstance(model, (cst.Name, cst.Attribute)) and document.text(model) not in ("self", "super")
    wanted = {"x", "y", "epochs"} <= set(arguments.given) and arguments.only({*_KEPT, *_DROPPED})
    return named and wanted and not document.begins_its_line(document.span(call.args[0])[0])


def _function(document: Document, name: str) -> Iterator[str]:
    traced = imports.spell(document, tf_functions.TRACED)
    tensors = imports.spell(document, "tensorflow.nest.map_structure")
    tensor = imports.spell(document, "tensorflow.convert_to_tensor")
    indent = document.indent
    history = imports.spell(document, "keras.callbacks.History")
    yield f"def {name}(model, x, y, epochs=1):"
    yield f'{indent}"""`model.fit` where all rows are one batch: each epoch is a call of the training step."""'
    yield f"{indent}history = {history}()"
    yield f"{indent}history.set_model(model)"
    yield f'{indent}history.set_params({{"epochs": epochs, "steps": 1}})'
    yield f"{indent}history.on_train_begin()"
    yield f"{indent}x, y = {tensors}({tensor}, (x, y))"
    yield f"{indent}model.reset_metrics()"
    yield f"{indent}found = [model.train_on_batch(x, y, return_dict=True)]  # makes model.train_function"
    yield ""
    yield f"{indent}@{traced}(autograph=False)"
    yield f"{indent}def step(x, y):"
    yield f"{indent}{indent}model.reset_metrics()"
    yield f"{indent}{indent}return model.train_function(iter([(x, y)]))"
    yield ""
    yield f"{indent}found += [step(x, y) for _ in range(1, epochs)]"
    yield f"{indent}for epoch, logs in enumerate(found):"
    yield f"{indent}{indent}logs = {{key: {tensor}(value).numpy().tolist() for key, value in logs.items()}}"
    yield f"{indent}{indent}history.on_epoch_end(epoch, logs)"
    yield f"{indent}return history"
