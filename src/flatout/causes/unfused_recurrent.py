"""A recurrent layer is set up in a way that its fused GPU kernel cannot do.

## What it is
Keras runs `LSTM` and `GRU` on a GPU through one cuDNN kernel, but only with the standard settings: activation `tanh`,
recurrent activation `sigmoid`, no recurrent dropout, not unrolled, with bias, and `reset_after=True` for `GRU`. With
any other setting, or with `RNN(LSTMCell(…))`, it falls back to a loop over time steps.

## Why it costs
The loop starts several small kernels for every time step. On a GPU that is commonly several times slower than the fused
kernel. On a CPU there is no such kernel, and no difference.

## How it looks
```python
model.add(keras.layers.LSTM(128, activation="relu"))
model.add(keras.layers.RNN(keras.layers.LSTMCell(128)))
```

## The cure
```python
model.add(keras.layers.LSTM(128))
model.add(keras.layers.LSTM(128))
```
- The layer in place of `RNN` with its cell: reassociated.
- Another activation, or no recurrent dropout: **semantic**. It is another model and must be trained again.

No lever does this: only the author can choose another model.

## When it is not worth it
On CPUs; for short sequences; when the setting was chosen for its accuracy.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from flatout.causes._spec import Cause
from flatout.source.analysis import loops
from flatout.source.analysis.patterns import Match, pattern
from flatout.source.analysis.scopes import Site
from flatout.source.analysis.syntax import argument, constant, keyword, last_name

_STANDARD = {"activation": ("tanh",), "recurrent_activation": ("sigmoid",)}


@pattern("activation", calls=("LSTM", "GRU"), seldom=True)
def _activation(call: ast.Call, site: Site) -> Iterator[Match]:
    """`LSTM(128, activation="relu")`"""
    if site.dotted(call.func) not in ("keras.layers.LSTM", "keras.layers.GRU"):
        return
    layer = last_name(call.func)
    for name, standard in _STANDARD.items():
        value = constant(keyword(call, name))
        if isinstance(value, str) and value not in standard:
            yield _match(
                call, f"{layer} with {name}={value!r} cannot use the fused GPU kernel.", keyword(call, name), site
            )
            return
    for name, wrong in (("unroll", True), ("use_bias", False), ("reset_after", False)):
        if constant(keyword(call, name)) is wrong:
            yield _match(
                call, f"{layer} with {name}={wrong} cannot use the fused GPU kernel.", keyword(call, name), site
            )
            return


@pattern("recurrent-dropout", calls=("LSTM", "GRU"), words=("recurrent_dropout",), default=False)
def _recurrent_dropout(call: ast.Call, site: Site) -> Iterator[Match]:
    """`LSTM(128, recurrent_dropout=0.2)`"""
    given = keyword(call, "recurrent_dropout")
    if given is not None and constant(given) not in (0, 0.0) and site.dotted(call.func).startswith("keras.layers."):
        yield _match(
            call, f"{last_name(call.func)} with recurrent dropout cannot use the fused GPU kernel.", given, site
        )


@pattern("cell", calls=("RNN",), words=("LSTMCell", "GRUCell"), seldom=True)
def _cell(call: ast.Call, site: Site) -> Iterator[Match]:
    """`RNN(LSTMCell(128))`"""
    cell = argument(call, 0, "cell")
    if site.dotted(call.func) != "keras.layers.RNN" or not isinstance(cell, ast.Call) or site.arms:
        return
    name = last_name(cell.func)
    if site.dotted(cell.func) in ("keras.layers.LSTMCell", "keras.layers.GRUCell"):
        yield Match(
            call,
            f"RNN({name}(…)) goes step by step; {name.removesuffix('Cell')} has a fused GPU kernel.",
            f"Use keras.layers.{name.removesuffix('Cell')}.",
            "reassociated",
            report_at=call.func,
            confidence="low" if _is_only_summarized(call, site) else "high",
        )


_SMALL_UNITS = 32
_SHORT = 32
"""Units and steps of time below which the kernel makes no difference that one would notice."""


def _match(call: ast.Call, message: str, report_at: ast.expr | None, site: Site) -> Match:
    return Match(
        call,
        message,
        "Leave it at its standard, if the model allows it.",
        "semantic",
        report_at=report_at,
        confidence="low" if _is_small(call, site) or _is_only_summarized(call, site) else "medium",
    )


_SHOWS = ("summary", "plot_model", "print")


def _is_only_summarized(call: ast.Call, site: Site) -> bool:
    """Whether a script builds the model, shows its layers, and does nothing else with it."""
    statement = site.statement
    if site.scope.parent is not None or statement is None:
        return False
    made: ast.expr | None = None
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        made = statement.targets[0]
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        added = statement.value.func
        made = added.value if isinstance(added, ast.Attribute) and added.attr == "add" else None
    if not isinstance(made, ast.Name):
        return False
    later = [bind.site.line for bind in site.scope.facts.binds.get(made.id, ()) if bind.site.line > statement.lineno]
    uses: list[str] = []
    named = 0
    for node in ast.walk(site.module.tree):
        if not isinstance(node, (ast.Name, ast.Call)) or not statement.lineno < node.lineno < min(
            later, default=1 << 60
        ):
            continue
        if isinstance(node, ast.Name):
            named += node.id == made.id
        elif isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
            uses += [node.func.attr] if node.func.value.id == made.id else []
            uses += [node.func.attr for item in node.args if isinstance(item, ast.Name) and item.id == made.id]
        else:
            uses += [last_name(node.func) for item in node.args if isinstance(item, ast.Name) and item.id == made.id]
    return named == len(uses) and any(use in _SHOWS for use in uses) and set(uses) <= {*_SHOWS, "add"}


def _is_small(call: ast.Call, site: Site) -> bool:
    units = argument(call, 0, "units")
    known = loops.number(units, site) if units is not None else None
    shapes = [keyword(call, "input_shape")]
    shapes += [
        keyword(other, "shape") or keyword(other, "input_shape") or (other.args[0] if other.args else None)
        for name in ("Input", "InputLayer", "LSTM", "GRU")
        for other, where in site.module.calls_by_name.get(name, ())
        if where.scope is site.scope
    ]
    steps = [loops.number(shape.elts[0], site) for shape in shapes if isinstance(shape, ast.Tuple) and shape.elts]
    short = any(number is not None and number < _SHORT for number in steps)
    return short or (known is not None and known <= _SMALL_UNITS)


CAUSE = Cause(
    group="numerics",
    patterns=(_activation, _recurrent_dropout, _cell),
)
