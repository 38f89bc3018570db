"""The same kind of layers, but over ninety time steps: unrolled, the graph would hold ninety copies of each."""

import numpy as np
import keras

LENGTH, DIGITS = 90, 10

keras.utils.set_random_seed(4)
rng = np.random.default_rng(4)
numbers = rng.integers(0, DIGITS, (960, LENGTH))
x = np.eye(DIGITS, dtype="float32")[numbers]

model = keras.Sequential()
model.add(keras.Input((LENGTH, DIGITS)))
model.add(keras.layers.LSTM(32, return_sequences=True))
model.add(keras.layers.GRU(32))
model.add(keras.layers.Dense(DIGITS, activation="softmax"))
model.compile(optimizer="sgd", loss="sparse_categorical_crossentropy")
model.fit(x, numbers[:, 0], batch_size=16, epochs=1, verbose=2)
