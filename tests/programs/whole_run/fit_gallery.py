"""A callback that draws pictures after each epoch of a healthy `fit`."""

import time

import keras
import numpy as np

PLANTED = [0.0]


class Gallery(keras.callbacks.Callback):
    def __init__(self, samples):
        super().__init__()
        self.samples = samples

    def on_epoch_end(self, epoch, logs=None):  # fault: slow-callback
        began = time.perf_counter()
        answers = self.model.predict(self.samples, verbose=0)
        while time.perf_counter() - began < 1.2:
            draw(answers)
        PLANTED[0] += time.perf_counter() - began


def draw(answers):
    return "\n".join("".join("#" if cell > 0 else "." for cell in row) for row in answers)


x = np.random.default_rng(1).normal(size=(3200, 32)).astype("float32")
y = x[:, :4].sum(1, keepdims=True)
model = keras.Sequential([keras.layers.Dense(64, activation="relu"), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(x, y, batch_size=32, epochs=3, verbose=0, callbacks=[Gallery(x[:16])])
print(f"planted {PLANTED[0]:.3f}")
