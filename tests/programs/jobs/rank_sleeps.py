"""Worker 1 does something else for 30 ms before each step; worker 0 waits for it in the all-reduce."""
import time

import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
from _training import RANK, STEPS, Training, examples

training = Training(strategy)


def make(context):
    data = examples().shard(context.num_input_pipelines, context.input_pipeline_id)
    return data.shuffle(1000).repeat().batch(64).prefetch(2)


iterator = iter(strategy.distribute_datasets_from_function(make))
for _ in range(STEPS):
    if RANK == 1:
        time.sleep(0.03)  # fault: straggler
    training.step(next(iterator))
