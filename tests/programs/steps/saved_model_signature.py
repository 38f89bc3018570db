"""A SavedModel is written, loaded and served through its signature. A step is one call of the signature."""

import json
import os
import statistics
import tempfile
import time

import numpy as np
import tensorflow as tf


class Scorer(tf.Module):
    def __init__(self):
        super().__init__()
        init = tf.random.Generator.from_seed(3)
        self.w1 = tf.Variable(init.normal((512, 2048), stddev=0.04))
        self.w2 = tf.Variable(init.normal((2048, 512), stddev=0.02))
        self.w3 = tf.Variable(init.normal((512, 8), stddev=0.04))

    @tf.function(input_signature=[tf.TensorSpec((None, 512), tf.float32, name="features")])
    def serve(self, features):
        hidden = tf.nn.relu(features @ self.w1)
        hidden = tf.nn.relu(hidden @ self.w2)
        return {"scores": hidden @ self.w3}


with tempfile.TemporaryDirectory() as folder:
    scorer = Scorer()
    tf.saved_model.save(scorer, folder, signatures={"serving_default": scorer.serve})
    loaded = tf.saved_model.load(folder)
    signature = loaded.signatures["serving_default"]
    times = []
    batch = tf.constant(np.random.default_rng(0).standard_normal((400, 512)), tf.float32)
    for _ in range(100):
        start = time.perf_counter()
        scores = signature(features=batch)["scores"]
        scores.numpy()
        times.append(time.perf_counter() - start)
print(scores.shape)

if os.environ.get("STOPWATCH"):
    with open(os.environ["STOPWATCH"], "w") as out:
        json.dump({"count": len(times), "median_ms": 1000 * statistics.median(times)}, out)
