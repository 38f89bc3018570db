"""Rewrites the loop of a Keras 3 GRU into the form that tf2onnx converts to one GRU operation.

tf2onnx knows the loop of earlier versions of Keras. Keras 3 splits the two rows of the bias inside the loop and cuts
the recurrent part with slices. Without this rewrite the loop becomes dozens of small nodes, or that many for each step
when unrolled. In the frozen graph, the rows become inputs of the loop and the slices become a split.
"""

from __future__ import annotations

from typing import Any


def rewrite_gru_loops(definition: Any) -> None:
    """Rewrite a GraphDef in place. Other loops stay as they are."""
    functions = {function.signature.name: function for function in definition.library.function}
    constants = {node.name: node for node in definition.node if node.op == "Const"}
    for loop in [node for node in definition.node if node.op in ("While", "StatelessWhile")]:
        body, condition = (functions[loop.attr[name].func.name] for name in ("body", "cond"))
        _Body(body).split_slices()
        for squeeze, row in list(_Body(body).rows(loop, constants)):
            constant = definition.node.add()
            constant.CopyFrom(row)
            _add_loop_input(loop, body, condition, squeeze, constant)


class _Body:
    """The nodes of a loop body. An input of a node is `node:output:index` or the name of an argument."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.nodes = {node.name: node for node in function.node_def}
        self.arguments = [argument.name for argument in function.signature.input_arg]

    def producer(self, name: str, kind: str) -> Any:
        node = self.nodes.get(name.partition(":")[0])
        return node if node is not None and node.op == kind else None

    def value(self, name: str) -> Any:
        from tensorflow import make_ndarray

        constant = self.producer(name, "Const")
        return make_ndarray(constant.attr["value"].tensor) if constant is not None else None

    def rows(self, loop: Any, constants: dict[str, Any]) -> Any:
        """Each Squeeze of a row of a constant input of the loop, with a constant of that row alone."""
        from tensorflow import make_ndarray, make_tensor_proto

        for node in self.nodes.values():
            split = self.producer(node.input[0], "Split") if node.op == "Squeeze" else None
            read = self.producer(split.input[1], "Identity") if split is not None else None
            axis = self.value(split.input[0]) if split is not None else None
            if read is None or axis is None or int(axis) != 0 or read.input[0] not in self.arguments:
                continue
            whole = constants.get(loop.input[self.arguments.index(read.input[0])])
            if whole is None:
                continue
            array = make_ndarray(whole.attr["value"].tensor)
            row = type(whole)(name=f"{loop.name}/{node.name}", op="Const", attr={"dtype": whole.attr["dtype"]})
            row.attr["value"].tensor.CopyFrom(make_tensor_proto(array[int(node.input[0].rpartition(":")[2])]))
            yield node, row

    def split_slices(self) -> None:
        """Where (h·R + b) is cut into three by slices: make the sum a BiasAdd and the slices one Split."""
        for total in [node for node in self.nodes.values() if node.op == "AddV2"]:
            product = self.producer(total.input[0], "MatMul")
            result = f"{total.name}:z:0"
            users = [node for node in self.nodes.values() if result in node.input]
            if product is None or len(users) != 3 or any(node.op != "StridedSlice" for node in users):
                continue
            begins = [self.value(node.input[1]) for node in users]
            if any(begin is None or begin.shape != (2,) for begin in begins):
                continue
            ordered = [users[i] for i in sorted(range(3), key=lambda i: int(begins[i][1]))]
            self._replace(total, ordered)

    def _replace(self, total: Any, slices: list[Any]) -> None:
        from tensorflow import make_tensor_proto

        total.op = "BiasAdd"
        total.attr["data_format"].s = b"NHWC"
        kind = total.attr["T"]
        axis = self.function.node_def.add(name=f"{total.name}/axis", op="Const")
        axis.attr["dtype"].type = 3
        axis.attr["value"].tensor.CopyFrom(make_tensor_proto(1))
        split = self.function.node_def.add(name=f"{total.name}/split", op="Split")
        split.input.extend([f"{axis.name}:output:0", f"{total.name}:output:0"])
        split.attr["num_split"].i = len(slices)
        split.attr["T"].CopyFrom(kind)
        for index, node in enumerate(slices):
            _rename(self.function, f"{node.name}:output:0", f"{split.name}:output:{index}")
            self.function.node_def.remove(node)


def _add_loop_input(loop: Any, body: Any, condition: Any, squeeze: Any, constant: Any) -> None:
    """Pass a constant through the loop as one more variable, in place of the Squeeze in its body."""
    kind = constant.attr["dtype"].type
    loop.input.insert(len(loop.attr["T"].list.type), constant.name)
    loop.attr["T"].list.type.append(kind)
    loop.attr["output_shapes"].list.shape.add().CopyFrom(constant.attr["value"].tensor.tensor_shape)
    name = "row_" + "".join(c if c.isalnum() else "_" for c in squeeze.name).lower()
    for function in (body, condition):
        function.signature.input_arg.add(name=name, type=kind)
    body.signature.output_arg.add(name=f"{name}_out", type=kind)
    body.ret[f"{name}_out"] = name
    _rename(body, f"{squeeze.name}:output:0", name)


def _rename(function: Any, old: str, new: str) -> None:
    for node in function.node_def:
        if old in node.input:
            node.input[:] = [new if name == old else name for name in node.input]
    for key, name in function.ret.items():
        if name == old:
            function.ret[key] = new
