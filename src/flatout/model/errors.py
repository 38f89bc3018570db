"""Every exception that flatout defines, one tree.

    Raised                        everything below
    ├── FlatoutError              shown to the user without a traceback; the number is the exit code          2
    │   ├── InvalidOption         an option or argument whose value cannot be used, or two that exclude each other
    │   │   ├── UnknownCause      a name that the catalogue of causes lacks
    │   │   ├── UnknownLever      a lever that does not exist
    │   │   ├── UnknownRoute      a route that does not exist
    │   │   ├── UnknownView       `show --view` of a name that does not exist
    │   │   └── SettingsInvalid   a pyproject.toml that cannot be read, or a setting in it that cannot be used
    │   ├── PluginInvalid         a cause, cure, route or check whose file declares no plugin, or a wrong one
    │   ├── ProgramNotFound       the program to run is not there                                           127
    │   ├── ProgramUnusable       the program ran, but did not do what was to be measured                     3
    │   ├── NotebookUnusable      a notebook that cannot be run as a program
    │   ├── CaseNotFound          no kept case, or no runs in the history, where some are needed
    │   ├── CaseUnreadable        a case or a history that cannot be understood
    │   ├── CaseNotReady          a result that is read before it is there
    │   ├── TraceNotFound         no XPlane file at a path
    │   ├── TraceUnreadable       a file that is not a trace, or a damaged one
    │   ├── DataUnusable          samples or files that cannot be read, or that do not fit
    │   │   └── ElementUnreadable one element of a source that cannot be read                                 1
    │   ├── ShardsUnusable        record shards that are missing, damaged, or cannot do what is asked of them
    │   │   └── ShardsDiffer      shards that differ from their source                                        1
    │   ├── ModelUnusable         a model that cannot be found, imported, called or measured
    │   │   └── ModelRefused      a model file that cannot be read, or that would run code of its own
    │   ├── ConversionFailed      a model that a route cannot convert
    │   │   └── RouteNotNeeded    a route that has nothing to offer for this model: left out, not failed
    │   ├── CompressionRefused    a model or a request that compression cannot follow; names the layer
    │   ├── CompressionFailed     a compressed model that did not pass its check, or a training that broke    1
    │   ├── ArtefactUnreadable    a directory that is not an artefact of flatout, or a damaged one
    │   ├── PatchFailed           a source change that cannot be made or applied
    │   ├── OutputNotWritable     a file that cannot be written, or that exists and is not overwritten
    │   ├── EnvironmentNotMade    a Python or an environment for a comparison that is not there or cannot be made   3
    │   ├── CannotFence           a kernel that cannot hold trials as is asked of it                          3
    │   ├── ClusterUnusable       a cluster that does not answer, or a node of it that lacks what the program needs
    │   ├── ProcessFailed         a process of flatout's own that ended or did not answer                     3
    │   │   ├── ServiceFailed     a dispatcher or worker of the tf.data service
    │   │   └── InvalidMessage    a message between two processes of flatout that does not have its declared form
    │   └── ToolMissing           an optional tool (py-spy, nsys, TensorFlow) is not installed                3
    └── Internal                  control flow between two functions of flatout, caught by the caller; never shown
        ├── WireError             trace: bytes that are not a protobuf message
        │   └── TruncatedError    trace: a field that runs past the end of the message
        ├── Missing               observe: a private name that this TensorFlow lacks
        ├── Opaque                pipeline: a stage that cannot be made again
        ├── Unlike                pipeline: two forms of a map that do not agree
        ├── Refused               pipeline: a rewrite of a dataset that looked possible and is not
        ├── Unfit                 cures: a function that must not or cannot be traced
        ├── NotSplit              source: a step that cannot be taken apart
        ├── Damaged               data: a shard that is not what was written
        ├── Corrupt               data: an element that cannot be read
        ├── Failed                data: a pipeline in a child process that cannot be used
        ├── NotANotebook          source: a file that is not a notebook
        ├── NotFound              source: a notebook whose cells cannot be found in its text
        ├── NotKnown              subject: a layer that numpy cannot stand for
        ├── WorkFailed            process: a task in a worker that failed, timed out or ran out of memory
        ├── OutOfTime             optimize: a search that used up its time
        ├── NotWritten            optimize: an artefact that a server's layout cannot hold
        ├── ServerGone            process: no fork server, or no longer
        ├── Fallen                tune: a claim that the whole program did not bear out
        │   ├── Different         tune: the changed program ends with other results
        │   ├── GaveUp            tune: a lever of it was not at work to the end
        │   ├── Slower            tune: its runs take longer
        │   └── Unseen            tune: it fails, and the original was not seen to end
        ├── NotPlain              trial: a value of a notebook's cell that cannot be kept
        ├── _Opaque               trial: a value of it that no digest can be made of
        ├── Ended                 trial: a program that ended by itself
        └── Overdue               trial: a program that did not answer in time

`Internal` is not a `FlatoutError`: `except FlatoutError` must not swallow control flow. Its classes are defined in the
module that raises them.

The message of a `FlatoutError` says what happened, what was expected and what to do about it. The command line prints
it and exits with `exit_code`.
"""

from __future__ import annotations


class Raised(Exception):
    """Root of the tree."""


class FlatoutError(Raised):
    """Base of all errors that a user sees. Raise one of its subclasses, never this class itself."""

    exit_code = 2


class Internal(Raised):
    """Base of all exceptions that are caught inside flatout."""


class InvalidOption(FlatoutError):
    pass


class UnknownCause(InvalidOption):
    pass


class UnknownLever(InvalidOption):
    pass


class UnknownRoute(InvalidOption):
    pass


class UnknownView(InvalidOption):
    pass


class SettingsInvalid(InvalidOption):
    pass


class PluginInvalid(FlatoutError):
    pass


class ProgramNotFound(FlatoutError):
    exit_code = 127


class ProgramUnusable(FlatoutError):
    exit_code = 3


class NotebookUnusable(FlatoutError):
    pass


class CaseNotFound(FlatoutError):
    pass


class CaseUnreadable(FlatoutError):
    pass


class CaseNotReady(FlatoutError):
    pass


class TraceNotFound(FlatoutError):
    pass


class TraceUnreadable(FlatoutError):
    pass


class DataUnusable(FlatoutError):
    pass


class ElementUnreadable(DataUnusable):
    exit_code = 1


class ShardsUnusable(FlatoutError):
    pass


class ShardsDiffer(ShardsUnusable):
    exit_code = 1


class ModelUnusable(FlatoutError):
    pass


class ModelRefused(ModelUnusable):
    pass


class ConversionFailed(FlatoutError):
    pass


class RouteNotNeeded(ConversionFailed):
    pass


class CompressionRefused(FlatoutError):
    pass


class CompressionFailed(FlatoutError):
    exit_code = 1


class ArtefactUnreadable(FlatoutError):
    pass


class PatchFailed(FlatoutError):
    pass


class OutputNotWritable(FlatoutError):
    pass


class EnvironmentNotMade(FlatoutError):
    exit_code = 3


class CannotFence(FlatoutError):
    exit_code = 3


class ClusterUnusable(FlatoutError):
    pass


class ProcessFailed(FlatoutError):
    exit_code = 3


class ServiceFailed(ProcessFailed):
    pass


class InvalidMessage(ProcessFailed):
    pass


class ToolMissing(FlatoutError):
    exit_code = 3
