"""Small training programs that draw random numbers, each in several ways of writing it.

`plain` is the program as written, `right…` computes the same in another way, `wrong…` does not.
"""

import random
import threading

import keras
import numpy as np
import tensorflow as tf

STEPS = 12


def points(count=512):
    table = np.random.default_rng(0)
    x = table.normal(size=(count, 8)).astype("float32")
    return x, (x.sum(1) > 0).astype("int32")


def dense(*sizes):
    return keras.Sequential([keras.layers.Dense(size, "tanh") for size in sizes])


def batches(x, size=32):
    return tf.data.Dataset.from_tensor_slices(x).shuffle(512).batch(size).take(STEPS)


def traced(change, function):
    if change == "plain":
        return function
    return tf.function(function, jit_compile=change == "right_compiled")


# ── noise inside of the model ────────────────────────────────────────────────────────────────────────────────────────


class Coder(keras.Model):
    def __init__(self, change):
        super().__init__()
        self.change = change
        self.mean, self.spread, self.back = dense(16, 4), dense(16, 4), dense(16, 8)
        self.frozen = np.random.default_rng(0).normal(size=(32, 4)).astype("float32")

    def draw(self, mean, spread):
        noise = tf.random.normal(tf.shape(mean))
        if self.change == "wrong_without_noise":
            noise = 0.0
        if self.change == "wrong_one_draw":
            noise = self.frozen
        return mean + tf.exp(0.5 * spread) * noise

    def call(self, x, training=None):
        mean, spread = self.mean(x), self.spread(x)
        return self.back(self.draw(mean, spread)), mean, spread


def coder(change):
    """The tape block stands in the loop; another way has it in a function."""
    model, optimizer = Coder(change), keras.optimizers.SGD(0.05)

    def train(x):
        with tf.GradientTape() as tape:
            y, mean, spread = model(x, training=True)
            loss = tf.reduce_mean((x - y) ** 2) + 0.1 * tf.reduce_mean(mean**2 + tf.exp(spread) - spread)
        gradients = tape.gradient(loss, model.trainable_variables)
        if change == "wrong_scaled":
            gradients = [1.001 * gradient for gradient in gradients]
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    if change == "plain":
        for x in batches(points()[0]):
            with tf.GradientTape() as tape:
                y, mean, spread = model(x, training=True)
                loss = tf.reduce_mean((x - y) ** 2) + 0.1 * tf.reduce_mean(mean**2 + tf.exp(spread) - spread)
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return
    step = traced(change, train)
    for number, x in enumerate(batches(points()[0])):
        if change != "wrong_skipping" or number % 10 != 9:
            step(x)


# ── noise beside the model, two optimizers ───────────────────────────────────────────────────────────────────────────


def adversaries(change):
    maker, judge = dense(16, 8), dense(16, 1)
    of_maker, of_judge = keras.optimizers.Adam(1e-3), keras.optimizers.Adam(1e-3)

    def step(real):
        noise = tf.random.normal([32, 4])
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(judge(maker(noise)) ** 2) + tf.reduce_mean((judge(real) - 1) ** 2)
        gradients = tape.gradient(loss, judge.trainable_variables)
        of_judge.apply_gradients(zip(gradients, judge.trainable_variables, strict=True))
        again = noise if change == "wrong_same_noise" else tf.random.normal([32, 4])
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((judge(maker(again)) - 1) ** 2)
        gradients = tape.gradient(loss, maker.trainable_variables)
        of_maker.apply_gradients(zip(gradients, maker.trainable_variables, strict=True))

    step = traced(change, step)
    for real in batches(points()[0]):
        step(real)
        tf.random.normal([4])  # drawn for a picture, outside of the step


# ── dropout ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def dropping(change):
    """`fit`, several steps a call or compiled."""
    x, y = points()
    rate = 0.45 if change == "wrong_rate" else 0.5
    model = keras.Sequential([keras.layers.Dense(32, "relu"), keras.layers.Dropout(rate), keras.layers.Dense(2)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    steps = 4 if change == "right_many" else 1
    model.compile("adam", loss, steps_per_execution=steps, jit_compile=change == "right_compiled")
    model.fit(x, y, batch_size=32, epochs=1, verbose=0)


def dropping_by_hand(change):
    """`tf.nn.dropout` and a loop over time inside of the step."""
    inner, outer = dense(8), dense(1)
    optimizer = keras.optimizers.SGD(0.05)
    inner.build((None, 8)), outer.build((None, 8))
    variables = inner.trainable_variables + outer.trainable_variables

    def step(x):
        with tf.GradientTape() as tape:
            for _ in range(2 if change == "wrong_shorter" else 3):
                x = tf.nn.dropout(inner(x), 0.3)
            loss = tf.reduce_mean((outer(x) - 1) ** 2)
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))

    def looped(x):
        with tf.GradientTape() as tape:
            for _ in tf.range(3):
                x = tf.nn.dropout(inner(x), 0.3)
            loss = tf.reduce_mean((outer(x) - 1) ** 2)
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))

    step = traced(change, looped if change == "right_looped" else step)
    for x in batches(points()[0]):
        step(x)


# ── random numbers of Python ─────────────────────────────────────────────────────────────────────────────────────────


def feeding(change):
    """numpy's noise goes into each step, while another thread draws too."""
    model, optimizer = dense(16, 8), keras.optimizers.SGD(0.05)
    model.build((None, 8))
    other = threading.Thread(target=lambda: [np.random.rand() for _ in range(2000)], daemon=True)
    other.start()

    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x) - x) ** 2)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))

    step = traced(change, step)
    kept = np.random.normal(size=(32, 8)).astype("float32")
    for _ in range(STEPS):
        drawn = np.random.normal(size=(32, 8)).astype("float32")
        step(tf.constant(kept if change == "wrong_one_draw" else drawn))
    other.join()


def exploring(change):
    """A policy that explores, a memory that is sampled, a target that follows."""
    policy, target = dense(16, 2), dense(16, 2)
    policy.build((None, 4)), target.build((None, 4))
    target.set_weights(policy.get_weights())
    optimizer, memory = keras.optimizers.Adam(1e-3), []
    call = traced(change, lambda state: policy(state))

    def step(states, rewards):
        with tf.GradientTape() as tape:
            hoped = rewards[:, None] + 0.9 * tf.reduce_max(target(states), 1, keepdims=True)
            loss = tf.reduce_mean((policy(states) - hoped) ** 2)
        gradients = tape.gradient(loss, policy.trainable_variables)
        optimizer.apply_gradients(zip(gradients, policy.trainable_variables, strict=True))

    step = traced(change, step)
    state = np.zeros((1, 4), "float32")
    for number in range(8 + STEPS):
        greedy = change == "wrong_greedy"
        if np.random.rand() < 0.5 and not greedy:
            action = random.randrange(2)
        else:
            action = int(np.argmax(call(tf.constant(state))[0]))
        state = (0.9 * state + (action - 0.5) * np.random.uniform(size=(1, 4))).astype("float32")
        memory.append((state[0], float(action)))
        if number >= 8:
            states, rewards = zip(*random.sample(memory, 8), strict=True)
            step(tf.constant(np.stack(states)), tf.constant(rewards))


# ── random numbers of the input ──────────────────────────────────────────────────────────────────────────────────────


def augmenting(change):
    """A random map, side by side or cached."""
    x, _ = points(96)
    turn = keras.layers.RandomFlip(seed=1)

    def augment(row):
        picture = tf.image.random_brightness(tf.reshape(row, [2, 4, 1]), 0.5)
        picture = turn(picture, training=True) + tf.random.normal([2, 4, 1], stddev=0.1)
        return tf.reshape(picture, [8])

    calls = None if change == "plain" else 4
    dataset = tf.data.Dataset.from_tensor_slices(x).shuffle(96).map(augment, num_parallel_calls=calls)
    if change == "wrong_cached":
        dataset = dataset.cache()
    model = dense(16, 8)
    model.compile("sgd", "mse")
    model.fit(dataset.map(lambda row: (row, row)).batch(16), epochs=2, verbose=0)


