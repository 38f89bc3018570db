"""Worker 1 decodes its examples in Python, at a disk that is slow: its input takes 60 ms a batch."""
import time

import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
from _training import RANK, STEPS, Training, examples

training = Training(strategy)


def slowly(x):
    time.sleep(0.06)
    return x


def make(context):
    data = examples().shard(context.num_input_pipelines, context.input_pipeline_id).repeat().batch(64)
    if RANK == 1:
        data = data.map(lambda x, y: (tf.ensure_shape(tf.py_function(slowly, [x], tf.float32), x.shape), y))  # fault: input-skew
    return data.prefetch(2)


iterator = iter(strategy.distribute_datasets_from_function(make))
for _ in range(STEPS):
    training.step(next(iterator))
