"""Stands in for tensorflow.examples.tutorials.mnist.input_data: made pictures, a tenth of MNIST's rows."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[1]))
from made_data import pictures


class DataSet:
    def __init__(self, images, labels):
        self.images, self.labels = images, labels
        self.num_examples = len(images)
        self.epochs_completed = 0
        self.place = 0

    def next_batch(self, batch_size, fake_data=False, shuffle=True):
        """The next rows; they are put in another order before each round."""
        if self.place == 0 and self.epochs_completed == 0 and shuffle:
            self.reorder()
        end = self.place + batch_size
        if end <= self.num_examples:
            found = self.images[self.place : end], self.labels[self.place : end]
            self.place = end
            return found
        rest, other_rest = self.images[self.place :], self.labels[self.place :]
        self.epochs_completed += 1
        if shuffle:
            self.reorder()
        self.place = batch_size - len(rest)
        images = np.concatenate([rest, self.images[: self.place]])
        return images, np.concatenate([other_rest, self.labels[: self.place]])

    def reorder(self):
        order = np.random.permutation(self.num_examples)
        self.images, self.labels = self.images[order], self.labels[order]


def read_data_sets(train_dir, fake_data=False, one_hot=False, dtype=np.float32, reshape=True, **others):
    def made(count, seed):
        x, y = pictures(count, seed=seed)
        x = x.reshape(count, 784) if reshape else x[..., None]
        return DataSet(x.astype(np.float32) / 255, np.eye(10, dtype=np.float32)[y] if one_hot else y)

    return SimpleNamespace(train=made(5_500, 1), validation=made(500, 2), test=made(1_000, 3))
