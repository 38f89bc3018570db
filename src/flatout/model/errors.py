"""The errors that flatout raises, one tree.

    FlatoutError
    ├── ProgramNotFound      the program to run is not there
    ├── CaseNotFound         no kept case where one was asked for
    ├── CaseUnreadable       a case file that cannot be understood
    ├── TraceNotFound        no XPlane file at a path
    ├── TraceUnreadable      a file that is not a trace, or a damaged one
    ├── UnknownCause         `explain` of a name that the catalogue lacks
    ├── UnknownLever         a lever that does not exist
    ├── UnknownView          `show --view` of a name that does not exist
    ├── PluginInvalid        a cause, cure, route or check whose file declares no plugin, or a wrong one
    ├── PatchFailed          a source change that cannot be made or applied
    ├── DataUnusable         samples that cannot be read, or do not fit the model
    ├── ModelRefused         a model file that contains code which was not declared trusted
    ├── RouteNotNeeded       a route that offers nothing here that another does not: left out, not failed
    ├── ArtefactUnreadable   a directory that is not an artefact of `optimize`, or a damaged one
    ├── ElementUnreadable    an element of a source that cannot be read
    ├── ShardsDiffer         record shards that do not contain what their source does
    ├── CompressionRefused   a model or a request that compression cannot handle; names the layer
    ├── CompressionFailed    a compressed model that did not pass its check, or a training that broke
    └── ToolMissing          an optional tool (py-spy, nsys, TensorFlow) is not installed

Every message says what happened, what was expected and what to do about it. The command line prints the
message without a traceback and leaves with `exit_code`.
"""

from __future__ import annotations


class FlatoutError(Exception):
    """Base of everything that flatout raises on purpose."""

    exit_code = 2


class ProgramNotFound(FlatoutError):
    exit_code = 127


class CaseNotFound(FlatoutError):
    pass


class CaseUnreadable(FlatoutError):
    pass


class TraceNotFound(FlatoutError):
    pass


class TraceUnreadable(FlatoutError):
    pass


class UnknownCause(FlatoutError):
    pass


class UnknownLever(FlatoutError):
    pass


class UnknownView(FlatoutError):
    pass


class PluginInvalid(FlatoutError):
    pass


class PatchFailed(FlatoutError):
    pass


class DataUnusable(FlatoutError):
    pass


class ModelRefused(FlatoutError):
    pass


class RouteNotNeeded(FlatoutError):
    pass


class ArtefactUnreadable(FlatoutError):
    pass


class ElementUnreadable(FlatoutError):
    pass


class ShardsDiffer(FlatoutError):
    pass


class CompressionRefused(FlatoutError):
    pass


class CompressionFailed(FlatoutError):
    exit_code = 1


class ToolMissing(FlatoutError):
    exit_code = 3
