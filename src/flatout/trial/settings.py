"""The settings of a child process: how to observe it, and how to run it as a trial.

The launcher writes `ChildSettings` as JSON into an environment variable; a fork server hands it over in the file of a
`TrialRequest`. The child decodes it. An invalid message is an `InvalidMessage` that names the field.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from flatout.model.vocabulary import StreamKind
from flatout.observe.settings import ObserveSettings
from flatout.process.fence.means import Fence


@dataclass(frozen=True)
class GateSettings:
    """Hold the program between blocks of steps, as the parent tells it over two pipes."""

    read: int
    write: int
    parent: int
    """Its process. Where that is gone, the trial ends."""
    least_step: StreamKind | None = None
    """The lowest kind of stream that counts as a step; None: any."""
    not_steps: tuple[StreamKind, ...] = ()
    """Kinds that are no step of this program, as is known from an earlier run of it."""
    fills_cache: bool = False
    """The first epoch fills a cache: the program is measured from the second one on."""
    warm_steps: int = 0
    """Of a program that ends soon: it is warm after so many steps. 0: once it runs at its own pace."""


@dataclass(frozen=True)
class ScoutSettings:
    """End the program once enough was seen of it."""

    waits: bool = True
    """For places of the source that it has not come to."""
    to_end: float = 0.0
    """Seconds that it is given to come to its end by itself, watched; it is left alone so long. 0: its end is not
    wanted."""
    keeps: bool = False
    """Write down what cells have made that are marked to be kept."""


@dataclass(frozen=True)
class WholeSettings:
    """Let the program run to its end and count its steps."""

    least_step: StreamKind | None = None
    not_steps: tuple[StreamKind, ...] = ()
    watched: bool = False
    """Whether the tree of the run is wanted."""


@dataclass(frozen=True)
class GuestSettings:
    """Run work of the command that has started this program inside it (`data inspect`, `data tune`)."""

    module: str
    """Its `start(observer, request)` is called."""
    request: str
    """A message that the module decodes."""


@dataclass(frozen=True)
class TrialSettings:
    role: GateSettings | ScoutSettings | WholeSettings | GuestSettings
    seed: int | None = 0
    pinned: bool = False
    """Every random number by its place and count, for a run that is only compared."""
    perturbed: bool = False
    writable: tuple[str, ...] = ()
    """Directories besides its own that the trial may write to."""
    held: bool = False
    """Whether the kernel holds its writes."""
    moves: bool = True
    """Whether the kernel lets its files move from one directory to another."""
    network: bool = False
    """Whether it may use the network."""
    kept: str = ""
    """The directory with what kept cells have made; empty where they run."""


@dataclass(frozen=True)
class ChildSettings:
    directory: str
    """Where the recording goes."""
    observe: ObserveSettings = field(default_factory=ObserveSettings)
    module: str | None = None
    """The module of `python -m`: it is the user's code wherever it is installed."""
    flame: bool = False
    """Whether py-spy will look at the process."""
    levers: tuple[str, ...] = ()
    trial: TrialSettings | None = None


@dataclass(frozen=True)
class TrialRequest:
    """A trial that is forked: what a program of its own would be given by its command line and environment."""

    arguments: tuple[str, ...]
    """The command line from the program on, or from `-m` on."""
    environment: dict[str, str]
    settings: ChildSettings
    sources: dict[str, str] = field(default_factory=dict)
    """A file of the user → a file with the text to run in its place."""
    fence: Fence = field(default_factory=Fence)
    """What is put up around it before the program begins."""
