"""Trains and saves figures after each epoch, as it is, then with `background-figures`.

Prints one JSON object: the files of both and whether they are equal, what the lever has noted, and what a figure raised
that cannot be drawn.
"""

import hashlib
import io
import json
import os
import sys

import keras
import matplotlib
import numpy as np
import tensorflow as tf

from flatout.cures.background_figures.inject import HOOKS

matplotlib.use("Agg")
import matplotlib.pyplot as plt


class Injection:
    notes = []

    def changed(self, what):
        self.notes.append(what)

    note = changed


class OfTheScript:
    def __call__(self, value, position):
        return f"{value:.1f}"


class Gallery(keras.callbacks.Callback):
    def __init__(self, directory):
        super().__init__()
        self.directory = directory

    def on_epoch_end(self, epoch, logs=None):
        answers = self.model.predict(x[:16], verbose=0)
        fig, axes = plt.subplots(2, 2)
        for ax, rows in zip(axes.flat, answers.reshape(4, 2, 2)):
            ax.imshow(rows, vmin=-1, vmax=1)
        fig.savefig(f"{self.directory}/at-{epoch}.png")
        plt.savefig(os.path.join(self.directory, f"at-{epoch}.svg"), metadata={"Date": None})
        axes.flat[0].set_title("after it was saved")
        axes.flat[0].xaxis.set_major_formatter(OfTheScript())
        fig.savefig(f"{self.directory}/own-{epoch}.png", dpi=40)
        fig.savefig(io.BytesIO())
        plt.close(fig)


x = np.random.default_rng(1).normal(size=(320, 8)).astype("float32")


def train(directory):
    os.makedirs(directory)
    keras.utils.set_random_seed(1)
    plt.rcParams["svg.hashsalt"] = "same"
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(x, x[:, :1], batch_size=32, epochs=2, verbose=0, callbacks=[Gallery(directory)])


def contents(directory):
    return {name: hashlib.sha256(open(f"{directory}/{name}", "rb").read()).hexdigest() for name in os.listdir(directory)}


train(sys.argv[1] + "/plain")
HOOKS.tensorflow(Injection(), tf)
train(sys.argv[1] + "/background")
plt.figure()
raised = ""
try:
    plt.savefig(sys.argv[1] + "/nowhere/a.png")
    plt.gcf().savefig(io.BytesIO())
except RuntimeError as error:
    raised = str(error)
plt.savefig(sys.argv[1] + "/last.png")
print(json.dumps({
    "plain": contents(sys.argv[1] + "/plain"),
    "background": contents(sys.argv[1] + "/background"),
    "notes": Injection.notes,
    "raised": raised,
}))  # fmt: skip
