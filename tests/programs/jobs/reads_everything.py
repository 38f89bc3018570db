"""All examples are in one file: both workers read and decode everything and drop every second element."""
import os
import tempfile

import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
from _training import STEPS, Training

training = Training(strategy, per_replica=32, width=64, layers=2)
file = os.path.join(os.environ.get("RECORDS") or tempfile.mkdtemp(), "all.tfrecord")
if not os.path.exists(file):
    with tf.io.TFRecordWriter(f"{file}.{os.getpid()}") as writer:
        for index in range(1000):
            x = tf.random.stateless_normal((64, 128), (1, index))
            writer.write(tf.io.serialize_tensor(x).numpy())
    os.rename(f"{file}.{os.getpid()}", file)


def decode(record):
    x = tf.ensure_shape(tf.io.parse_tensor(record, tf.float32), (64, 128))
    x += tf.random.normal((64, 128), stddev=0.01)
    for _ in range(12):
        x = tf.linalg.matmul(x, x, transpose_b=True) @ x / 1e4
    return tf.reduce_mean(x, axis=1), tf.ones((1,))


options = tf.data.Options()
options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
data = tf.data.TFRecordDataset(file).map(decode, num_parallel_calls=tf.data.AUTOTUNE).repeat().batch(64).prefetch(2).with_options(options)
iterator = iter(strategy.experimental_distribute_dataset(data))  # fault: unsharded-input
for _ in range(STEPS):
    training.step(next(iterator))
