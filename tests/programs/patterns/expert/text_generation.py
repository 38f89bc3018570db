"""The program of ../text_generation.py with a traced step that returns its loss, and a traced call for what it writes."""

import numpy as np
import tensorflow as tf

LENGTH, BATCH, UNITS, BATCHES = 12, 32, 48, 60

tf.keras.utils.set_random_seed(7)


class Text:
    def __init__(self):
        words = ["the", "river", "carries", "seven", "boats", "slowly", "home"]
        order = np.random.default_rng(7).integers(0, len(words), 2000)
        self.raw = " ".join(words[i] for i in order)
        self.letters = sorted(set(self.raw))
        self.codes = [self.letters.index(letter) for letter in self.raw]

    def get_batch(self, length, batch):
        sequences, following = [], []
        for _ in range(batch):
            start = np.random.randint(0, len(self.codes) - length)
            sequences.append(self.codes[start : start + length])
            following.append(self.codes[start + length])
        return np.array(sequences), np.array(following)


class RNN(tf.keras.Model):
    def __init__(self, letters, length):
        super().__init__()
        self.letters = letters
        self.length = length
        self.cell = tf.keras.layers.LSTMCell(units=UNITS)
        self.drop = tf.keras.layers.Dropout(0.1)
        self.out = tf.keras.layers.Dense(units=letters)

    def call(self, inputs, from_logits=False, training=True):
        inputs = tf.one_hot(inputs, depth=self.letters)
        state = [tf.zeros((inputs.shape[0], UNITS)), tf.zeros((inputs.shape[0], UNITS))]
        for t in range(self.length):
            output, state = self.cell(inputs[:, t, :], state)
        logits = self.out(self.drop(output, training=training))
        return logits if from_logits else tf.nn.softmax(logits)

    @tf.function
    def logits(self, inputs):
        return self(inputs, from_logits=True, training=False)

    def predict_next(self, inputs, temperature=1.0):
        logits = self.logits(tf.constant(inputs))
        chances = tf.nn.softmax(logits / temperature).numpy().astype("float64")
        return np.array([np.argmax(row) for row in chances])


text = Text()
model = RNN(len(text.letters), LENGTH)
optimizer = tf.keras.optimizers.Adam(learning_rate=0.002)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        y_pred = model(x)
        loss = tf.keras.losses.sparse_categorical_crossentropy(y_true=y, y_pred=y_pred)
        loss = tf.reduce_mean(loss)
    grads = tape.gradient(loss, model.variables)
    optimizer.apply_gradients(grads_and_vars=zip(grads, model.variables))
    return loss


for index in range(BATCHES):
    x, y = text.get_batch(LENGTH, BATCH)
    loss = train_step(tf.constant(x), tf.constant(y))
    print("batch %d: loss %f" % (index, loss.numpy()))

begin, _ = text.get_batch(LENGTH, 1)
for temperature in (0.5, 1.0):
    x, written = begin, ""
    for _ in range(20):
        letter = model.predict_next(x, temperature)
        written += text.letters[letter[0]]
        x = np.concatenate([x[:, 1:], np.expand_dims(letter, axis=1)], axis=-1)
    print(f"at {temperature}:", written)
