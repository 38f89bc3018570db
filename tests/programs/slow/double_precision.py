"""A surrogate of a physics simulation, trained in double precision because the data came that way."""

import numpy as np
from tensorflow import keras
from tensorflow.keras import layers

keras.backend.set_floatx("float64")  # fault: float64
keras.utils.set_random_seed(9)

rng = np.random.default_rng(9)
parameters = rng.uniform(0, 1, (2560, 64))
outcome = np.sin(parameters @ rng.standard_normal((64, 16)))

inputs = keras.Input((64,))
x = layers.Dense(768, activation="relu")(inputs)
x = layers.Dense(768, activation="relu")(x)
x = layers.Dense(768, activation="relu")(x)
model = keras.Model(inputs, layers.Dense(16)(x))
model.compile(optimizer="adam", loss="mse")
model.fit(parameters, outcome, batch_size=128, epochs=5, verbose=2)
