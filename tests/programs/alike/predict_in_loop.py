"""Twelve regions are forecast by a call of predict each, in a loop; every call goes over five full batches."""

import numpy as np
import tensorflow as tf

HISTORY, REGIONS = 48, 12

tf.keras.utils.set_random_seed(6)
model = tf.keras.Sequential(
    [tf.keras.Input((HISTORY, 1)), tf.keras.layers.Conv1D(32, 5, activation="relu"), tf.keras.layers.Flatten(), tf.keras.layers.Dense(1)]
)
rng = np.random.default_rng(6)
windows = rng.standard_normal((640, HISTORY, 1)).astype("float32")
model.compile(optimizer="adam", loss="mse")
model.fit(windows, windows[:, -1, 0], batch_size=128, epochs=2, verbose=0)

for region in range(REGIONS):
    forecast = model.predict(windows + region, batch_size=128, verbose=0)
    print("region", region, "mean", float(forecast.mean()))
