"""TensorFlow 1 style: the images are handed over once and every batch is gathered in the graph."""

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.set_random_seed(0)

IMAGES, BATCH, STEPS = 600, 256, 100
rng = np.random.RandomState(0)
images = rng.rand(IMAGES, 64, 64, 3).astype(np.float32)
labels = rng.randint(0, 4, IMAGES)
order = [rng.randint(0, IMAGES, BATCH) for _ in range(STEPS)]

image_store = tf.placeholder(tf.float32, images.shape)
label_store = tf.placeholder(tf.int64, labels.shape)
all_images = tf.Variable(image_store, trainable=False)
all_labels = tf.Variable(label_store, trainable=False)
rows = tf.data.make_one_shot_iterator(tf.data.Dataset.from_tensor_slices(np.stack(order))).get_next()
x = tf.gather(all_images, rows)
y = tf.gather(all_labels, rows)
pooled = tf.nn.avg_pool2d(x, 16, 16, "VALID")
flat = tf.reshape(pooled, [-1, 4 * 4 * 3])
first = tf.get_variable("first", [4 * 4 * 3, 32])
second = tf.get_variable("second", [32, 4])
logits = tf.matmul(tf.nn.relu(tf.matmul(flat, first)), second)
loss = tf.losses.sparse_softmax_cross_entropy(y, logits)
train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer(), {image_store: images, label_store: labels})
    for step in range(STEPS):
        _, value = sess.run([train, loss])
        if step % 25 == 0:
            print("step", step, "loss", value)
