"""A bar under the cell that shows how much of the time of a long piece of work is used up."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Any

from flatout.report.html.markup import tag

EVERY_SECONDS = 1.0


class Bar:
    def __init__(self, text: str, seconds: float) -> None:
        self.text = text
        self.seconds = seconds
        """What it may take."""
        self._began = time.monotonic()
        self._stop = threading.Event()
        self._handle: Any = None
        self._thread = threading.Thread(target=self._run, name="flatout-bar", daemon=True)

    def __enter__(self) -> Bar:
        from IPython.display import display

        self._handle = display(self._shown(), display_id=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        if self._handle is not None:
            self._update(self._shown(ended=True))

    def _run(self) -> None:
        while not self._stop.wait(EVERY_SECONDS):
            self._update(self._shown())

    def _update(self, shown: Any) -> None:
        try:
            self._handle.update(shown)
        except Exception:  # the page is gone; the work goes on
            self._stop.set()

    def _shown(self, ended: bool = False) -> Any:
        from IPython.display import HTML

        return HTML(html(self.text, time.monotonic() - self._began, self.seconds, ended))


def html(text: str, elapsed: float, seconds: float, ended: bool = False) -> str:
    minutes, rest = divmod(int(elapsed), 60)
    told = f"{text}: {minutes}:{rest:02d}" + (
        "" if ended else f" of {int(seconds) // 60}:{int(seconds) % 60:02d} at most"
    )
    bar = None if ended else tag("progress", value=f"{min(elapsed, seconds):.0f}", max=f"{max(seconds, 1):.0f}")
    return tag("p", bar, " ", told)
