"""One file per probe. A probe defines `on_tensorflow`, `on_keras` or `on_tf_keras` (observer, module), called right
after that package was imported. It patches names of `private_names` and only observes."""

from __future__ import annotations

import pkgutil


def names() -> list[str]:
    return sorted(info.name for info in pkgutil.iter_modules(__path__) if not info.name.startswith("_"))
