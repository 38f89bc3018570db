"""One pass over images that are decoded and resized as they come, ready before the larger model asks for them."""

import numpy as np
import tensorflow as tf

SIZE, COUNT, BATCH = 64, 960, 16
tf.random.set_seed(0)
generator = np.random.default_rng(0)
images = [tf.io.encode_png(generator.integers(0, 255, (SIZE, SIZE, 3), dtype=np.uint8)).numpy() for _ in range(64)]
labels = generator.integers(0, 10, COUNT)


def load(content, label):
    image = tf.image.convert_image_dtype(tf.io.decode_png(content, channels=3), tf.float32)
    return tf.image.resize(image, (48, 48)), label


dataset = tf.data.Dataset.from_tensor_slices((images * (COUNT // 64), labels))
dataset = dataset.map(load, num_parallel_calls=tf.data.AUTOTUNE)
dataset = dataset.batch(BATCH).prefetch(tf.data.AUTOTUNE)
model = tf.keras.Sequential(
    [
        tf.keras.Input((48, 48, 3)),
        tf.keras.layers.Conv2D(32, 3, activation="relu"),
        tf.keras.layers.Conv2D(32, 3, activation="relu"),
        tf.keras.layers.GlobalAveragePooling2D(),
        tf.keras.layers.Dense(10),
    ]
)
model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(dataset, epochs=1, verbose=2)
