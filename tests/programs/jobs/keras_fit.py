"""tf_keras under MultiWorkerMirroredStrategy: fit distributes and shards the dataset."""
import os

import tensorflow as tf
import tf_keras as keras

strategy = tf.distribute.MultiWorkerMirroredStrategy()
STEPS = int(os.environ.get("STEPS", "40"))
x = tf.random.stateless_normal((4096, 32), (1, 2))
data = tf.data.Dataset.from_tensor_slices((x, tf.reduce_sum(x, axis=1, keepdims=True))).repeat().batch(256)
with strategy.scope():
    model = keras.Sequential([keras.layers.Dense(256, "relu"), keras.layers.Dense(256, "relu"), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
model.fit(data, epochs=1, steps_per_epoch=STEPS, verbose=2)
