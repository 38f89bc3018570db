"""A dense network trained on arrays in memory with a sensible batch."""

import keras
import numpy as np


def main():
    keras.utils.set_random_seed(1)
    rng = np.random.default_rng(1)
    x = rng.standard_normal((256 * 25, 512), dtype="float32")
    y = (x[:, :8].sum(axis=1) > 0).astype("float32")
    model = keras.Sequential(
        [
            keras.Input((512,)),
            keras.layers.Dense(1024, activation="relu"),
            keras.layers.Dense(1024, activation="relu"),
            keras.layers.Dense(1, activation="sigmoid"),
        ]
    )
    model.compile(optimizer=keras.optimizers.SGD(0.05), loss="binary_crossentropy", metrics=["accuracy"])
    model.fit(x, y, batch_size=256, epochs=3, verbose=2)


if __name__ == "__main__":
    main()
