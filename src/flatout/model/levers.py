"""How a lever is written: `steps-per-execution=16`, a name and a setting."""

from __future__ import annotations

from collections.abc import Sequence


def parse(text: str) -> tuple[str, str]:
    """`steps-per-execution=16` → the lever's name and its setting."""
    name, _, value = text.partition("=")
    return name, value


def shown(levers: Sequence[str]) -> str:
    """For people: `function=/home/ada/train.py:26` is `function=train.py:26`."""
    pairs = (parse(text) for text in levers)
    return " + ".join(f"{name}={value.rpartition('/')[2]}" if value else name for name, value in pairs)
