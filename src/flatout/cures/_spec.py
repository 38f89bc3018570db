"""What a cure declares: `CURE` in its folder, and the types of its three parts.

A folder `cures/prefetch/` holds

    __init__.py   the page (docstring) and `CURE = Cure(…)`; read by every command, so it imports neither TensorFlow
                  nor libcst
    inject.py     `HOOKS = Hooks(…)`: the change made in a running program; imported only in the child process
    edit.py       `def edit(source, path, case, value)`: the change written into the source; imports libcst
    dataset.py    `def rewrite(dataset, context)`: the change made to a dataset object, for `flatout data tune`

Each part is optional, and imported when it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, Protocol

from flatout.model.case import Case, Equivalence
from flatout.model.run_tree import PartKind

if TYPE_CHECKING:
    from flatout.observe.injection import Injection
    from flatout.pipeline.rewriting import Context, Proposal

Side = Literal["input", "host", "compute", "runtime", "run"]
"""The part of a step that a cure can shorten; `run`: none, but a part of the run outside of the steps."""


def _one_setting(case: Case) -> Sequence[str]:
    return ("",)


def _never(case: Case) -> str | None:
    return None


@dataclass(frozen=True, kw_only=True)
class Cure:
    equivalence: Equivalence
    """What the change may do to the numbers; `bound` for a trial that shows an upper limit and is no cure."""
    side: Side
    does: str | Mapping[str, str] = ""
    """What a person does who makes the change, as a command: `cache the dataset in memory`; for each setting where they
    differ (`""`: all others). `{value}` is the setting; `{function}` and `{place}` name the function at a location."""
    compiles: bool = False
    """Whether the program compiles with it before its first steps, which may take minutes."""
    conflicts: tuple[str, ...] = ()
    """Cures that cannot be combined with it."""
    after: tuple[str, ...] = ()
    """Cures that have to be applied before it, where both are: injected, written and rewritten in this order."""
    values: Callable[[Case], Sequence[str]] = _one_setting
    """Settings worth a trial (`"16"`, `"64"`); one empty setting for a cure that has none."""
    skip: Callable[[Case], str | None] = _never
    """Why the cure cannot help this program; None where it is worth a trial."""
    environment: Callable[[str], Mapping[str, str]] | None = None
    """Environment variables to set before Python starts, for a setting."""
    samples: Callable[[str], float] | None = None
    """With a setting: how many times as many samples a step takes, where the cure changes that. A step with it and one
    without it are not the same thing, so whole runs try it."""
    saves: tuple[PartKind, ...] = ()
    """The parts of the tree of the run (`model/run_tree.py`) that a cure of the run can shorten, or another one where
    findings name it for what lies between the steps."""
    could_save: Callable[[Case], float] | None = None
    """Seconds of the run that it can save at most, of a case with a tree, where its parts alone do not tell."""
    fills: bool = False
    """It keeps what the first epoch computes, and pays from the second one on."""
    next_start: bool = False
    """It keeps what a start of the program computes, and pays from the next one on."""
    several: bool = False
    """Its settings are locations in the program: several of them may be used together."""
    by_default: bool = True
    """False for a cure that is tried only when it is named."""
    fewer_results: bool = False
    """It leaves out something that the program gives its user: never tried unless it is named."""
    by_hand: Callable[[Case, str], str] | None = None
    """What to write by hand, with file and line, where its edit (of this case, with this setting) finds no place."""

    @property
    def in_whole_runs(self) -> bool:
        """Whether no race of steps can show what it gains."""
        return self.side == "run" or self.samples is not None


Hook = Callable[["Injection", ModuleType], None]
"""Called right after the package was imported, before the probes. Patches names of `observe.private_names`."""


@dataclass(frozen=True, kw_only=True)
class Hooks:
    """What a cure does when one of these packages has been imported in the program."""

    tensorflow: Hook | None = None
    keras: Hook | None = None
    tf_keras: Hook | None = None

    def of(self, package: str) -> Hook | None:
        return {"tensorflow": self.tensorflow, "keras": self.keras, "tf_keras": self.tf_keras}.get(package)


class Edit(Protocol):
    """The new text of a file, or None where there is nothing to change in it."""

    def __call__(self, source: str, path: str, case: Case, value: str) -> str | None: ...


class Rewrite(Protocol):
    """A dataset with the change made, or None where there is nothing to change. Raises `Refused` with a reason."""

    def __call__(self, dataset: Any, context: Context) -> Proposal | None: ...
