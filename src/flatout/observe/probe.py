"""What a probe is: functions that are called right after a package was imported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from flatout.observe.observer import Observer

Package = Literal["tensorflow", "keras", "tf_keras"]
PACKAGES: tuple[Package, ...] = ("tensorflow", "keras", "tf_keras")
Install = Callable[["Observer", ModuleType], None]
"""Called with the observer and the package. It patches names of `private_names` and only observes."""


@dataclass(frozen=True)
class Probe:
    name: str
    tensorflow: Install | None = None
    keras: Install | None = None
    tf_keras: Install | None = None

    def install_for(self, package: Package) -> Install | None:
        return {"tensorflow": self.tensorflow, "keras": self.keras, "tf_keras": self.tf_keras}[package]
