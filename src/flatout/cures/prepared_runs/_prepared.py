"""What a session has to look up for a run, kept by the objects that it fetches and feeds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

MOST = 256
"""Kinds of runs that are kept of a session. A program with more makes new tensors for each run."""
_KEPT = "_flatout_prepared_runs"
_VERSION = "_flatout_graph_version"


@dataclass(frozen=True, slots=True)
class Fed:
    """One placeholder, or another tensor that is fed."""

    output: Any
    """Of the graph, as the session's library knows it."""
    dtype: Any
    number: bool
    """Whether NumPy counts the dtype among its numbers: then a value is read first and converted after that."""
    dimensions: tuple[int | None, ...] | None

    def array(self, value: Any) -> Any:
        """The value as `run` would feed it; None where `run` itself has to look at it."""
        import numpy

        if type(value) is not numpy.ndarray or value.dtype != self.dtype:
            value = self._converted(value)
        if value is None or (self.dimensions is not None and not self._fits(value.shape)):
            return None
        return value

    def _converted(self, value: Any) -> Any:
        import numpy
        from tensorflow import Tensor
        from tensorflow.python.ops.session_ops import TensorHandle

        if isinstance(value, (Tensor, TensorHandle)):
            return None
        array = numpy.asarray(value).astype(self.dtype, copy=False) if self.number else numpy.asarray(value, self.dtype)
        if isinstance(value, int) and array.item() != value:
            return None
        return array

    def _fits(self, shape: tuple[int, ...]) -> bool:
        wanted = self.dimensions or ()
        return len(shape) == len(wanted) and all(
            size is None or size == given for size, given in zip(wanted, shape, strict=True)
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """One kind of run."""

    handler: Any
    """TensorFlow's own: brings the values into the form of the fetches."""
    tensors: list[Any]
    targets: list[Any]
    feeds: tuple[Fed, ...]
    holds: tuple[Any, ...]
    """What the key stands for: while it is held, no other object has its id."""


class Runs:
    def __init__(self, made: Callable[[], None]) -> None:
        self.made = made
        """Called when a kind of run was prepared."""

    def prepare(self, session: Any, fetches: Any, feed_dict: Any) -> tuple[Plan, dict[Any, Any]] | None:
        """The plan of a run with the arrays to feed. None where the ordinary way has to be taken; never raises."""
        try:
            if session._closed or not isinstance(feed_dict, (dict, type(None))):
                return None
            key = _key(fetches, feed_dict)
            plans = session.__dict__.setdefault(_KEPT, {})
            plan = plans.get(key)
            if plan is None:
                plan = self._plan(session, fetches, feed_dict, plans)
                if plan is None:
                    return None
                plans[key] = plan
                self.made()
            fed = {}
            for feed, value in zip(plan.feeds, feed_dict.values() if feed_dict else (), strict=True):
                array = feed.array(value)
                if array is None:
                    return None
                fed[feed.output] = array
            version = session.graph.version
            if version != session.__dict__.get(_VERSION):  # the session takes over what was added to the graph
                session._extend_graph()
                session.__dict__[_VERSION] = version
        except Exception:  # `run` will find the same fault, and say so in its own words
            return None
        return plan, fed

    def _plan(self, session: Any, fetches: Any, feed_dict: Any, plans: dict[Any, Any]) -> Plan | None:
        from tensorflow.python.client.session import _FetchHandler

        if len(plans) >= MOST or session.graph.version == 0:
            return None
        own = _copy(fetches)
        keys = [_fed_tensor(session.graph, key) for key in feed_dict or ()]
        references = {key.ref() for key in keys if key is not None}
        if own is None or len(references) != len(keys):
            return None
        handler = _FetchHandler(session.graph, own, {})
        tensors, targets = handler.fetches(), handler.targets()
        handles = any(tensor.op.type.startswith("GetSessionHandle") for tensor in tensors)
        if handles or not (tensors or targets) or any(tensor.ref() in references for tensor in tensors):
            return None
        return Plan(
            handler,
            [tensor._as_tf_output() for tensor in tensors],
            [operation._c_op for operation in targets],
            tuple(map(_feed, keys)),
            (own, tuple(feed_dict or ())),
        )


def _key(fetches: Any, feed_dict: Any) -> Any:
    """Equal for runs that fetch the same objects in the same form and feed the same keys in the same order."""
    fetched = _identity(fetches)
    return (fetched, *[key if type(key) is str else id(key) for key in feed_dict]) if feed_dict else (fetched,)


def _identity(fetches: Any) -> Any:
    kind = type(fetches)
    if kind is list or kind is tuple:
        return (kind, *map(_identity, fetches))
    if kind is dict:
        return (kind, *fetches, None, *map(_identity, fetches.values()))
    return fetches if kind is str else id(fetches)


def _copy(fetches: Any) -> Any:
    """The same structure in own containers, as the program may change its own; None for other kinds of fetches."""
    from tensorflow import Operation, Tensor
    from tensorflow.python.ops.variables import Variable

    kind = type(fetches)
    if kind is list or kind is tuple:
        parts = [_copy(item) for item in fetches]
        return None if any(part is None for part in parts) else kind(parts)
    if kind is dict:
        named = {key: _copy(item) for key, item in fetches.items()}
        return None if any(part is None for part in named.values()) else named
    return fetches if isinstance(fetches, (str, Tensor, Operation, Variable)) else None


def _fed_tensor(graph: Any, key: Any) -> Any:
    """The tensor that a key of `feed_dict` stands for; None where `run` has to look at it."""
    from tensorflow import Tensor

    if not isinstance(key, (str, Tensor)):
        return None
    tensor = graph.as_graph_element(key, allow_tensor=True, allow_operation=False)
    known = graph.is_feedable(tensor) and tensor.dtype.base_dtype.name not in ("resource", "variant")
    return tensor if known else None


def _feed(tensor: Any) -> Fed:
    import numpy

    dtype = tensor.dtype.as_numpy_dtype
    split = int(numpy.__version__.partition(".")[0]) >= 2  # as `numpy_compat.np_asarray` decides
    number = split and bool(numpy.issubdtype(dtype, numpy.number))
    dimensions = None if tensor.shape.rank is None else tuple(tensor.shape.as_list())
    return Fed(tensor._as_tf_output(), numpy.dtype(dtype), number, dimensions)
