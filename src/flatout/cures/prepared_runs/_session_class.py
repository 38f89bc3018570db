"""The class that the edit writes into a program. It does what `_prepared.py` does, for the fetches and feeds that
programs mostly have: one tensor, operation or variable, or a list of them, and tensors with numbers that are fed."""

from __future__ import annotations

NAME = "PreparedSession"

TEMPLATE = '''\
class {name}({base}):
    """A session that looks up what a run fetches and feeds once, and not again in every call."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._known_runs = {{}}
        self._known_version = None

    def _run(self, handle, fetches, feed_dict, options, run_metadata):
        several, feeds = type(fetches) in (list, tuple), feed_dict or {{}}
        wanted = fetches if several else [fetches]
        key = (several, *map(id, wanted), None, *map(id, feeds))
        known = self._known_runs.get(key) or self._look_up(key, wanted, feeds)
        arrays = None if known is None or handle or self._closed else self._arrays(known[0], feeds.values())
        if arrays is None:
            return super()._run(handle, fetches, feed_dict, options, run_metadata)
        if self._known_version != self.graph.version:  # the session takes over what was added to the graph
            self._extend_graph()
            self._known_version = self.graph.version
        _, is_tensor, tensors, operations, _ = known
        run = self._call_tf_sessionrun
        values = iter(self._do_call(run, options, arrays, tensors, operations, run_metadata))
        results = [next(values) if it_is else None for it_is in is_tensor]
        return type(fetches)(results) if several else results[0]

    def _look_up(self, key, wanted, feeds):
        """Keep the parts of a run that has plain tensors and operations only; None for another one."""
        graph = self.graph
        if len(self._known_runs) > 255 or any(getattr(item, "graph", None) is not graph for item in (*wanted, *feeds)):
            return None
        try:
            elements = [graph.as_graph_element(item) for item in wanted]
            fed = [graph.as_graph_element(item, allow_operation=False) for item in feeds]
        except (TypeError, ValueError):
            return None
        is_tensor = [not isinstance(item, {operation}) for item in elements]
        tensors = [item for item, it_is in zip(elements, is_tensor) if it_is]
        operations = [item for item, it_is in zip(elements, is_tensor) if not it_is]
        kinds = [item.dtype.as_numpy_dtype for item in fed]
        if (
            not elements
            or len({{id(item) for item in elements + fed}}) < len(elements) + len(fed)
            or not all(graph.is_fetchable(item) for item in elements)
            or not all(graph.is_feedable(item) for item in fed)
            or any(item.op.type.startswith("GetSessionHandle") for item in tensors)
            or not all({np}.issubdtype(kind, {np}.number) or kind is {np}.bool_ for kind in kinds)
        ):
            return None
        feeding = [(item._as_tf_output(), item.shape, kind, set()) for item, kind in zip(fed, kinds)]
        tensors = [item._as_tf_output() for item in tensors]
        operations = [item._c_op for item in operations]
        held = list(wanted), list(feeds)  # an id belongs to its object for as long as that exists
        self._known_runs[key] = known = feeding, is_tensor, tensors, operations, held
        return known

    def _arrays(self, feeding, values):
        """What is fed, as `run` feeds it; None where `run` has to look at it itself."""
        arrays = {{}}
        for (output, shape, kind, seen), value in zip(feeding, values):
            if not isinstance(value, ({np}.ndarray, {np}.number, int, float, list, tuple)):
                return None
            array = {np}.asarray(value).astype(kind, copy=False)
            if isinstance(value, int) and array.item() != value:
                return None
            if array.shape not in seen and not shape.is_compatible_with(array.shape):
                return None
            seen.add(array.shape)
            arrays[output] = array
        return arrays
'''
