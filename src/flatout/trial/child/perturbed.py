"""For a run that shows how a program reacts to rounding: every weight begins a few roundings away from its value.

Adam divides a gradient by its own size, so that what is nearly zero moves as far as anything else; a normalisation does
likewise. There a change of the last digit becomes one of some percent after the first step. A compiler that adds in
another order is right all the same.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import TYPE_CHECKING, Any

from flatout.observe.observer import Probe
from flatout.observe.private_names import Missing, patch

if TYPE_CHECKING:
    from flatout.observe.observer import Observer

ROUNDINGS = 4
"""By so many, sums of some thousand terms differ when they are added in another order."""


def probe_of(seed: int | None) -> Probe:
    """Each seed begins in roundings of its own: a program that seeds itself would else do the same with all of them."""
    return Probe("perturbed", tensorflow=functools.partial(_on_tensorflow, 1 if seed is None else seed))


def _on_tensorflow(seed: int, observer: Observer, module: ModuleType) -> None:
    import numpy as np

    draws = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))

    def wrap(original: Any) -> Any:
        def __init__(self: Any, trainable: Any = None, *args: Any, **keywords: Any) -> None:
            original(self, trainable, *args, **keywords)
            if not trainable or not module.executing_eagerly() or type(self).__name__ == "_UnreadVariable":
                return
            if self.dtype.is_floating and self.dtype.size >= 4:
                value = self.numpy()
                apart = ROUNDINGS * np.finfo(value.dtype).eps * draws.choice((-1, 1), size=value.shape)
                self.assign(value * (1 + apart).astype(value.dtype))

        return __init__

    try:
        patch("variable-init", wrap)
    except Missing as missing:
        observer.note(f"what rounding does to the program is not known: {missing}")
