"""Whether a text is written for TensorFlow 1: sessions, placeholders, `tf.contrib`, or its names under `compat.v1`.

Keras of that time counts as well: arguments of Keras 1, or its old modules beside metrics by their old names.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from flatout.source.analysis.quick_look import line_around

_NAMES = (
    r"(?:Session|InteractiveSession|placeholder|placeholder_with_default|ConfigProto|GPUOptions|contrib\b|flags\b|"
    r"app\.(?:run|flags)|get_variable|variable_scope|global_variables|global_variables_initializer|"
    r"initialize_all_variables|local_variables_initializer|trainable_variables|get_collection|add_to_collection|"
    r"reset_default_graph|set_random_seed|get_default_graph|layers\.|logging\.(?:info|set_verbosity|warn)|"
    r"train\.(?:\w+Optimizer|Saver|Supervisor|MonitoredTrainingSession|string_input_producer|batch|shuffle_batch|"
    r"start_queue_runners|get_or_create_global_step|slice_input_producer)|"
    r"summary\.(?:FileWriter|merge_all|merge)|gfile\.|py_func|python_io\.|parse_single_example|FixedLenFeature|"
    r"random_normal|random_uniform|truncated_normal|multinomial|to_float|to_double|to_int32|to_int64|ceil|log|image\.resize_images|assign|"
    r"losses\.(?:cosine_distance|absolute_difference|(?:sparse_softmax|softmax|sigmoid)_cross_entropy|huber_loss|hinge_loss|"
    r"log_loss|get_total_loss|add_loss|get_regularization_loss))"
)
_MARK = re.compile(
    rf"{_NAMES}\b|"
    r"compat\.v1\.(?:placeholder|disable_eager_execution|disable_v2_behavior|get_variable|train\.\w+Optimizer)"
)
"""What follows `tf.`"""
_OF_BACKEND = re.compile(r"\b(?:K|backend)\.get_session\(")
_EAGER = re.compile(r"^[^#'\"\n]*\btf\.train\.\w+Optimizer\(", re.MULTILINE)
"""Eager code for TensorFlow 1: it has tapes, and fails at this line with TensorFlow 2."""
_BEFORE = re.compile(r"[^#'\"]*(?<![\w.])")
"""What may stand before a mark in its line: no comment, no string, no longer name."""
_WHOLE = re.compile(
    r"^\s*(?:import tensorflow\.compat\.v1 as tf\b|from tensorflow\.compat import v1 as tf\b|"
    r"(?:#flatout-kept |pass  #flatout-kept )?\s*%tensorflow_version 1|tf\.disable_v2_behavior\()",
    re.MULTILINE,
)
_OF_WHOLE = ("tensorflow.compat.v1 as tf", "import v1 as tf", "%tensorflow_version 1", "tf.disable_v2_behavior(")
"""What a search that begins at each line would take long to find missing."""
_DOCSTRING = re.compile(r'("""|\'\'\').*?\1', re.DOTALL)
_ASKS = re.compile(r"(?:\bif\b|Version\().*__version__|__version__\s*(?:>|<|==|\.startswith|\.split|\[)")
"""Code for both versions."""
_OF_TWO = (b"GradientTape", b"enable_eager_execution")
_MAY_BE = frozenset(
    [
        *(
            b"Session",
            b"InteractiveSession",
            b"placeholder",
            b"ConfigProto",
            b"GPUOptions",
            b"contrib",
            b"flags",
            b"app",
        ),
        *(b"get_variable", b"variable_scope", b"global_variables_initializer", b"initialize_all_variables", b"v1"),
        *(b"reset_default_graph", b"set_random_seed", b"layers", b"logging", b"train", b"FileWriter", b"merge_all"),
        *(b"gfile", b"py_func", b"python_io", b"random_normal", b"random_uniform", b"truncated_normal", b"to_float"),
        *(b"tensorflow_version", b"disable_v2_behavior", b"get_collection", b"global_variables", b"to_int32"),
        *(b"placeholder_with_default", b"parse_single_example", b"FixedLenFeature", b"resize_images", b"multinomial"),
        *(b"local_variables_initializer", b"trainable_variables", b"get_default_graph", b"assign", b"log"),
        *(b"get_session", b"ceil", b"to_double", b"to_int64", b"losses"),
    ]
)
"""Words of which a text of TensorFlow 1 has at least one."""


_OF_KERAS_ONE = frozenset({"nb_epoch", "samples_per_epoch", "nb_val_samples", "border_mode"})
"""Arguments that Keras 2 renamed."""
_BY_KERAS_ONE = re.compile(r"^(fit|fit_generator|evaluate_generator|\w*(Convolution|Conv|Pooling)\dD)$")
_OLD_MODULE = re.compile(
    r"^[ \t]*from keras\.layers\.(core|convolutional|recurrent|embeddings|normalization|pooling|merge) import",
    re.MULTILINE,
)
_OF_SEPARATE_KERAS = re.compile(
    r"^[ \t]*(?:from|import) keras\.(?:engine\.topology|legacy|backend\.tensorflow_backend)\b|"
    r"^[ \t]*from keras\.layers\.recurrent import .*\bRecurrent\b|"
    r"^[ \t]*from keras\.layers(?:\.cudnn_recurrent)? import .*\bCuDNN(?:LSTM|GRU)\b|"
    r"^[ \t]*from keras\.utils(?:\.training_utils)? import .*\bmulti_gpu_model\b|"
    r"^[^#'\"\n]*\bimage_dim_ordering\(",
    re.MULTILINE,
)
"""What the separate Keras has no more since it is that of TensorFlow, from 2.4 on."""
_SEPARATE_WORDS = frozenset(
    {
        *(b"topology", b"legacy", b"tensorflow_backend", b"Recurrent", b"CuDNNLSTM", b"CuDNNGRU"),
        *(b"multi_gpu_model", b"image_dim_ordering"),
    }
)
_FROM_TENSORFLOW = re.compile(
    r"^[ \t]*from tensorflow import .*\b(?:set_random_seed|Session|InteractiveSession|ConfigProto|GPUOptions|"
    r"placeholder|get_default_graph|global_variables_initializer)\b",
    re.MULTILINE,
)
_OLD_METRIC = re.compile(r"""\.history\[["']acc["']\]""")
_ACC_ASKED = re.compile(r"""metrics\s*=\s*\[\s*["']acc["']""")
_GONE_IN_TWO = re.compile(rf"{_NAMES}\b")


_NEW = re.compile(
    r"\btf\.(random\.set_seed|summary\.create_file_writer|data\.AUTOTUNE|config\.(list_physical_devices|"
    r"list_logical_devices|run_functions_eagerly)|keras\.utils\.(image_dataset_from_directory|set_random_seed))\b"
)
"""Names that only TensorFlow 2 has."""
_NEW_WORDS = frozenset(
    {
        *(b"set_seed", b"create_file_writer", b"AUTOTUNE", b"list_physical_devices", b"list_logical_devices"),
        *(b"run_functions_eagerly", b"image_dataset_from_directory", b"set_random_seed"),
    }
)


def is_version_one(text: str, words: set[bytes]) -> bool:
    """`words`: all words of the text."""
    if is_keras_one(text, words):
        return True
    if words.isdisjoint(_MAY_BE):
        return False
    if not words.isdisjoint((b"v1", b"tensorflow_version", b"disable_v2_behavior")) and _is_whole(text):
        return True
    if any(word in words for word in _OF_TWO):
        if b"train" not in words or "tf.train." not in text or _EAGER.search(text) is None:
            return False
        asks = b"__version__" in words and _ASKS.search(text) is not None
        return not asks and _EAGER.search(_DOCSTRING.sub("", text)) is not None
    if b"function" in words and ("@tf.function" in text or "tf.function(" in text):
        return False
    if b"__version__" not in words and _FROM_TENSORFLOW.search(text):
        return _FROM_TENSORFLOW.search(_DOCSTRING.sub("", text)) is not None
    if not _is_marked(text) or (b"__version__" in words and _ASKS.search(text)):
        return False
    return _is_marked(_DOCSTRING.sub("", text))


def is_keras_one(text: str, words: set[bytes]) -> bool:
    """Whether it can run only with a Keras that was made for TensorFlow 1."""
    if b"keras" not in words:
        return False
    if not words.isdisjoint(_SEPARATE_WORDS) and _OF_SEPARATE_KERAS.search(text):
        return True
    if b"acc" in words and _OLD_METRIC.search(text) and _OLD_MODULE.search(text) and not _ACC_ASKED.search(text):
        return True
    if not any(name.encode() in words for name in _OF_KERAS_ONE):
        return False
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError):
        return False
    own = {node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    return any(
        _BY_KERAS_ONE.match(name := getattr(node.func, "attr", getattr(node.func, "id", ""))) is not None
        and name not in own
        and any(item.arg in _OF_KERAS_ONE for item in node.keywords)
        for node in nodes
        if isinstance(node, ast.Call)
    )


def fails_with_two(text: str, words: set[bytes]) -> bool:
    """Whether a text for TensorFlow 1 uses names that TensorFlow 2 has no more: what imports it fails as well."""
    if is_keras_one(text, words):
        return True
    if _is_whole(text) or any(word in words for word in (*_OF_TWO, b"v1")):
        return False
    bare = _DOCSTRING.sub("", text)
    if _FROM_TENSORFLOW.search(bare):
        return True
    return any(_stands_alone(bare, at) and _GONE_IN_TWO.match(bare, end) for at, end in _marks(bare))


def is_version_two(text: str, words: set[bytes]) -> bool:
    """Whether a text by itself is for TensorFlow 2: traced functions, tapes with optimizers of Keras, new names."""
    if not words.isdisjoint(_NEW_WORDS) and _NEW.search(text) is not None:
        return True
    if b"function" in words and "tf.function" in text:
        return True
    tapes = b"GradientTape" in words and b"enable_eager_execution" not in words
    return tapes and re.search(r"\b(?:keras|tf)\.optimizers\b", text) is not None


def _is_whole(text: str) -> bool:
    return any(part in text for part in _OF_WHOLE) and _WHOLE.search(text) is not None


def _is_marked(text: str) -> bool:
    return any(_stands_alone(text, at) for at, _ in _marks(text))


def _marks(text: str) -> Iterator[tuple[int, int]]:
    """Where they begin, and where what follows the package begins.

    By plain searches: one regular expression for all takes ten times as long."""
    for package in ("tf.", "tensorflow."):
        at = text.find(package)
        while at >= 0:
            end = at + len(package)
            if _MARK.match(text, end):
                yield at, end
            at = text.find(package, end)
    if "get_session(" in text:
        yield from (found.span() for found in _OF_BACKEND.finditer(text))


def _stands_alone(text: str, at: int) -> bool:
    """Whether nothing in the line before a mark makes it a comment, a string or the end of a longer name."""
    begin, _ = line_around(text, at, at)
    return begin is not None and _BEFORE.fullmatch(text, begin, at) is not None
