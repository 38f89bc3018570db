"""As in slow/, with a traced step."""

import os

import keras
import tensorflow as tf
from keras import layers

STEPS = int(os.environ.get("STEPS", "300"))
BATCH, NOISE = 256, 64

keras.utils.set_random_seed(1)
generator = keras.Sequential(
    [keras.Input((NOISE,)), layers.Dense(256, "relu"), layers.Dense(512, "relu"), layers.Dense(784, "tanh")]
)
critic = keras.Sequential(
    [keras.Input((784,)), layers.Dense(512, "leaky_relu"), layers.Dense(256, "leaky_relu"), layers.Dense(1)]
)
generator_optimizer, critic_optimizer = keras.optimizers.Adam(1e-4), keras.optimizers.Adam(1e-4)
cross_entropy = keras.losses.BinaryCrossentropy(from_logits=True)
real = tf.random.uniform((16, BATCH, 784), -1.0, 1.0, seed=2)


@tf.function
def train_step(pictures):
    noise = tf.random.normal((BATCH, NOISE))
    with tf.GradientTape() as generator_tape, tf.GradientTape() as critic_tape:
        made = generator(noise, training=True)
        of_real, of_made = critic(pictures, training=True), critic(made, training=True)
        generator_loss = cross_entropy(tf.ones_like(of_made), of_made)
        critic_loss = cross_entropy(tf.ones_like(of_real), of_real) + cross_entropy(tf.zeros_like(of_made), of_made)
    gradients = generator_tape.gradient(generator_loss, generator.trainable_variables)
    generator_optimizer.apply_gradients(zip(gradients, generator.trainable_variables))
    gradients = critic_tape.gradient(critic_loss, critic.trainable_variables)
    critic_optimizer.apply_gradients(zip(gradients, critic.trainable_variables))
    return generator_loss, critic_loss


for step in range(STEPS):
    losses = train_step(real[step % 16])
    if (step + 1) % (STEPS // 8) == 0:
        print("step", step + 1, "loss", float(losses[0]), flush=True)
print("loss", *map(float, losses))
