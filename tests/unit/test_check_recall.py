"""Faults in the forms in which public programs have them, and look-alikes that stay quiet."""

from __future__ import annotations

import textwrap

import pytest

from flatout.check.checker import Checker
from flatout.check.selection import select

TF = "import tensorflow as tf\n"
FAULTS = {
    "one function gives the gradients, the loop applies them": (
        "eager-step/tape-outside-function",
        TF
        + """
        def grad(model, inputs, targets):
            with tf.GradientTape() as tape:
                value = loss(model, inputs, targets)
            return value, tape.gradient(value, model.trainable_variables)

        for inputs, targets in data:
            value, gradients = grad(model, inputs, targets)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        """,
    ),
    "rows of a table": (
        "python-in-pipeline/generator",
        TF
        + """
        class Rows:
            def iterate(self):
                for _, row in self.table.iterrows():
                    yield row["text"], row["label"]

            def dataset(self):
                return tf.data.Dataset.from_generator(self.iterate, (tf.int64, tf.int64)).padded_batch(32)
        """,
    ),
    "an optimization": (
        "eager-step/tape-outside-function",
        TF
        + """
        class Agent:
            def optimization(self, states):
                with tf.GradientTape() as tape:
                    loss = self.value(states)
                self.optimizer.apply_gradients(zip(tape.gradient(loss, self.weights), self.weights))
        """,
    ),
    "only the loss is printed": (
        "predict-in-loop/predict",
        TF
        + """
        generator, critic = tf.keras.models.load_model("g.keras"), tf.keras.models.load_model("c.keras")
        for number, photos in enumerate(loader.batches()):
            made = generator.predict(photos)
            loss = critic.train_on_batch(made, wrong)
            print(number, loss)
        """,
    ),
    "a model that asks itself": (
        "predict-in-loop/predict",
        TF
        + """
        class Policy(tf.keras.Model):
            def action(self, state):
                return self.predict(state)[0]

        policy = Policy()
        for step in range(steps):
            state = world.step(policy.action(state))
        """,
    ),
    "tf comes from another module by a star": (
        "eager-step/tape-outside-function",
        """
        from common import *

        def train_step(model, optimizer, batch):
            with tf.GradientTape() as tape:
                loss = model(batch)
            optimizer.apply_gradients(zip(tape.gradient(loss, model.weights), model.weights))

        for batch in batches:
            train_step(model, optimizer, batch)
        """,
    ),
    "the update is in a helper": (
        "eager-step/tape-outside-function",
        TF
        + """
        class Trainer:
            def _apply(self, gradients):
                self.optimizer.apply_gradients(zip(gradients, self.model.weights))

            def _train_step(self, batch):
                with tf.GradientTape() as tape:
                    loss = self.model(batch)
                self._apply(tape.gradient(loss, self.model.weights))

            def train(self, batches):
                for batch in batches:
                    self._train_step(batch)
        """,
    ),
    "a model of the project's own, in a file with metrics of sklearn": (
        "predict-in-loop/predict",
        TF
        + """
        from sklearn.metrics import confusion_matrix
        from networks import ResNetTracker

        tracker = ResNetTracker(shape=(3, 288, 512))
        def follow(frames):
            return [tracker.predict(frame) for frame in frames]
        """,
    ),
    "each arm has its step and reads its loss": (
        "host-sync/pull-every-step",
        TF
        + """
        @tf.function
        def warm_step(batch): optimizer.apply_gradients(grads(batch)); return batch
        @tf.function
        def full_step(batch): optimizer.apply_gradients(grads(batch)); return batch

        def train(dataset, start):
            for number, batch in enumerate(dataset):
                if number >= start:
                    loss = full_step(batch)[0]
                    losses.append(loss.numpy())
                else:
                    loss = warm_step(batch)[0]
                    losses.append(loss.numpy())
        """,
    ),
    "the sum of the losses is read": (
        "host-sync/pull-every-step",
        TF
        + """
        def fit(dataset, train_step):
            total = 0
            for number, batch in enumerate(dataset):
                loss, accuracy = train_step(batch)
                total += loss
                history.append(float(total) / (number + 1))
        """,
    ),
    "the step is a method of another object": (
        "host-sync/pull-every-step",
        TF
        + """
        class Critic:
            @tf.function
            def step(self, batch):
                self.optimizer.apply_gradients(grads(batch))
                return batch

        class Pair:
            def epoch(self, dataset):
                for batch in dataset:
                    loss = self.critic.step(batch)
                    self.losses.append(loss.numpy())
        """,
    ),
    "a flow of an ImageDataGenerator": (
        "python-in-pipeline/generator",
        TF
        + """
        def load(photos, folder):
            flow = photos.flow_from_directory(folder)
            return tf.data.Dataset.from_generator(lambda: flow, output_types=(tf.float32, tf.float32))
        """,
    ),
    "a generator method of another file's class": (
        "python-in-pipeline/generator",
        TF
        + """
        from readers import Photos

        def load(folder):
            photos = Photos(folder)
            return tf.data.Dataset.from_generator(photos.iterate, output_types=tf.float32)
        """,
    ),
    "Python in a tf.function": (
        "python-in-pipeline/python-function",
        TF
        + """
        from scipy.optimize import linear_sum_assignment

        @tf.function
        def assign(costs):
            return tf.stack(tf.py_function(linear_sum_assignment, [costs], [tf.int64, tf.int64]))
        """,
    ),
    "a dataset of unknown origin": (
        "python-in-pipeline/python-function",
        TF
        + """
        def encode(text, label):
            return tf.py_function(words, inp=[text, label], Tout=(tf.int64, tf.int64))

        encoded = everything.map(encode)
        """,
    ),
    "an element of each row": (
        "sequential-loop/map-fn",
        TF + "chosen = tf.map_fn(lambda pair: pair[0][pair[1]], (rows, places), dtype=tf.float32)\n",
    ),
    "a lambda with a name": (
        "sequential-loop/map-fn",
        TF
        + """
        def scaled(boxes, size):
            scale = lambda box: tf.cast(box, tf.float32) / size
            return tf.map_fn(scale, boxes)
        """,
    ),
    "images for a training in another file": (
        "legacy-pipeline/image-generator",
        """
        from tensorflow.keras.preprocessing.image import ImageDataGenerator

        def load(folder):
            return ImageDataGenerator(rotation_range=20).flow_from_directory(folder)
        """,
    ),
}
QUIET = {
    "an estimator of sklearn": """
        import tensorflow as tf
        from sklearn.ensemble import RandomForestClassifier
        model = RandomForestClassifier()
        def classify(rows):
            return [model.predict(row) for row in rows]
        """,
    "every hundredth step": """
        import tensorflow as tf
        def fit(dataset, train_step):
            for number, batch in enumerate(dataset):
                loss = train_step(batch)
                if number % 100 == 0:
                    print(loss.numpy())
        """,
    "parts of the batch": """
        import tensorflow as tf
        def fit(dataset, train_step):
            for batch in dataset:
                names = batch[0]
                loss = train_step(batch)
                seen.append(names.numpy())
        """,
    "images for a look": """
        from tensorflow.keras.preprocessing.image import ImageDataGenerator
        def load(folder):
            return ImageDataGenerator(rescale=1 / 255).flow_from_directory(folder)
        """,
    "several updates in a step": """
        import tensorflow as tf
        class Gan(tf.keras.Model):
            def train_step(self, data):
                for i in range(self.updates):
                    x = data[i]
                    with tf.GradientTape() as tape:
                        loss = self.critic(x)
                    self.optimizer.apply_gradients(zip(tape.gradient(loss, self.weights), self.weights))
                return {}
        """,
    "a step that is eager by name": """
        import tensorflow as tf
        def train_eager_mode(model, optimizer, dataset):
            for batch in dataset:
                with tf.GradientTape() as tape:
                    loss = model(batch)
                optimizer.apply_gradients(zip(tape.gradient(loss, model.weights), model.weights))
        """,
    "records one by one": """
        import tensorflow as tf
        def parse(record):
            return tf.io.parse_single_example(record, {})
        dataset = tf.data.TFRecordDataset("rows.tfrecord").map(parse, num_parallel_calls=4).batch(1)
        """,
    "a queue": """
        import tensorflow as tf
        def unrolls(dataset, queue):
            def take(index):
                return queue.dequeue_many(8)
            return dataset.map(take, num_parallel_calls=1)
        """,
    "a short sequence": """
        import tensorflow as tf
        def decode(state, steps):
            output = tf.zeros((8, 1, 32))
            for step in range(steps):
                piece, state = cell(state)
                output = tf.concat([output, piece], axis=1)
            return output
        """,
    "a generator that an applied function caches": """
        import tensorflow as tf
        import numpy as np

        def rows():
            for name in names:
                yield np.load(name)

        def prepare(data):
            data = data.map(lambda row: tf.cast(row, tf.float32))
            return data.cache().shuffle(200).batch(32)

        dataset = tf.data.Dataset.from_generator(rows, tf.uint8)
        dataset = dataset.apply(prepare)
        """,
    "Python behind which an attribute is cached": """
        import tensorflow as tf
        class Loader:
            def load(self, names, labelled):
                if labelled:
                    self.rows = names.map(lambda x: tf.py_function(read, [x], tf.float32), num_parallel_calls=4)
                else:
                    self.rows = names.map(lambda x: tf.py_function(guess, [x], tf.float32), num_parallel_calls=4)
                return self.rows.batch(8).cache().prefetch(tf.data.AUTOTUNE)
        """,
    "ten rounds of fit": """
        import tensorflow as tf
        model = tf.keras.Sequential([tf.keras.layers.Dense(2)])
        for i in range(0, 10):
            model.fit(x, y, batch_size=100, epochs=1)
            print(model.predict(z))
        """,
    "a type that the user chooses": """
        import tensorflow as tf
        if args.dtype == "float64":
            tf.keras.backend.set_floatx("float64")
        """,
    "a predict of its own": """
        import tensorflow as tf
        from yolo import YoloModel
        model = YoloModel(80)
        def follow(frames):
            return [model.predict(frame, image_need_resize=False) for frame in frames]
        """,
    "a scale for each image": """
        import tensorflow as tf
        def normalized(x, z, dense):
            offset = tf.reshape(dense(z), [-1, 1, 1, 64])
            scale = tf.reshape(dense(z), [-1, 1, 1, 64])
            mean, variance = tf.nn.moments(x, [0, 1, 2])
            return tf.nn.batch_normalization(x, mean, variance, offset, scale, 1e-5)
        """,
    "a few weights by hand that are read": """
        import tensorflow as tf
        from sklearn import datasets
        x = datasets.load_iris().data
        w = tf.Variable(tf.random.truncated_normal([4, 3]))
        for epoch in range(500):
            for batch in tf.data.Dataset.from_tensor_slices(x).batch(32):
                with tf.GradientTape() as tape:
                    loss = tf.reduce_mean(tf.matmul(batch, w))
                    total += loss.numpy()
                w.assign_sub(0.1 * tape.gradient(loss, w))
        """,
    "augmented images for a look": """
        import matplotlib.pyplot as plt
        from tensorflow.keras.preprocessing.image import ImageDataGenerator
        images = ImageDataGenerator(rotation_range=45)
        images.fit(x)
        plt.imshow(x[0])
        """,
    "most of the image": """
        import tensorflow as tf
        def read(text):
            image = tf.io.decode_jpeg(text)
            return tf.image.central_crop(image, 0.8)
        """,
    "a persistent tape": """
        import tensorflow as tf
        def slope(model, x):
            with tf.GradientTape(persistent=True) as tape:
                tape.watch(x)
                y = model(x)
            return tape.gradient(y, x)
        """,
    "Python that the caller gives": """
        import tensorflow as tf
        @tf.function
        def applied(function, values):
            return tf.py_function(function, [values], tf.float32)
        """,
}


def found(text: str) -> set[str]:
    outcome = Checker(select(), asked=(), seldom=True).check(text, "program.py")
    assert not outcome.problem, outcome.problem
    return {item.full_name for item in outcome.diagnostics}


def dedented(text: str) -> str:
    head, _, rest = text.partition("\n") if text.startswith(TF) else ("", "", text)
    return f"{head}\n{textwrap.dedent(rest)}"


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_seen(name: str) -> None:
    pattern, text = FAULTS[name]
    assert pattern in found(dedented(text))


@pytest.mark.parametrize("name", QUIET)
def test_a_look_alike_is_quiet(name: str) -> None:
    assert found(dedented(QUIET[name])) == set()


def test_a_loss_of_an_eager_step_is_read_for_free() -> None:
    text = """
    import tensorflow as tf
    def one(model, batch):
        with tf.GradientTape() as tape:
            loss = model(batch)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.weights), model.weights))
        return loss
    def fit(model, dataset):
        for batch in dataset:
            print(one(model, batch).numpy())
    """
    assert found(textwrap.dedent(text)) == {"eager-step/tape-outside-function"}
