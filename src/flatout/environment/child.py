"""The facts that only TensorFlow has, read in a child process.

Importing TensorFlow takes seconds and reads its variables once, and a broken one can kill the process that
imports it. A child that fails or hangs is a fact as well.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from typing import Any

from flatout.model.text import LONGEST_FACT, clean, clean_all

_MARK = "flatout-facts:"
_LINES_KEPT = 40

# Each fact is read by itself: a TensorFlow that lacks one name still gives the others.
_QUESTIONS = """
import json, sys
sys.path[:] = [entry for entry in sys.path if entry]  # a file tensorflow.py of the user is not meant
import tensorflow as tf

def ask(question):
    try:
        return question()
    except Exception as error:
        return None

def onednn():
    from tensorflow.python.util import _pywrap_util_port
    return bool(_pywrap_util_port.IsMklEnabled())

def protobuf():
    from google.protobuf.internal import api_implementation
    return api_implementation.Type()

def keras():
    import keras
    return {"version": keras.__version__, "backend": getattr(keras.backend, "backend", lambda: None)()}

print("MARK" + json.dumps({
    "version": tf.__version__,
    "build": ask(lambda: {key: value if isinstance(value, (bool, list)) else str(value)
                          for key, value in tf.sysconfig.get_build_info().items()}),
    "devices": ask(lambda: [{"name": device.name, "type": device.device_type}
                            for device in tf.config.list_physical_devices()]),
    "intra_op_threads": ask(tf.config.threading.get_intra_op_parallelism_threads),
    "inter_op_threads": ask(tf.config.threading.get_inter_op_parallelism_threads),
    "xla": ask(lambda: bool(tf.test.is_built_with_xla())),
    "onednn": ask(onednn),
    "protobuf": ask(protobuf),
    "keras": ask(keras),
}))
""".replace("MARK", _MARK)


def ask(timeout: float = 120.0, python: str = sys.executable, questions: str = _QUESTIONS) -> dict[str, Any]:
    """The facts, or `error` as text. `messages` are the lines that TensorFlow wrote to stderr."""
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "0"}  # its messages about libraries are facts too
    # Files and not pipes: a child that is killed may leave grandchildren that hold a pipe open.
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                [python, "-c", questions],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            return {
                "asked": True,
                "error": f"{python} could not be started: {error.strerror}",
                "messages": [],
            }
        try:
            code: int | None = process.wait(timeout)
        except (subprocess.TimeoutExpired, KeyboardInterrupt) as stop:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if isinstance(stop, KeyboardInterrupt):
                raise
            code = None
        text, complaints = _text(output), _text(errors)
    return {"asked": True, **_interpret(code, text, complaints, timeout)}


def _interpret(code: int | None, text: str, complaints: str, timeout: float) -> dict[str, Any]:
    messages = [clean(line, LONGEST_FACT) for line in complaints.splitlines() if line.strip()][-_LINES_KEPT:]
    answer = next((line[len(_MARK) :] for line in text.splitlines() if line.startswith(_MARK)), None)
    if answer is not None:
        # A crash at exit does not matter: the answer is here.
        return {**clean_all(json.loads(answer)), "error": None, "messages": messages}
    last = messages[-1] if messages else "it printed nothing"
    if code is None:
        error = f"TensorFlow did not finish importing within {timeout:.0f} s; its last message: {last}"
    elif code < 0:
        error = f"Importing TensorFlow ended in {_signal_name(-code)}; its last message: {last}"
    else:
        error = last
    return {"error": clean(error, LONGEST_FACT), "messages": messages}


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _text(stream: Any, limit: int = 1 << 20) -> str:
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(0, size - limit))
    return str(stream.read().decode("utf-8", errors="replace"))
