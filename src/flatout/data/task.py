"""The task of the child of `flatout data`: what to do with the pipelines of the program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class PipelineTask:
    do: Literal["inspect", "tune", "digest"] = "inspect"
    pipeline: int = 1
    """Which of the program's pipelines, counted from 1; `inspect` uses all."""
    needs: float | None = None
    """Milliseconds that the trainer takes for an element, where the user knows."""
    seconds: float = 120.0
    allow: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    memory: int | None = None
    disk: str | None = None
