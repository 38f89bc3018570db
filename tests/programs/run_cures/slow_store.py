"""A checkpoint after each epoch, to a store that takes its time: each layer that is written waits for it."""

import os
import tempfile
import time

import keras
import numpy as np

WAIT = 0.35


@keras.saving.register_keras_serializable()
class Stored(keras.layers.Dense):
    def save_own_variables(self, store):
        super().save_own_variables(store)
        time.sleep(WAIT)


x = np.random.default_rng(1).normal(size=(6400, 256)).astype("float32")
y = x[:, :4].sum(1, keepdims=True)
keras.utils.set_random_seed(1)
model = keras.Sequential([keras.Input((256,)), Stored(1024, "relu"), Stored(1024, "relu"), keras.layers.Dense(1)])
model.compile("sgd", "mse")
with tempfile.TemporaryDirectory() as directory:
    keeper = keras.callbacks.ModelCheckpoint(os.path.join(directory, "model-{epoch}.keras"))
    model.fit(x, y, batch_size=64, epochs=10, verbose=0, callbacks=[keeper])
    print(len(os.listdir(directory)), "files")
