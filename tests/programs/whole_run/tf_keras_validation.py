"""Validation in batches of one sample takes longer than training, in `fit` of tf_keras."""

import time

import numpy as np
import tf_keras

PLANTED = [0.0]


class Clock(tf_keras.callbacks.Callback):
    def on_test_begin(self, logs=None):
        self.began = time.perf_counter()

    def on_test_end(self, logs=None):
        PLANTED[0] += time.perf_counter() - self.began


x = np.random.default_rng(1).normal(size=(6400, 32)).astype("float32")
y = x[:, :4].sum(1, keepdims=True)
model = tf_keras.Sequential([tf_keras.layers.Dense(64, activation="relu"), tf_keras.layers.Dense(1)])
model.compile("sgd", "mse")
check = (x[:700], y[:700])
model.fit(  # fault: validation-bound
    x, y, batch_size=64, epochs=3, verbose=0, validation_data=check, validation_batch_size=1, callbacks=[Clock()]
)
print(f"planted {PLANTED[0]:.3f}")
