"""Worker 1 is killed in the middle of the training, as a machine does that has no memory left."""
import os
import signal

import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
from _training import RANK, STEPS, Training, examples

training = Training(strategy)


def make(context):
    data = examples().shard(context.num_input_pipelines, context.input_pipeline_id)
    return data.repeat().batch(64).prefetch(2)


iterator = iter(strategy.distribute_datasets_from_function(make))
for step in range(STEPS):
    if RANK == 1 and step == STEPS // 2:
        os.kill(os.getpid(), signal.SIGKILL)
    training.step(next(iterator))
