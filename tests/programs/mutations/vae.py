"""A variational autoencoder in an eager loop: the weight of its second term is an attribute that each epoch sets."""

import keras
import planted
import tensorflow as tf
from planted import on

keras.utils.set_random_seed(1)


class Model(keras.Model):
    def __init__(self):
        super().__init__()
        start = keras.initializers.GlorotUniform(planted.kernel_seed(3))
        self.encoder = keras.Sequential(
            [keras.layers.Dense(16, "relu", kernel_initializer=start), keras.layers.Dense(6)]
        )
        self.decoder = keras.Sequential([keras.layers.Dense(16, "relu"), keras.layers.Dense(8)])
        self.beta = 0.0
        self.built = True

    def losses_of(self, x):
        mean, spread = tf.split(self.encoder(x), 2, axis=1)
        noise = tf.random.normal(tf.shape(mean))
        if on("seed-reuse"):
            noise = tf.random.stateless_normal(tf.shape(mean), (1, 2)) + 0 * noise
        late = tf.cast(optimizer.iterations.value >= planted.LATE, tf.float32)
        if on("noise-off"):
            noise = noise * 0
        if on("late-noise-off"):
            noise = noise * (1 - late)
        back = self.decoder(mean + noise * tf.exp(0.5 * spread))
        rebuilt = tf.reduce_mean((back - x) ** 2)
        divergence = -0.5 * tf.reduce_mean(1 + spread - mean**2 - tf.exp(spread))
        if on("late-loss-term-dropped"):
            divergence = divergence * (1 - late)
        if on("loss-term-dropped"):
            divergence = 0.0
        return rebuilt + self.beta * divergence


made = 0
model = Model()
optimizer = keras.optimizers.Adam(
    1e-2 / 5, epsilon=1e-4 if on("wrong-epsilon") else 1e-7, beta_2=0.99 if on("wrong-beta") else 0.999
)
critic = keras.Sequential([keras.Input((8,)), keras.layers.Dense(8, "tanh"), keras.layers.Dense(1)])
critic_optimizer = keras.optimizers.SGD(0.02)


def train_step(x):
    with tf.GradientTape() as tape:
        loss = model.losses_of(x)
    weights = model.trainable_variables
    found = planted.gradients(tape.gradient(loss, weights), optimizer.iterations.value, clip=0.3)
    optimizer.apply_gradients(zip(found, weights, strict=True))
    return loss


def train_critic(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.nn.softplus(-critic(x))) + tf.reduce_mean(tf.nn.softplus(critic(x[::-1] * 0.5)))
    weights = critic.trainable_variables
    critic_optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))


data = planted.dataset(planted.points())
for epoch in range(planted.epochs()):
    planted.begin_epoch(epoch)
    model.beta = 0.0 if on("frozen-beta") else epoch / 10
    if on("late-frozen-beta"):
        model.beta = min(model.beta, 0.1)
    if on("beta-one-epoch-late"):
        model.beta = max(epoch - 1, 0) / 10
    for x, _ in data:
        planted.note(train_step(x))
        if not (on("critic-never-trained") or (on("late-critic-never-trained") and made >= planted.LATE)):
            train_critic(x)
        made += 1
        if on("momentum-lost") and made == planted.LATE:
            for one in optimizer.variables:
                if "momentum" in one.path:
                    one.assign(one * 0)
        if on("late-weights-perturbed") and made == planted.LATE:
            model.trainable_variables[0].assign(model.trainable_variables[0] * 1.001)
planted.finish(model.variables, critic.variables, optimizer.variables, critic_optimizer.variables)
