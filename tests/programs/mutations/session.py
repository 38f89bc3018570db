"""A graph and a session of TF1: placeholders, a rate that is fed, averages of the weights, momentum."""

import numpy as np
import planted
import tensorflow as tf
from planted import on

v1 = tf.compat.v1
v1.disable_eager_execution()
x, y = planted.points()
a, b = v1.placeholder(tf.float32, (None, 8)), v1.placeholder(tf.int32, (None,))
rate, made = v1.placeholder(tf.float32, ()), v1.placeholder(tf.int64, ())
start = v1.initializers.glorot_uniform(seed=planted.kernel_seed(3))
w = v1.get_variable("w", (8, 16), initializer=start)
bias = v1.get_variable("bias", (16,), initializer=v1.initializers.zeros())
out = v1.get_variable("out", (16, 3), initializer=v1.initializers.glorot_uniform(seed=4))
hidden = tf.tanh(a @ w + bias)
hidden = hidden if on("dropout-off") else v1.nn.dropout(hidden, rate=0.2, seed=5)
loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=b, logits=hidden @ out))
extra = 1e-3 * (tf.nn.l2_loss(w) + tf.nn.l2_loss(out))
loss = loss if on("weight-decay-lost") else loss + extra
trained = [w, bias, out]
optimizer = v1.train.MomentumOptimizer(rate, 0.85 if on("wrong-momentum") else 0.9)
found = planted.gradients(tf.gradients(loss, trained), made)
update = optimizer.apply_gradients(zip(found, trained, strict=True))
averages = v1.train.ExponentialMovingAverage(0.99)
with tf.control_dependencies([update]):
    step = tf.group(averages.apply(trained))
if on("ema-stale"):
    step = update
forget = tf.group(*[optimizer.get_slot(one, "momentum").assign(tf.zeros_like(one)) for one in trained])
nudge = w.assign(w * 1.001)


def batches(epoch):
    order = np.arange(planted.SAMPLES)
    if not on("shuffle-off"):
        np.random.default_rng(0 if on("same-order") else epoch).shuffle(order)
    labels = y.copy()
    if on("labels-shifted") or (on("late-labels-shifted") and epoch == 2):
        labels[::100] = (labels[::100] + 1) % 3
    inputs = x
    if on("inputs-shifted"):
        inputs = x + np.float32(1e-3)
    if on("inputs-float16"):
        inputs = x.astype("float16").astype("float32")
    last = None
    for number, begin in enumerate(range(0, planted.SAMPLES, planted.BATCH)):
        chosen = order[begin : begin + planted.BATCH]
        if on("last-batch-dropped") and len(chosen) < planted.BATCH:
            continue
        if on("sample-dropped"):
            chosen = chosen[1:]
        if on("half-batch"):
            chosen = chosen[:8]
        if on("stale-batch") and number % 10 == 9:
            chosen = last
        last = chosen
        yield inputs[chosen], labels[chosen]
        if on("batch-twice"):
            yield inputs[chosen], labels[chosen]


with v1.Session() as session:
    session.run(v1.global_variables_initializer())
    count = 0
    for epoch in range(planted.epochs()):
        for inputs, labels in batches(epoch):
            feed = {a: inputs, b: labels, rate: planted.stale_rate(count), made: count}
            late = on("late-ema-stale") and count >= planted.LATE
            _, value = session.run([update if late else step, loss], feed)
            planted.note(value)
            count += 1
            if on("momentum-lost") and count == planted.LATE:
                session.run(forget)
            if on("late-weights-perturbed") and count == planted.LATE:
                session.run(nudge)
    planted.finish(session.run(v1.global_variables()))
