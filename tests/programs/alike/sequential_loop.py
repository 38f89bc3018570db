"""A loop of 100 turns in the graph that must stay one: a recurrent layer around a cell of the program's own."""

import numpy as np
import tensorflow as tf
from tensorflow import keras

TIME, BATCH, UNITS = 100, 32, 32


class Cell(keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.state_size = UNITS
        self.output_size = UNITS

    def build(self, shape):
        self.into = self.add_weight(shape=(shape[-1], UNITS))
        self.back = self.add_weight(shape=(UNITS, UNITS))

    def call(self, x, states):
        state = tf.tanh(x @ self.into + states[0] @ self.back)
        return state, [state]


keras.utils.set_random_seed(30)
model = keras.Sequential([keras.Input((TIME, 8)), keras.layers.RNN(Cell()), keras.layers.Dense(1)])
model.compile(optimizer="sgd", loss="mse")
rng = np.random.default_rng(30)
sequences = rng.standard_normal((BATCH * 40, TIME, 8)).astype("float32")
model.fit(sequences, sequences.mean(axis=(1, 2)), batch_size=BATCH, epochs=3, verbose=2)
