"""A tiny network trained with a batch of four: starting a step costs far more than computing it."""

import numpy as np
import keras

keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
x = rng.uniform(-3, 3, (4096, 2)).astype("float32")
y = (np.sin(x[:, :1]) * np.cos(x[:, 1:])).astype("float32")

model = keras.Sequential()
model.add(keras.Input((2,)))
model.add(keras.layers.Dense(16, activation="tanh"))
model.add(keras.layers.Dense(1))
model.compile(optimizer=keras.optimizers.SGD(0.05), loss="mse")
model.fit(x, y, batch_size=4, epochs=4, shuffle=False, verbose=2)  # fault: step-overhead
