"""Learns to add numbers of three digits, written as letters: a recurrent encoder and decoder over seven and four steps."""

import keras
import numpy as np
from keras import layers

DIGITS, EXAMPLES = 3, 3200
LONGEST = DIGITS + 1 + DIGITS
LETTERS = "0123456789+ "

keras.utils.set_random_seed(12)


class CharacterTable:
    def __init__(self, letters):
        self.letters = sorted(set(letters))
        self.index = {letter: i for i, letter in enumerate(self.letters)}

    def encode(self, text, rows):
        x = np.zeros((rows, len(self.letters)), "float32")
        for i, letter in enumerate(text):
            x[i, self.index[letter]] = 1
        return x

    def decode(self, x):
        return "".join(self.letters[i] for i in x.argmax(axis=-1))


table = CharacterTable(LETTERS)
questions, answers = [], []
for a, b in np.random.randint(0, 10**DIGITS, (EXAMPLES, 2)):
    questions.append(f"{a}+{b}".ljust(LONGEST)[::-1])
    answers.append(str(a + b).ljust(DIGITS + 1))
x = np.stack([table.encode(question, LONGEST) for question in questions])
y = np.stack([table.encode(answer, DIGITS + 1) for answer in answers])
x_train, x_val, y_train, y_val = x[:-320], x[-320:], y[:-320], y[-320:]

model = keras.Sequential()
model.add(layers.Input((LONGEST, len(LETTERS))))
model.add(layers.LSTM(48))
model.add(layers.RepeatVector(DIGITS + 1))
for _ in range(1):
    model.add(layers.LSTM(48, return_sequences=True))
model.add(layers.Dense(len(LETTERS), activation="softmax"))
model.compile(loss="categorical_crossentropy", optimizer="adam", metrics=["accuracy"])

for epoch in range(1, 4):
    print("Iteration", epoch)
    model.fit(x_train, y_train, batch_size=32, epochs=1, validation_data=(x_val, y_val))
    for _ in range(2):
        row = np.random.randint(0, len(x_val))
        guess = np.argmax(model.predict(x_val[np.array([row])], verbose=0), axis=-1)
        print("Q", table.decode(x_val[row])[::-1], "T", table.decode(y_val[row]), "guess", guess[0])
