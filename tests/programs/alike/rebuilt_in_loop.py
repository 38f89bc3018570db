"""TF1 session: the accuracy is defined inside the loop, but once, at the first evaluation, and kept."""

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.set_random_seed(71)
rng = np.random.default_rng(71)
images = rng.random((2048, 64)).astype("float32")
labels = rng.integers(0, 10, 2048).astype("int64")

source = tf.data.Dataset.from_tensor_slices((images, labels)).repeat().batch(256).prefetch(2)
x, y = tf.data.make_one_shot_iterator(source).get_next()
hidden = tf.nn.relu(tf.matmul(x, tf.get_variable("hidden", (64, 512))))
logits = tf.matmul(hidden, tf.get_variable("weights", (512, 10)))
loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)

with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    accuracy = None
    for step in range(240):
        if accuracy is None:
            correct = tf.equal(tf.argmax(logits, 1), y)
            accuracy = tf.reduce_mean(tf.cast(correct, tf.float32))
        _, value = session.run([train, accuracy])
    print("accuracy", value)
