"""TensorFlow 1 style: the data comes from an iterator in the graph; only the learning rate and a switch are fed."""

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.set_random_seed(0)

ROWS, COLUMNS, CLASSES, STEPS = 4096, 400, 5, 150
rng = np.random.RandomState(0)
features = rng.rand(ROWS, COLUMNS).astype("float32")
labels = rng.randint(0, CLASSES, ROWS)

source = tf.data.Dataset.from_tensor_slices((features, labels)).repeat().batch(512).prefetch(2)
x, y = tf.data.make_one_shot_iterator(source).get_next()
rate = tf.placeholder(tf.float32, [])
training = tf.placeholder_with_default(False, [])
hidden = tf.nn.relu(tf.matmul(x, tf.get_variable("hidden", [COLUMNS, 512])))
weights = tf.get_variable("weights", [512, CLASSES])
logits = tf.matmul(hidden, weights)
loss = tf.losses.sparse_softmax_cross_entropy(y, logits) * tf.where(training, 1.0, 0.5)
train = tf.train.GradientDescentOptimizer(rate).minimize(loss)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(STEPS):
        _, value = sess.run([train, loss], feed_dict={rate: 0.01 / (1 + step), training: True})
        if step % 50 == 0:
            print("step", step, "loss", value)
