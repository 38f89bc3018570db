"""One pass over images whose decoding keeps all cores busy: the input is slow without any mistake in it."""

import numpy as np
import tensorflow as tf

SIZE, COUNT, BATCH = 160, 640, 8
tf.random.set_seed(0)
generator = np.random.default_rng(0)
images = [tf.io.encode_png(generator.integers(0, 255, (SIZE, SIZE, 3), dtype=np.uint8)).numpy() for _ in range(64)]
labels = generator.integers(0, 10, COUNT)


def load(content, label):
    image = tf.image.convert_image_dtype(tf.io.decode_png(content, channels=3), tf.float32)
    return tf.image.resize(image, (48, 48), method="bicubic", antialias=True), label


dataset = tf.data.Dataset.from_tensor_slices((images * (COUNT // 64), labels))
dataset = dataset.map(load, num_parallel_calls=tf.data.AUTOTUNE)  # fault: input-bound
dataset = dataset.batch(BATCH).prefetch(tf.data.AUTOTUNE)
model = tf.keras.Sequential([tf.keras.Input((48, 48, 3)), tf.keras.layers.Flatten(), tf.keras.layers.Dense(10)])
model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(dataset, epochs=1, verbose=2)
