"""What a tf.function knows of its traces, in any version of TensorFlow.

From 2.14 on a tf.function has one cache of traces, and a trace is made by a function. In 2.12 and 2.13 it has two
compilers with a cache each, one for the first trace and one for the others, and a trace is made by a method of theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_COMPILERS = ("_variable_creation_fn", "_no_variable_creation_fn")


@dataclass(frozen=True, slots=True)
class Asked:
    """What TensorFlow was asked to trace."""

    function: Any
    """The Python function."""
    name: str
    graph: Any
    cache: Any
    """The cache that the trace goes into; None where it is kept nowhere."""
    arguments: Any
    """What gives the types of the arguments, once they are wanted."""

    def types(self) -> Mapping[str, Any]:
        """The trace type of each argument by its name."""
        parameters = self.arguments().parameters
        return {name: parameter.type_constraint for name, parameter in parameters.items()}


def asked(arguments: tuple[Any, ...]) -> Asked:
    """By the arguments of `_create_concrete_function`."""
    first, second, third, last = arguments[:4]
    if hasattr(last, "function_cache"):  # types, context, graph, options
        return Asked(last.python_function, str(last.name), third, last.function_cache, lambda: first)
    return Asked(  # compiler, arguments, keywords, graph
        first._python_function,
        str(first._name),
        last,
        first._function_cache,
        lambda: first._function_spec.make_canonicalized_monomorphic_type(second, third)[0],
    )


def caches(function: Any) -> tuple[Any, ...]:
    """Where the traces of a tf.function are kept; nothing where it is none, or was not traced yet."""
    own = getattr(function, "_function_cache", None)
    if own is not None:
        return (own,)
    compilers = (getattr(function, name, None) for name in _COMPILERS)
    return tuple(compiler._function_cache for compiler in compilers if compiler is not None)


def kept(function: Any) -> int:
    """How many traces it has."""
    return sum(map(kept_in, caches(function)))


def kept_in(cache: Any) -> int:
    """How many traces are in a cache."""
    return len(cache) if hasattr(cache, "__len__") else len(cache.values())


def any_in(function: Any, known: Mapping[int, Any]) -> Any:
    """What is known of it by the identity of a cache; None where nothing is. Nothing is known of an empty cache: the
    identity was that of another one, which is gone."""
    return next((known[id(cache)] for cache in caches(function) if id(cache) in known and kept_in(cache)), None)
