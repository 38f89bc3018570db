"""Heavy libraries are imported inside functions only, so that flatout starts quickly and without them."""

import ast
from pathlib import Path

import pytest

import flatout

SOURCE = Path(flatout.__file__).parent
HEAVY = {
    "ai_edge_litert", "apache_beam", "array_record", "cuda", "h5py", "jax", "keras", "nncf", "onnx", "onnxruntime",
    "openvino", "ray", "tensorflow", "tensorrt", "tf2onnx", "tf_keras",
}  # fmt: skip


def imported_at_import_time(tree: ast.AST) -> set[str]:
    """The packages that importing a module imports: outside of functions and of `if TYPE_CHECKING`."""
    found: set[str] = set()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
        else:
            found |= imported_at_import_time(node)
    return found


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_heavy_library_is_imported_at_the_top_of_a_module(path):
    assert not imported_at_import_time(ast.parse(path.read_text(encoding="utf-8"))) & HEAVY


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import keras", {"keras"}),
        ("class A:\n    from tensorflow import data", {"tensorflow"}),
        ("try:\n    import onnx.helper\nexcept ImportError:\n    pass", {"onnx"}),
        ("def f():\n    import keras", set()),
        ("if TYPE_CHECKING:\n    import keras", set()),
    ],
)
def test_imports_are_seen_where_they_are_executed(source, found):
    assert imported_at_import_time(ast.parse(source)) == found
