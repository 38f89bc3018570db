"""A callback that predicts and computes a score with numpy after each epoch."""

import time

import keras
import numpy as np

PLANTED = [0.0]


class Auc(keras.callbacks.Callback):
    def __init__(self, samples, labels):
        super().__init__()
        self.samples, self.labels = samples, labels

    def on_epoch_end(self, epoch, logs=None):  # fault: host-metrics
        began = time.perf_counter()
        answers = self.model.predict(self.samples, batch_size=256, verbose=0)[:, 0]
        ranks = np.zeros(1)
        while time.perf_counter() - began < 1.1:
            ranks = np.argsort(np.concatenate([answers + 0.01 * noise for noise in range(40)]))
        logs["auc"] = float(ranks.mean())
        PLANTED[0] += time.perf_counter() - began


x = np.random.default_rng(1).normal(size=(4800, 32)).astype("float32")
y = (x[:, :1] > 0).astype("float32")
model = keras.Sequential([keras.layers.Dense(64, activation="relu"), keras.layers.Dense(1, activation="sigmoid")])
model.compile("sgd", "binary_crossentropy")
model.fit(x, y, batch_size=32, epochs=3, verbose=0, callbacks=[Auc(x, y)])
print(f"planted {PLANTED[0]:.3f}")
