"""tf_keras with tf.data: rotations and shifts by TensorFlow, a batch at a time."""

import numpy as np
import tensorflow as tf
import tf_keras as keras

keras.utils.set_random_seed(70)
rng = np.random.default_rng(70)
x_train = rng.random((640, 48, 48, 3)).astype("float32")
y_train = keras.utils.to_categorical(rng.integers(0, 4, 640), 4)

augment = keras.Sequential(
    [
        keras.layers.RandomRotation(20 / 360, fill_mode="nearest", seed=70),
        keras.layers.RandomTranslation(0.1, 0.1, fill_mode="nearest", seed=70),
        keras.layers.RandomFlip("horizontal", seed=70),
    ]
)

model = keras.Sequential(
    [
        keras.layers.Conv2D(8, 3, strides=2, activation="relu", input_shape=(48, 48, 3)),
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dense(4, activation="softmax"),
    ]
)
model.compile(loss="categorical_crossentropy", optimizer="adam", metrics=["accuracy"])
dataset = tf.data.Dataset.from_tensor_slices((x_train, y_train)).shuffle(640, seed=70).batch(32)
dataset = dataset.map(lambda x, y: (augment(x, training=True), y), num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
model.fit(dataset, epochs=10, verbose=2)
