"""The levers of one child process: loaded, installed, and asked what they changed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from types import ModuleType

from flatout.cures import _catalogue
from flatout.cures._spec import Hooks
from flatout.model.levers import parse
from flatout.observe.injection import Injection
from flatout.observe.levers import LeverReport
from flatout.observe.observer import Observer


class Injections:
    """All levers of one child, installed in the order given; whoever starts the child has put them in order.

    A lever that cannot be loaded or installed is recorded as failed. The program runs on without it.
    """

    def __init__(self, observer: Observer, levers: Sequence[str]) -> None:
        self.observer = observer
        self.levers = [self._load(Injection(observer, *parse(text))) for text in levers]

    def _load(self, injection: Injection) -> tuple[Injection, Hooks]:
        self.observer.recorder.fact("lever", lever=injection.text)
        try:
            hooks = _catalogue.hooks_of(_catalogue.load(injection.lever))
        except Exception as error:
            self._failed(injection, error)
            hooks = None
        return injection, hooks or Hooks()

    def install(self, package: str, module: ModuleType) -> None:
        for injection, hooks in self.levers:
            hook = hooks.of(package)
            if hook is None:
                continue
            try:
                hook(injection, module)
            except Exception as error:
                self._failed(injection, error)

    def _failed(self, injection: Injection, error: Exception) -> None:
        if injection.failed:
            return
        injection.failed = f"{type(error).__name__}: {error}"
        self.observer.recorder.fact("lever-failed", lever=injection.text, text=injection.failed)
        text = f"flatout: {injection.text} could not be installed: {injection.failed}. The program runs without it.\n"
        with contextlib.suppress(OSError):  # to descriptor 2: `sys.stderr` may be the program's own, or closed
            os.write(2, text.encode("utf-8", "backslashreplace"))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(injection.lever for injection, _ in self.levers)

    @property
    def ready(self) -> bool:
        return all(is_ready() for injection, _ in self.levers for is_ready in injection.ready)

    def report(self) -> dict[str, LeverReport]:
        return {injection.text: injection.report() for injection, _ in self.levers}
