"""`flatout.optimize(model, data, …)`: the same as the command, for a model, data or a metric in memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from flatout.optimize.metrics import lower_is_better
from flatout.optimize.optimizer import Options
from flatout.optimize.session import Result
from flatout.optimize.session import optimize as run
from flatout.optimize.session import show as tell
from flatout.subject.preparing import Request


def optimize(
    model: Any,
    data: Any = None,
    *,
    metric: str | Callable[..., Any] | None = None,
    max_drop: float = 0.01,
    objective: str = "latency",
    batches: Sequence[int] = (1,),
    shapes: Mapping[str, Sequence[int]] | None = None,
    minimize: bool | None = None,
    routes: Sequence[str] = (),
    without: Sequence[str] = (),
    seconds: float | None = None,
    output: str | os.PathLike[str] | None = None,
    trust: bool = False,
    show: bool = True,
) -> Result:
    """Try the ways to serve a model, check and measure each, and hand over the best within the budget.

    `model` is a Keras model, a path or `module:function`; `data` arrays, a pair of inputs and labels, a
    `tf.data.Dataset`, a path or `module:function`; `metric` the name of a Keras metric or a function of labels and
    answers. A model in memory is traced in this process; everything else happens in others.
    """
    named_model = isinstance(model, (str, os.PathLike))
    named_data = data is None or isinstance(data, (str, os.PathLike))
    name = metric if isinstance(metric, str) else getattr(metric, "__name__", None)
    request = Request(
        directory="",
        model=os.fspath(model) if named_model else str(getattr(model, "name", "model")),
        data=os.fspath(data) if named_data and data is not None else None,
        metric=name,
        batches=tuple(batches),
        shapes=dict(shapes or {}),
        trust=trust,
    )
    options = Options(
        objective=objective,
        max_drop=max_drop,
        lower_is_better=lower_is_better(name) if minimize is None else minimize,
        routes=tuple(routes),
        without=tuple(without),
        budget=seconds,
        output=None if output is None else Path(output),
    )
    result = run(
        request,
        options,
        quiet=not show,
        original=None if named_model else _original(model),
        given=None if named_data else data,
        metric=None if metric is None or isinstance(metric, str) else metric,
    )
    if show:
        tell(result)
    return result


def _original(model: Any) -> Any:
    from flatout.subject.keras_models import of_object

    return of_object(model, {})
