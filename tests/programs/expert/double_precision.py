"""A surrogate of a physics simulation, trained in single precision."""

import numpy as np
from tensorflow import keras
from tensorflow.keras import layers

keras.utils.set_random_seed(9)

rng = np.random.default_rng(9)
parameters = rng.uniform(0, 1, (2560, 64)).astype("float32")
outcome = np.sin(parameters @ rng.standard_normal((64, 16))).astype("float32")

inputs = keras.Input((64,))
x = layers.Dense(768, activation="relu")(inputs)
x = layers.Dense(768, activation="relu")(x)
x = layers.Dense(768, activation="relu")(x)
model = keras.Model(inputs, layers.Dense(16)(x))
model.compile(optimizer="adam", loss="mse")
model.fit(parameters, outcome, batch_size=128, epochs=5, verbose=2)
