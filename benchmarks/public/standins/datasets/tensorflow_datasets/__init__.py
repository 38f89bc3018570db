"""Stands in for tensorflow_datasets: made data behind `load`, `builder` and `as_numpy`.

TFDS_ROWS changes how many rows a training split has (6000); a test split has a sixth of them.
"""

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[2]))
from made_data import pictures, texts

from .subwords import SubwordTextEncoder

ROWS = int(os.environ.get("TFDS_ROWS", "6000"))
SHAPES = {
    "mnist": ((28, 28, 1), 10),
    "fashion_mnist": ((28, 28, 1), 10),
    "kmnist": ((28, 28, 1), 10),
    "cifar10": ((32, 32, 3), 10),
    "cifar100": ((32, 32, 3), 100),
    "svhn_cropped": ((32, 32, 3), 10),
    "horses_or_humans": ((300, 300, 3), 2),
    "cats_vs_dogs": ((200, 180, 3), 2),
    "tf_flowers": ((240, 320, 3), 5),
    "rock_paper_scissors": ((300, 300, 3), 3),
}
TRANSLATIONS = ("ted_hrlr_translate", "ted_multi_translate", "para_crawl", "wmt14_translate")
features = SimpleNamespace(text=SimpleNamespace(SubwordTextEncoder=SubwordTextEncoder))
deprecated = features
LARGE = 100_000
"""Pixels from which a split has a tenth of the rows."""


class Labels:
    def __init__(self, classes):
        self.num_classes = classes
        self.names = [f"class{number}" for number in range(classes)]

    def int2str(self, number):
        return self.names[int(number)]

    def str2int(self, name):
        return self.names.index(name)


class Split:
    TRAIN, TEST, VALIDATION = "train", "test", "validation"

    def __init__(self, rows):
        self.num_examples = rows


class Info:
    def __init__(self, name, classes, shape):
        self.name, self.full_name = name, f"{name}/1.0.0"
        self.features = {
            "label": Labels(classes),
            "image" if shape else "text": type("Feature", (), {"shape": shape})(),
        }
        self.splits = {split: Split(rows_of(name, split)) for split in ("train", "test", "validation", "unsupervised")}


def load(name, split=None, with_info=False, as_supervised=False, batch_size=None, shuffle_files=False, **others):
    """As tensorflow_datasets.load: a dataset, several by the form of `split`, and the info where it is wanted."""
    name = name.partition("/")[0].partition(":")[0]
    if split is None:
        names = ("train", "unsupervised", "test") if name == "imdb_reviews" else ("train", "test")
        names = ("train", "validation", "test") if name in TRANSLATIONS else names
        found = {one: dataset(name, one, as_supervised, batch_size) for one in names}
    elif isinstance(split, (list, tuple)):
        found = type(split)(dataset(name, one, as_supervised, batch_size) for one in split)
    else:
        found = dataset(name, split, as_supervised, batch_size)
    shape, classes = SHAPES.get(name, (None, 2))
    return (found, Info(name, classes, shape)) if with_info else found


def dataset(name, split, as_supervised, batch_size):
    import tensorflow as tf

    columns = rows(name, str(split))
    made = tf.data.Dataset.from_tensor_slices(tuple(columns.values()) if as_supervised else columns)
    if batch_size is not None:
        made = made.batch(LARGE if batch_size == -1 else batch_size)
    return next(iter(made)) if batch_size == -1 else made


def rows(name, split):
    base, _, part = split.partition("[")
    count = rows_of(name, base)
    begin, end = (place(text, count) for text in (part.rstrip("]").split(":") if part else ("", "")))
    chosen = slice(begin, end)
    seed = 1 + sum(map(ord, base))
    if name in SHAPES:
        shape, classes = SHAPES[name]
        x, y = pictures(count, shape, classes, seed)
        return {"image": x[chosen], "label": y[chosen].astype(np.int64)}
    if name in ("imdb_reviews", "yelp_polarity_reviews", "ag_news_subset", "glue"):
        x, y = texts(count, words=5_000, length=(20, 200), seed=seed)
        return {"text": np.array([" ".join(f"word{word}" for word in one) for one in x[chosen]]), "label": y[chosen]}
    if name in TRANSLATIONS:
        x, _ = texts(count, words=3_000, length=(39, 40), seed=seed)
        return translations(x[chosen], np.random.default_rng(seed))
    raise ValueError(f"the tensorflow_datasets stand-in has no {name}; it has {', '.join(SHAPES)} and imdb_reviews")


def translations(x, rng):
    """Most sentences are short, a few long; a translation leaves out some of the words."""
    pairs = {"pt": [], "en": []}
    for one, length in zip(x, 4 + rng.exponential(7, len(x)).astype(int), strict=True):
        pairs["pt"].append(" ".join(f"pt{word}" for word in one[:length]))
        pairs["en"].append(" ".join(f"en{word}" for word in one[:length] if rng.random() > 0.15))
    return {language: np.array(made) for language, made in pairs.items()}


def rows_of(name, split):
    rows = ROWS if split.startswith("train") else ROWS // 6
    return rows // 10 if np.prod(SHAPES.get(name, ((1,), 2))[0]) >= LARGE else rows


def place(text, count):
    text = text.strip()
    if not text:
        return None
    return count * int(text[:-1]) // 100 if text.endswith("%") else int(text)


def as_numpy(made):
    import tensorflow as tf

    if isinstance(made, tf.data.Dataset):
        return made.as_numpy_iterator()
    return tf.nest.map_structure(lambda tensor: tensor.numpy(), made)


class builder:  # noqa: N801  # the name of the true one
    def __init__(self, name, **others):
        self.name = name
        self.info = Info(name, SHAPES.get(name, (None, 2))[1], SHAPES.get(name, (None, 2))[0])

    def download_and_prepare(self, **others):
        pass

    def as_dataset(self, split=None, batch_size=None, as_supervised=False, **others):
        return load(self.name, split, as_supervised=as_supervised, batch_size=batch_size)


def disable_progress_bar():
    pass


enable_progress_bar = disable_progress_bar
