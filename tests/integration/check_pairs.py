"""Runs programs one after the other in one process, since TensorFlow takes long to start, and prints what each printed.

Arguments: files. Prints one JSON object: file → what it wrote to standard output, or "error: …".
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import tempfile
from pathlib import Path


def main(files: list[str]) -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf

    answers = {}
    for file in files:
        tf.keras.backend.set_floatx("float32")
        tf.keras.config.set_dtype_policy("float32")
        tf.config.run_functions_eagerly(False)  # one of them switches it on
        tf.debugging.set_log_device_placement(False)
        tf.keras.utils.set_random_seed(7)
        said = io.StringIO()
        program = compile(Path(file).read_text(), file, "exec")
        try:
            with contextlib.redirect_stdout(said), tempfile.TemporaryDirectory() as folder:
                os.chdir(folder)
                exec(program, {"__name__": "__main__"})
        except Exception as error:
            answers[file] = f"error: {type(error).__name__}: {error}"
        else:
            answers[file] = said.getvalue()
    sys.stdout.write(json.dumps(answers))


if __name__ == "__main__":
    main(sys.argv[1:])
