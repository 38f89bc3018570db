"""`background-figures` in a running program: every `savefig` of a figure of matplotlib."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from flatout.cures._keras_arguments import caller_location
from flatout.cures._spec import Hooks
from flatout.observe.after_import import after_import
from flatout.observe.injection import Injection


def on_tensorflow(injection: Injection, module: ModuleType) -> None:
    after_import("matplotlib.figure", lambda figures: _install(injection, figures))


def _install(injection: Injection, module: ModuleType) -> None:
    from flatout.cures.background_figures.drawing import BackgroundFigures

    original = module.Figure.savefig

    class Figures(BackgroundFigures):
        def _packed(self, *call: Any) -> Any:
            job = super()._packed(*call)  # type: ignore[no-untyped-call]
            if job is None:
                injection.note(f"a figure is drawn as ever{caller_location()}")
            else:
                injection.changed(f"figures are drawn in a process of their own{caller_location()}")
            return job

        def _as_ever(self, figure: Any, given: Any, named: Any) -> Any:
            return original(figure, *given, **named)

    figures = Figures()  # type: ignore[no-untyped-call]

    @functools.wraps(original)
    def savefig(self: Any, *given: Any, **named: Any) -> Any:
        return figures.save(self, *given, **named)  # type: ignore[no-untyped-call]

    module.Figure.savefig = savefig


HOOKS = Hooks(tensorflow=on_tensorflow)
