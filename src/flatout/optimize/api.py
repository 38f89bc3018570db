"""`flatout.optimize(model, data, …)`: the same as the command, also for a model, data or a metric in memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from flatout.model.quantities import seconds
from flatout.optimize import session
from flatout.optimize.request import OptimizeRequest
from flatout.optimize.session import Result
from flatout.subject.preparation import InMemory


def optimize(
    model: Any,
    data: Any = None,
    *,
    metric: str | Callable[..., Any] | None = None,
    max_drop: float = 0.01,
    lower_is_better: bool | None = None,
    goal: str = "latency",
    batches: Sequence[int] = (1,),
    shapes: Mapping[str, Sequence[int]] | None = None,
    features: str | os.PathLike[str] | None = None,
    samples: int = 2000,
    signature: str | None = None,
    routes: Sequence[str] = (),
    without: Sequence[str] = (),
    compare: Sequence[str | os.PathLike[str]] = (),
    compress: str | None = None,
    train: str | None = None,
    exhaustive: bool = False,
    no_cache: bool = False,
    layout: str | None = None,
    trust: bool = False,
    imports: Sequence[str] = (),
    budget: str | float | None = None,
    output: str | os.PathLike[str] | None = None,
    force: bool = False,
    show: bool = True,
) -> Result:
    """Try the ways to serve a model, check and measure each, and hand over the best within the budget.

    `model` is a Keras model, a path or `module:function`; `data` arrays, a pair of inputs and labels, a
    `tf.data.Dataset`, a path or `module:function`; `metric` the name of a Keras metric or a function of labels and
    answers. A model in memory is traced in this process; everything else happens in child processes. The other
    parameters are the options of `flatout optimize`; `budget` is a time as `10m` or in seconds.
    """
    request = OptimizeRequest(
        model=_path(model) or str(getattr(model, "name", "model")),
        data=_path(data),
        metric=metric if isinstance(metric, str) else getattr(metric, "__name__", None),
        max_drop=max_drop,
        objective=goal,
        batches=tuple(dict.fromkeys(batches)),
        shapes=dict(shapes or {}),
        lower_is_better=lower_is_better,
        features=_path(features),
        samples=samples,
        signature=signature,
        compare=tuple(map(Path, compare)),
        compress=compress,
        train=train,
        exhaustive=exhaustive,
        cache=not no_cache,
        layout=layout,
        imports=tuple(imports),
        force=force,
        routes=tuple(routes),
        without=tuple(without),
        seconds=None if budget is None else seconds(budget, "budget"),
        output=None if output is None else Path(output),
        trust=trust,
    )
    in_memory = InMemory(
        original=None if _path(model) else _original(model),
        data=None if _path(data) else data,
        metric=None if isinstance(metric, str) else metric,
    )
    result = session.optimize(request, quiet=not show, in_memory=in_memory)
    if show:
        session.show(result)
    return result


def _path(value: Any) -> str | None:
    """The path or name that was given; None for an object in memory."""
    return os.fspath(value) if isinstance(value, (str, os.PathLike)) else None


def _original(model: Any) -> Any:
    from flatout.subject.keras_models import wrap_model

    return wrap_model(model, {})
