"""The elements of a pipeline as named values, and the structure in which the reader restores them.

Handles tuples, dictionaries, ragged and sparse tensors of any nesting. Runs in the child, with TensorFlow.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flatout.data.shards import tensors
from flatout.data.shards.example import Value
from flatout.data.shards.schema import Feature
from flatout.model.errors import DataUnusable

ONLY_NAME = "value"
"""The name of an element's only tensor."""


class Layout:
    def __init__(self, dataset: Any) -> None:
        self._features: list[Feature] = []
        self._unknown_rank: set[int] = set()
        self.structure = self._structure(dataset.element_spec, "")
        names = [one.name for one in self._features]
        names += [one.name + tensors.SHAPE for one in self._features if one.varies]
        if len(set(names)) < len(names):
            raise DataUnusable(f"Two parts of an element have the same name: {', '.join(sorted(names))}. Rename one.")

    @property
    def features(self) -> tuple[Feature, ...]:
        return tuple(self._features)

    def values(self, element: Any) -> dict[str, Value]:
        """One element as the values that a shard stores."""
        found: dict[str, Value] = {}
        for number, tensor in enumerate(_parts(element)):
            array = _as_array(tensor.numpy())
            one = self._features[number]
            if number in self._unknown_rank:
                one = self._with_rank(number, array.ndim)
            elif array.ndim != len(one.shape):
                raise DataUnusable(
                    f"{one.name} has {len(one.shape)} dimensions in the first element and {array.ndim} in another, "
                    "which the reader could not restore. Map it to tensors of one rank first."
                )
            found.update(tensors.stored(one, array))
        return found

    def _with_rank(self, number: int, rank: int) -> Feature:
        """The feature of a tensor whose rank the pipeline does not declare: the rank is that of the first element."""
        one = self._features[number]
        ranked = tensors.feature(one.name, one.dtype, (None,) * rank)
        assert ranked is not None
        self._unknown_rank.discard(number)
        self._features[number] = ranked
        return ranked

    def _structure(self, spec: Any, path: str) -> Any:
        import tensorflow as tf

        if isinstance(spec, tf.TensorSpec):
            return self._tensor(path or ONLY_NAME, spec.dtype.name, spec.shape)
        if isinstance(spec, tf.RaggedTensorSpec):
            rank = spec.ragged_rank
            # After the ragged dimensions come those of the flat values.
            inner = [None, *spec.shape.as_list()[rank + 1 :]] if spec.shape.rank is not None else [None]
            parts = [self._tensor(f"{path or ONLY_NAME}/values", spec.dtype.name, tf.TensorShape(inner))]
            splits = spec.row_splits_dtype.name
            parts += [
                self._tensor(f"{path or ONLY_NAME}/splits_{n}", splits, tf.TensorShape([None])) for n in range(rank)
            ]
            return {"ragged": parts}
        if isinstance(spec, tf.SparseTensorSpec):
            rank = spec.shape.rank
            base = path or ONLY_NAME
            return {
                "sparse": [
                    self._tensor(f"{base}/indices", "int64", tf.TensorShape([None, rank])),
                    self._tensor(f"{base}/values", spec.dtype.name, tf.TensorShape([None])),
                    self._tensor(f"{base}/dense_shape", "int64", tf.TensorShape([rank])),
                ]
            }
        if isinstance(spec, dict):
            return {"dict": [[key, self._structure(value, _below(path, key))] for key, value in spec.items()]}
        if isinstance(spec, (tuple, list)):
            return {"tuple": [self._structure(value, _below(path, number)) for number, value in enumerate(spec)]}
        raise DataUnusable(
            f"The elements contain a {type(spec).__name__} at {path or 'the top level'}, which a record cannot hold. "
            "Map it to tensors first."
        )

    def _tensor(self, name: str, dtype: str, shape: Any) -> str:
        lengths = tuple(shape.as_list()) if shape.rank is not None else (None,)
        one = tensors.feature(name, dtype, lengths)
        if one is None:
            raise DataUnusable(f"{name} has the type {dtype}, which a record cannot hold. Cast it first.")
        if shape.rank is None:
            self._unknown_rank.add(len(self._features))
        self._features.append(one)
        return name


def _parts(element: Any) -> Iterator[Any]:
    """The tensors of an element, in the order of `_structure`."""
    import tensorflow as tf

    if isinstance(element, dict):
        for value in element.values():
            yield from _parts(value)
    elif isinstance(element, tf.RaggedTensor):
        yield element.flat_values
        yield from element.nested_row_splits
    elif isinstance(element, tf.SparseTensor):
        yield from (element.indices, element.values, element.dense_shape)
    elif isinstance(element, (tuple, list)):
        for value in element:
            yield from _parts(value)
    else:
        yield element


def _as_array(array: Any) -> Any:
    """A single string comes as `bytes`, not as an array."""
    import numpy as np

    return np.asarray(array, dtype=object) if isinstance(array, bytes) else array


def _below(path: str, key: object) -> str:
    return f"{path}/{key}" if path else str(key)
