"""How often a place has drawn: a key and a counter for the next draw, eagerly, in graphs and in functions of tf.data.

A place has one variable, `[key, count]`, whoever draws there. It is read and advanced by ops, so that a traced function
advances it when it runs and not while it is traced. Order within a function is kept by TensorFlow: it runs the ops on
one variable one after the other.
"""

from __future__ import annotations

import hashlib
import threading
import weakref
from collections import Counter
from typing import Any

from flatout.observe.observer import Observer
from flatout.observe.private_names import Missing, patch

_seed = 0
_states: dict[str, Any] = {}
_seeds: Counter[str] = Counter()
_seeds_of_graphs: weakref.WeakKeyDictionary[Any, Counter[str]] = weakref.WeakKeyDictionary()
"""Weak: the identity of a graph that is gone may be that of another one later."""
_lock = threading.Lock()
_table: Any = None


class _Thread(threading.local):
    next_is_of_data = False


_thread = _Thread()


def begin(seed: int) -> None:
    global _seed
    _seed = seed


def number(text: str, bits: int = 62) -> int:
    """The same for the same text, in every process."""
    digest = hashlib.blake2b(f"{_seed}:{text}".encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> (64 - bits)


def possible() -> bool:
    """Whether a draw of now can be counted: not in the graphs of TF1, which have no variables of our own."""
    from tensorflow.python.eager import context
    from tensorflow.python.framework import func_graph, ops

    if context.executing_eagerly():
        return True
    graph = ops.get_default_graph()
    if "loop_body" in graph.get_name_scope():
        return False  # a loop that TensorFlow turns into one batch: its draws have no order
    return isinstance(graph, func_graph.FuncGraph) and ops.executing_eagerly_outside_functions()


def draw(place: str) -> tuple[Any, Any]:
    """The key and the counter of this draw, as Philox wants them: uint64[1] and uint64[2]."""
    from tensorflow.python.framework import constant_op, dtypes
    from tensorflow.python.ops import array_ops, gen_resource_variable_ops

    element = _element()
    if element is not None:
        key, count = _of_element(element, place)
    else:
        state = _state(place)
        pair = gen_resource_variable_ops.read_variable_op(state.handle, dtypes.int64)
        one = constant_op.constant([0, 1], dtypes.int64)
        gen_resource_variable_ops.assign_add_variable_op(state.handle, one)
        key, count = pair[:1], pair[1:]
    zero = constant_op.constant([0], dtypes.int64)
    counter = array_ops.concat([zero, count], 0)
    return array_ops.bitcast(key, dtypes.uint64), array_ops.bitcast(counter, dtypes.uint64)


def in_data() -> bool:
    """Whether a function of tf.data is being traced."""
    return _graph_of_data() is not None


def op_seed(place: str) -> tuple[int, int]:
    """A seed for an op that keeps its own state: how many of them the place has made counts, in a graph within it."""
    from tensorflow.python.eager import context
    from tensorflow.python.framework import ops

    graph = None if context.executing_eagerly() else ops.get_default_graph()
    with _lock:
        seeds = _seeds if graph is None else _seeds_of_graphs.setdefault(graph, Counter())
        seeds[place] += 1
        made = seeds[place]
    return _seed & 0x7FFFFFFF, number(f"{place}#{made}", 31)


def set_seed(seed: int | None) -> None:
    """The program has set TensorFlow's seed: every place begins anew."""
    global _seed
    from tensorflow.python.framework import ops

    with _lock, ops.init_scope():
        _seed = hash(seed)
        _seeds.clear()
        _seeds_of_graphs.clear()
        for place, state in _states.items():
            state.assign([number(place), 0])
        if _table is not None:
            _forget_elements()


def watch(observer: Observer) -> None:
    """Know the graphs of tf.data's functions, and when the program sets its seed."""
    for key, wrap in (("dataset-function", _functions_of_data), ("graph-init", _graphs), ("global-seed", _seeding)):
        try:
            patch(key, wrap)
        except Missing as missing:
            observer.note(f"random numbers may differ: {missing}")


# ── states ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _state(place: str) -> Any:
    from tensorflow.python.framework import dtypes, ops
    from tensorflow.python.ops import resource_variable_ops

    state = _states.get(place)
    if state is None:
        with _lock, ops.init_scope():
            state = _states[place] = resource_variable_ops.ResourceVariable(
                [number(place), 0], trainable=False, dtype=dtypes.int64, name="flatout_place"
            )
    return state


def _of_element(element: Any, place: str) -> tuple[Any, Any]:
    """The key from the element and the place, and how often they have met."""
    from tensorflow.python.framework import constant_op, dtypes
    from tensorflow.python.ops import bitwise_ops, gen_lookup_ops

    key = bitwise_ops.bitwise_xor(element, constant_op.constant([number(place)], dtypes.int64))
    zero = constant_op.constant(0, dtypes.int64)
    count = gen_lookup_ops.lookup_table_find_v2(_occurrences(), key, zero)
    count.set_shape([1])
    gen_lookup_ops.lookup_table_insert_v2(_occurrences(), key, count + 1)
    return key, count


def _occurrences() -> Any:
    global _table
    from tensorflow.python.framework import dtypes, ops
    from tensorflow.python.ops import gen_lookup_ops

    if _table is None:
        with _lock, ops.init_scope(), ops.device("CPU:0"):
            _table = gen_lookup_ops.mutable_hash_table_v2(
                key_dtype=dtypes.int64, value_dtype=dtypes.int64, shared_name="flatout_elements"
            )
    return _table


def _forget_elements() -> None:
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import gen_lookup_ops

    seen, _ = gen_lookup_ops.lookup_table_export_v2(_table, dtypes.int64, dtypes.int64)
    gen_lookup_ops.lookup_table_remove_v2(_table, seen)


# ── functions of tf.data ─────────────────────────────────────────────────────────────────────────────────────────────


def _graph_of_data() -> Any:
    """The innermost graph around this one that is a function of tf.data."""
    from tensorflow.python.framework import ops

    graph = ops.get_default_graph()
    while graph is not None:
        if getattr(graph, "_flatout_of_data", False):
            return graph
        graph = getattr(graph, "outer_graph", None)
    return None


def _element() -> Any:
    """A number for the element that the function of tf.data around this draw is called with; None outside of one."""
    graph = _graph_of_data()
    if graph is None:
        return None
    if getattr(graph, "_flatout_element", None) is None:
        with graph.as_default(), graph.control_dependencies(None):
            graph._flatout_element = _fingerprint(graph)
    return graph._flatout_element


def _fingerprint(graph: Any) -> Any:
    from tensorflow.python.framework import constant_op, dtypes
    from tensorflow.python.ops import array_ops, bitwise_ops, gen_array_ops

    captured = {id(inside) for inside in graph.internal_captures}
    value = constant_op.constant([0], dtypes.int64)
    for operation in graph.get_operations():
        tensor = operation.outputs[0] if operation.type == "Placeholder" else None
        if tensor is None or id(tensor) in captured or tensor.dtype in (dtypes.variant, dtypes.resource):
            continue
        digest = gen_array_ops.fingerprint(array_ops.reshape(tensor, [1, -1]), "farmhash64")
        value = bitwise_ops.bitwise_xor(value * 31, array_ops.bitcast(digest, dtypes.int64))
    return bitwise_ops.right_shift(bitwise_ops.bitwise_and(value, 2**63 - 1), constant_op.constant([1], dtypes.int64))


def _functions_of_data(original: Any) -> Any:
    def __init__(self: Any, *args: Any, **keywords: Any) -> None:
        before, _thread.next_is_of_data = _thread.next_is_of_data, True
        try:
            original(self, *args, **keywords)
        finally:
            _thread.next_is_of_data = before

    return __init__


def _graphs(original: Any) -> Any:
    def __init__(self: Any, *args: Any, **keywords: Any) -> None:
        original(self, *args, **keywords)
        self._flatout_of_data, _thread.next_is_of_data = _thread.next_is_of_data, False

    return __init__


def _seeding(original: Any) -> Any:
    def set_global_seed(seed: Any) -> Any:
        set_seed(seed)
        return original(seed)

    return set_global_seed
