"""tf.data pipelines inside the user's program: what their stages are, how they were made, and how to make them anew.

    stages       reads a dataset that exists: its stages, their state, size, place in the source
    recipes      remembers the call that made each dataset, and replays the calls behind a stage that was replaced
    iteration    hands a rewritten dataset to the program where it starts to iterate the one it wrote
    caching      a cache in memory that knows its limit and tells when it is full
    vectorizing  functions of single elements, made to work on batches and compared before they are used

All of it runs in the child, next to the user's code, and imports TensorFlow only inside functions.
"""
