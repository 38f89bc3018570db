"""The same call of fit on a network nearly as small, but with batches that keep it computing for most of each step."""

import numpy as np
import keras

keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
x = rng.uniform(-3, 3, (65536, 2)).astype("float32")
y = (np.sin(x[:, :1]) * np.cos(x[:, 1:])).astype("float32")

model = keras.Sequential()
model.add(keras.Input((2,)))
model.add(keras.layers.Dense(256, activation="tanh"))
model.add(keras.layers.Dense(256, activation="tanh"))
model.add(keras.layers.Dense(1))
model.compile(optimizer=keras.optimizers.SGD(0.05), loss="mse")
model.fit(x, y, batch_size=512, epochs=1, shuffle=False, verbose=2)
