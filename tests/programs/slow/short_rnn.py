"""Stacked recurrent layers that sort the digits of short numbers: each runs as a loop in the graph over six time steps."""

import numpy as np
import keras

LENGTH, DIGITS = 6, 10

keras.utils.set_random_seed(4)
rng = np.random.default_rng(4)
numbers = rng.integers(0, DIGITS, (6400, LENGTH))
x = np.eye(DIGITS, dtype="float32")[numbers]
y = np.sort(numbers, axis=1)

model = keras.Sequential()
model.add(keras.Input((LENGTH, DIGITS)))
model.add(keras.layers.LSTM(48, return_sequences=True))  # fault: short-recurrence
model.add(keras.layers.LSTM(48, return_sequences=True))
model.add(keras.layers.GRU(48))
model.add(keras.layers.RepeatVector(LENGTH))
model.add(keras.layers.LSTM(48, return_sequences=True))
model.add(keras.layers.SimpleRNN(48, return_sequences=True))
model.add(keras.layers.Dense(DIGITS, activation="softmax"))
model.compile(optimizer="sgd", loss="sparse_categorical_crossentropy", steps_per_execution=8)
model.fit(x, y, batch_size=32, epochs=2, verbose=2)
