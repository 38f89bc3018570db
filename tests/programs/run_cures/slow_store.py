"""A checkpoint after each epoch, to a store that takes its time, in a training that waits for its data as well."""

import os
import tempfile
import time

import keras
import numpy as np

STORE, READ = 0.8, 0.02
"""Seconds that a layer takes to be written, and a batch to be read."""


@keras.saving.register_keras_serializable()
class Stored(keras.layers.Dense):
    def save_own_variables(self, store):
        super().save_own_variables(store)
        time.sleep(STORE)


class Rows(keras.utils.PyDataset):
    x = np.random.default_rng(1).normal(size=(2560, 32)).astype("float32")

    def __len__(self):
        return 80

    def __getitem__(self, index):
        time.sleep(READ)
        rows = self.x[32 * index : 32 * index + 32]
        return rows, rows[:, :4].sum(1, keepdims=True)


keras.utils.set_random_seed(1)
model = keras.Sequential([keras.Input((32,)), Stored(64, "relu"), Stored(64, "relu"), keras.layers.Dense(1)])
model.compile("sgd", "mse")
with tempfile.TemporaryDirectory() as directory:
    keeper = keras.callbacks.ModelCheckpoint(os.path.join(directory, "model-{epoch}.keras"))
    model.fit(Rows(), epochs=6, shuffle=False, verbose=0, callbacks=[keeper])
    print(len(os.listdir(directory)), "files")
