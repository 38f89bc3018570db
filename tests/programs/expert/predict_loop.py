"""A forecaster feeds its own output back: every future hour is one call of a traced function."""

import numpy as np
import tensorflow as tf

HISTORY, HOURS = 48, 90

tf.keras.utils.set_random_seed(6)
model = tf.keras.Sequential(
    [
        tf.keras.Input((HISTORY, 1)),
        tf.keras.layers.Conv1D(16, 5, activation="relu"),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(1),
    ]
)
hours = np.arange(400)
load = (np.sin(hours / 24 * 2 * np.pi) + 0.1 * np.cos(hours)).astype("float32")
windows = np.stack([load[i : i + HISTORY] for i in range(300)])[..., None]
model.compile(optimizer="adam", loss="mse")
model.fit(windows, load[HISTORY : HISTORY + 300], batch_size=100, epochs=2, verbose=0)


@tf.function
def forecast_next(window):
    return model(window, training=False)


history = list(load[-HISTORY:])
for hour in range(HOURS):
    window = np.array(history[-HISTORY:], dtype="float32").reshape(1, HISTORY, 1)
    forecast = forecast_next(tf.constant(window))
    history.append(float(forecast[0, 0]))
print("next day:", np.round(history[HISTORY : HISTORY + 24], 3))
