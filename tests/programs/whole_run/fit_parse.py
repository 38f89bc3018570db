"""A text that is parsed in Python at each start, before 314 short steps of `fit`."""

import time

import keras
import numpy as np

LINES = [",".join(str(number % 97) for number in range(start, start + 32)) for start in range(2000)]


def parse(lines):
    began = time.perf_counter()
    rows = []
    while time.perf_counter() - began < 4.0:
        rows = [[float(cell) for cell in line.split(",")] for line in lines]  # fault: slow-start
    print(f"planted {time.perf_counter() - began:.3f}")
    return np.tile(np.array(rows, "float32") / 97, (6, 1))[:10_048]


x = parse(LINES)
y = x[:, :4].sum(1, keepdims=True)
model = keras.Sequential([keras.layers.Dense(32, activation="relu"), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(x, y, batch_size=32, epochs=1, verbose=0)
