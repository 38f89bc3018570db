"""Keras PyDataset: every image is jittered row by row in Python, beside a model that is done in a moment."""

import math

import keras
import numpy as np

keras.utils.set_random_seed(72)


class Jittered(keras.utils.PyDataset):
    def __init__(self, images, labels, batch):
        super().__init__()
        self.images, self.labels, self.batch = images, labels, batch

    def __len__(self):
        return math.ceil(len(self.images) / self.batch)

    def __getitem__(self, index):
        chosen = slice(index * self.batch, (index + 1) * self.batch)
        return np.stack([self.jitter(image) for image in self.images[chosen]]), self.labels[chosen]

    def jitter(self, image):
        moved = np.empty_like(image)
        for row in range(len(image)):
            moved[row] = np.roll(image[row], row % 5, axis=0) * 0.9 + 0.05
        return moved


rng = np.random.default_rng(72)
data = Jittered(rng.random((960, 64, 64, 3)).astype("float32"), rng.integers(0, 5, 960), 16)
model = keras.Sequential(
    [
        keras.layers.Input((64, 64, 3)),
        keras.layers.Conv2D(8, 5, strides=4, activation="relu"),
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dense(5, activation="softmax"),
    ]
)
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy")
model.fit(data, epochs=4, verbose=2, shuffle=False)  # fault: python-in-pipeline
