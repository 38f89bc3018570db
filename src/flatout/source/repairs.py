"""The repairs that `check` can make, as data. `flatout.source.editing.repairs` applies them to a file.

A cause names the repair of what it found: `Repair(DropArgument("run_eagerly"))`. This module does not import libcst,
which is slow to import and needed only when a file is changed.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar


@dataclass(frozen=True)
class AssignResult:
    """`dataset.cache()` → `dataset = dataset.cache()`"""

    kind: ClassVar = "assign-result"


@dataclass(frozen=True)
class Decorate:
    """A decorator above a function that has none, by its canonical name: `tensorflow.function`."""

    decorator: str
    kind: ClassVar = "decorate"


@dataclass(frozen=True)
class DeleteStatement:
    """The statement goes, with its comment. A block that holds nothing else keeps a `pass`."""

    kind: ClassVar = "delete-statement"


@dataclass(frozen=True)
class DropArgument:
    """`compile(…, run_eagerly=True)` → `compile(…)`"""

    name: str
    kind: ClassVar = "drop-argument"


@dataclass(frozen=True)
class Rename:
    """A dotted name becomes another one, given by its canonical name and written as the file writes such names."""

    to: str
    kind: ClassVar = "rename"


@dataclass(frozen=True)
class RenameArgument:
    """`experimental_compile=True` → `jit_compile=True`"""

    name: str
    to: str
    kind: ClassVar = "rename-argument"


@dataclass(frozen=True)
class RenameMethod:
    """`model.fit_generator(…)` → `model.fit(…)`"""

    to: str
    kind: ClassVar = "rename-method"


@dataclass(frozen=True)
class SetArgument:
    """A call gets `name=value`, or another value where it has one.

    The value is Python source, or with `is_name` the canonical name of something: `tensorflow.data.AUTOTUNE`.
    """

    name: str
    value: str
    is_name: bool = False
    position: int | None = None
    """Index of the argument where it is given without its name."""
    kind: ClassVar = "set-argument"


@dataclass(frozen=True)
class SwapStages:
    """`.batch(32).shuffle(1000)` → `.shuffle(1000).batch(32)`"""

    kind: ClassVar = "swap-stages"


@dataclass(frozen=True)
class Wrap:
    """An expression becomes the argument of a function, given by its canonical name: `i` → `tf.constant(i)`"""

    function: str
    kind: ClassVar = "wrap"


@dataclass(frozen=True)
class LeverEdit:
    """The edit of a cure, the same that `flatout tune` writes into its patch."""

    lever: str
    line: int | None = None
    """The line of the finding, where it is not that of the diagnostic."""
    kind: ClassVar = "lever"


Change = (
    AssignResult
    | Decorate
    | DeleteStatement
    | DropArgument
    | Rename
    | RenameArgument
    | RenameMethod
    | SetArgument
    | SwapStages
    | Wrap
    | LeverEdit
)
CHANGES: dict[str, type[Change]] = {
    change.kind: change
    for change in (
        AssignResult,
        Decorate,
        DeleteStatement,
        DropArgument,
        Rename,
        RenameArgument,
        RenameMethod,
        SetArgument,
        SwapStages,
        Wrap,
        LeverEdit,
    )
}
"""By kind, the name that JSON and the cache use."""
PARALLEL_CALLS = SetArgument("num_parallel_calls", "tensorflow.data.AUTOTUNE", is_name=True)


@dataclass(frozen=True)
class Repair:
    """A change of the source that removes a fault.

    A repair that is not safe may change what is computed, or fail where other code relies on what it removes.
    """

    change: Change
    safe: bool = False
    assumes: str = ""
    """What must hold for it to keep what the program does, in a few words; for repairs that are not safe."""

    @property
    def kind(self) -> str:
        return self.change.kind

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "safe": self.safe, "assumes": self.assumes, **asdict(self.change)}


def from_json(data: dict[str, Any]) -> Repair:
    """Raises KeyError or TypeError for what `to_json` did not write."""
    arguments = {name: value for name, value in data.items() if name not in ("kind", "safe", "assumes")}
    return Repair(CHANGES[data["kind"]](**arguments), bool(data["safe"]), str(data.get("assumes", "")))
