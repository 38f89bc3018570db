"""Whether a file is part of a program that is run again and again, or a script that is written to try something once.

Outside readers called nine of ten slow loops useful in the first kind, and half of them in the second: see
docs/check-precision.md.
"""

from __future__ import annotations

import re

from flatout.source.analysis.scopes import Module
from flatout.source.analysis.small_data import KNOWN
from flatout.source.analysis.version_one import is_version_two

_STARTED = re.compile(
    r"^[ \t]*(import|from)[ \t]+(argparse|click|fire|hydra|typer|optparse)\b|\bDEFINE_\w+\(|\bsys\.argv\b|"
    r"\b__name__ *== *[\"']__main__",
    re.MULTILINE,
)
"""A program is started by itself, and often takes options."""
_LIBRARIES = KNOWN | frozenset(
    {
        *("cv2", "skimage", "imageio", "imutils", "albumentations", "imgaug", "h5py", "yaml", "joblib", "numba"),
        *("tensorflow_datasets", "tensorflow_hub", "tensorflow_text", "tensorflow_io", "tensorflow_model_optimization"),
        *("keras_tuner", "kerastuner", "tf_agents", "transformers", "tokenizers", "datasets", "sentencepiece", "nltk"),
        *("gym", "gymnasium", "pygame", "pybullet", "librosa", "soundfile", "music21", "jieba", "gensim", "spacy"),
        *("torch", "torchvision", "xgboost", "lightgbm", "statsmodels", "networkx", "sympy", "rdkit", "nibabel"),
        *("requests", "bs4", "wget", "gdown", "kaggle", "google", "yfinance", "pandas_datareader", "pandas_profiling"),
        *("mlflow", "wandb", "streamlit", "flask", "graphviz", "pydot", "ipywidgets", "bokeh", "altair", "psutil"),
        *("termcolor", "tabulate", "emoji", "regex", "talib", "openpyxl", "xlrd", "pkg_resources", "mlxtend"),
    }
)
"""What scripts import besides modules of their own project."""
_NAMED_DATA = re.compile(
    r"\b(tfds|tensorflow_datasets)\b|\bdatasets\.|\b(fashion_?mnist|mnist|cifar_?100?|imdb)\b", re.I
)
"""Data sets of ten thousand samples and more, by their names."""
_KEEPS = (
    "save",
    "save_weights",
    "save_model",
    "Checkpoint",
    "CheckpointManager",
    "create_file_writer",
    "imwrite",
    "dump",
)
"""What a program does with results that are of use to somebody."""
_KERAS_OF_TENSORFLOW = (2, 4)
"""A TensorFlow that has Keras 2.4 at least, which is that of TensorFlow."""
_KERAS_THREE = re.compile(
    r"\bkeras\.(ops|saving|random|version|config)\b|\bKERAS_BACKEND\b|\bkeras_(hub|cv|nlp)\b|\.keras[\"']|"
    r"\bfrom keras import (.*\b)?(ops|saving|random)\b|\b(image|text|audio)_dataset_from_directory\b"
)
"""Names that only Keras 3, or that of TensorFlow, has."""
_TRAINS = ("fit", "fit_generator", "train_on_batch", "GradientTape")
"""Calls of which a file that trains has one."""


def is_program(module: Module) -> bool:
    """Whether the file has options, starts itself, or imports other modules than libraries: those of its project."""
    known = module.__dict__.get("_is_program")
    if known is None:
        known = module.__dict__["_is_program"] = bool(
            _STARTED.search(module.text) or not module.names.only_of(_LIBRARIES)
        )
    return known


def predicts_often(module: Module) -> bool:
    """Whether it is a program, or one that plays: each turn needs the answer of the turn before, for many thousand."""
    if _may_have_old_keras(module):
        return False
    return is_program(module) or _plays(module)


def may_use_tensorflow(module: Module) -> bool:
    """Whether tf.data and new layers may be there: not where all is of a separate Keras that may be an old one."""
    return module.names.imports_any("tensorflow") or not _may_have_old_keras(module)


def feeds_training(module: Module) -> bool:
    """Whether what the file reads comes to a training: it trains itself, or is part of a program."""
    return any(name in module.calls_by_name for name in _TRAINS) or is_program(module)


def _may_have_old_keras(module: Module) -> bool:
    """Whether its Keras may be a separate one before 2.4, whose `predict` sets up no dataset: nothing tells another."""
    if not module.names.has_separate_keras or (module.is_pinned and module.version >= _KERAS_OF_TENSORFLOW):
        return False
    text = module.text
    return _KERAS_THREE.search(text) is None and not is_version_two(text, set(re.findall(rb"\w+", text.encode())))


def trains_in_earnest(module: Module) -> bool:
    """Whether it is a program, or a script, no notebook, that trains on a data set of a name, keeps what it trained, or
    plays."""
    if is_program(module):
        return True
    if module.path.endswith(".ipynb"):
        return False
    if any(name in module.calls_by_name for name in _KEEPS) or _plays(module):
        return True
    return _NAMED_DATA.search(module.text) is not None


def _plays(module: Module) -> bool:
    return "step" in module.calls_by_name and "reset" in module.calls_by_name
