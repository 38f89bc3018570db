"""Validates on far more samples than it trains with, in the small batches of the training."""

import keras
import numpy as np

keras.utils.set_random_seed(1)
rng = np.random.default_rng(1)
x, x_check = rng.normal(size=(1600, 32)).astype("float32"), rng.normal(size=(20000, 32)).astype("float32")
y, y_check = x[:, :4].sum(1, keepdims=True), x_check[:, :4].sum(1, keepdims=True)

model = keras.Sequential([keras.Input((32,)), keras.layers.Dense(64, "relu"), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(x, y, batch_size=8, epochs=4, shuffle=False, verbose=2, validation_data=(x_check, y_check))
