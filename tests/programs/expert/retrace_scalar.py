"""The learning rate decays a little at every step and is handed to the traced step as a tensor."""

import math

import numpy as np
import tensorflow as tf

STEPS = 48
x = np.random.default_rng(0).standard_normal((STEPS, 64, 40)).astype("float32")
y = np.tanh(x.sum(axis=2, keepdims=True)).astype("float32")

tf.random.set_seed(0)
layers = []
for fan_in, fan_out in [(40, 128), (128, 128), (128, 64), (64, 1)]:
    layers.append((tf.Variable(tf.random.normal((fan_in, fan_out), stddev=fan_in**-0.5)), tf.Variable(tf.zeros(fan_out))))
variables = [v for pair in layers for v in pair]
momenta = [tf.Variable(tf.zeros_like(v)) for v in variables]


def forward(h):
    for weights, bias in layers[:-1]:
        h = tf.nn.gelu(h @ weights + bias)
    weights, bias = layers[-1]
    return h @ weights + bias


@tf.function
def train_step(inputs, targets, learning_rate):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(forward(inputs) - targets))
    for variable, momentum, gradient in zip(variables, momenta, tape.gradient(loss, variables)):
        momentum.assign(0.9 * momentum + gradient)
        variable.assign_sub(learning_rate * momentum)
    return loss


for step in range(STEPS):
    rate = 0.02 * 0.5 * (1 + math.cos(math.pi * step / STEPS))
    loss = train_step(tf.constant(x[step]), tf.constant(y[step]), tf.constant(rate, tf.float32))
    if step % 20 == 0:
        print(f"step {step} loss {loss:.4f}")
