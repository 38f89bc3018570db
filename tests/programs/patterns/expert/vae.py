"""The autoencoder of ../vae.py with its step in a traced function."""

import numpy as np
import tensorflow as tf
from tensorflow.keras import layers, optimizers

batch_size, latent, learning_rate = 64, 8, 1e-3

tf.random.set_seed(22)
np.random.seed(22)
strokes = np.random.rand(6, 256).astype("float32")
mixture = np.random.dirichlet(np.ones(6), 1920).astype("float32")
images = np.clip(mixture @ strokes, 0.0, 1.0).astype("float32")
train_db = tf.data.Dataset.from_tensor_slices(images)
train_db = train_db.shuffle(batch_size * 5).batch(batch_size)


class VAE(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.enter = layers.Dense(96)
        self.middle = layers.Dense(64)
        self.to_mean = layers.Dense(latent)
        self.to_log_var = layers.Dense(latent)
        self.unfold = layers.Dense(64)
        self.widen = layers.Dense(96)
        self.leave = layers.Dense(256)

    def encode(self, x):
        h = tf.nn.relu(self.middle(tf.nn.relu(self.enter(x))))
        return self.to_mean(h), self.to_log_var(h)

    def sample(self, mean, log_var):
        noise = tf.random.normal(tf.shape(log_var))
        return mean + tf.exp(log_var / 2.0) * noise

    def decode(self, z):
        return self.leave(tf.nn.relu(self.widen(tf.nn.relu(self.unfold(z)))))

    def call(self, inputs, training=None):
        mean, log_var = self.encode(inputs)
        return self.decode(self.sample(mean, log_var)), mean, log_var


model = VAE()
model.build(input_shape=(4, 256))
optimizer = optimizers.Adam(learning_rate)


@tf.function
def train_step(x):
    with tf.GradientTape() as tape:
        logits, mean, log_var = model(x)
        rebuilt = tf.nn.sigmoid_cross_entropy_with_logits(labels=x, logits=logits)
        rebuilt = tf.reduce_sum(rebuilt) / batch_size
        divergence = -0.5 * (log_var + 1.0 - mean**2 - tf.exp(log_var))
        divergence = tf.reduce_sum(divergence) / batch_size
        loss = rebuilt + 1.0 * divergence
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return divergence, rebuilt


for epoch in range(3):
    for step, x in enumerate(train_db):
        divergence, rebuilt = train_step(x)
        if step % 20 == 0:
            print(epoch, step, "divergence:", float(divergence), "rebuilt:", float(rebuilt))

    # what it makes of noise
    z = tf.random.normal((batch_size, latent))
    made = tf.sigmoid(model.decode(z)).numpy()
    print("mean ink of what was made:", made.mean())
