"""Imported at start-up by every program of the corpus: a clock, made data sets, and seeds.

FLATOUT_PUBLIC_CLOCK names a file to which `pid seconds CPU-seconds` is added once TensorFlow and Keras are imported, so
that the time of the imports can be left out, and again at the end as `pid end CPU-seconds`. FLATOUT_PUBLIC_SEED
seeds Python, numpy and TensorFlow at that moment. Files in KERAS_HOME were made by made_data.py, so Keras must not look
at their checksums nor unpack them again.
"""

import atexit
import importlib.abc
import importlib.util
import os
import sys
import time


def after_tensorflow(module):
    if "keras" not in sys.modules:
        import keras  # noqa: F401  # `tf.keras` would import it later, in the time that counts
    ready()


def after_keras(module):
    if "tensorflow" in sys.modules:
        ready()


def ready():
    if seed := os.environ.get("FLATOUT_PUBLIC_SEED"):
        import keras

        if hasattr(keras, "utils"):  # still being imported where the program imports keras first
            keras.utils.set_random_seed(int(seed))
            default = sys.modules["tensorflow"].compat.v1.get_default_graph()
            default.seed = int(seed)  # for programs that switch eager execution off
    if clock := os.environ.get("FLATOUT_PUBLIC_CLOCK"):
        with open(clock, "a") as file:
            file.write(f"{os.getpid()} {time.monotonic()} {time.process_time()}\n")


def ended(clock, pid):
    if os.getpid() == pid:  # not in a process that was forked off
        with open(clock, "a") as file:
            file.write(f"{pid} end {time.process_time()}\n")


def trust_files(module):
    unpack = module.extract_archive
    module.validate_file = lambda *arguments, **keywords: True
    module.extract_archive = lambda file, path=".", *rest: os.path.isdir(path) or unpack(file, path, *rest)


AFTER = {"tensorflow": after_tensorflow, "keras": after_keras, "keras.src.utils.file_utils": trust_files}


class AfterImport(importlib.abc.MetaPathFinder):
    """Calls a function once after a module has been executed."""

    def find_spec(self, name, path=None, target=None):
        then = AFTER.pop(name, None)
        if then is None:
            return None
        spec = importlib.util.find_spec(name) if path is None else self.below(name, path, target)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def executed(module):
            execute(module)
            then(module)

        spec.loader.exec_module = executed
        return spec

    def below(self, name, path, target):
        for finder in sys.meta_path:
            if finder is not self and (spec := finder.find_spec(name, path, target)) is not None:
                return spec
        return None


sys.meta_path.insert(0, AfterImport())
if "FLATOUT_PUBLIC_CLOCK" in os.environ:
    atexit.register(ended, os.environ["FLATOUT_PUBLIC_CLOCK"], os.getpid())
