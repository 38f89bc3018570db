"""What a notebook shows of a case. The report is a room above this one: the package puts its function here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

render: Callable[[Any], str] | None = None
"""Makes a piece of HTML of a case."""
