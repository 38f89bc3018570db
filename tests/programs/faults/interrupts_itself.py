"""Gets SIGINT in the middle of fit, as from Ctrl-C."""

import os
import signal

import keras
import numpy as np


class Interrupt(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if batch == 40:
            os.kill(os.getpid(), signal.SIGINT)


model = keras.Sequential([keras.layers.Dense(16), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(np.ones((2000, 4), "float32"), np.ones((2000, 1), "float32"), batch_size=10, verbose=0, callbacks=[Interrupt()])
print("not reached")
