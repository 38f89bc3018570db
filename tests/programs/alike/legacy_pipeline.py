"""An ImageDataGenerator that only rescales, in front of a model that is slower than it: no step waits."""

import numpy as np
import tf_keras as keras
from tf_keras.preprocessing.image import ImageDataGenerator

keras.utils.set_random_seed(70)
rng = np.random.default_rng(70)
x_train = rng.random((640, 48, 48, 3)).astype("float32")
y_train = keras.utils.to_categorical(rng.integers(0, 4, 640), 4)

scale = ImageDataGenerator(rescale=1 / 255)
model = keras.Sequential(
    [
        keras.layers.Conv2D(48, 3, activation="relu", input_shape=(48, 48, 3)),
        keras.layers.Conv2D(48, 3, activation="relu"),
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dense(4, activation="softmax"),
    ]
)
model.compile(loss="categorical_crossentropy", optimizer="adam", metrics=["accuracy"])
model.fit(scale.flow(x_train, y_train, batch_size=16, seed=70), epochs=3, verbose=2)
