"""A parallel map waits rather than computes, and the thread pool caps how many of its calls can wait at once.

## What it is
The function spends its time waiting: for a remote file system, a database, a lock, a sleep.
`num_parallel_calls` asks for many calls at once, but the calls share a thread pool that has about as many
threads as the machine has cores.

## Why it costs
A waiting call holds its thread. On a 2-core machine a function that waited 10 ms took 12.6 ms per element
when serial, 6.6 ms with `num_parallel_calls=16`, and 1.0 ms with 16 calls and a private pool of 16 threads.

## How it looks
```python
def fetch(path):
    return tf.io.read_file(path)   # a network file system: 20 ms of waiting, no computing

dataset = tf.data.Dataset.from_tensor_slices(remote_paths).map(fetch, num_parallel_calls=32)
```

## The cure
```python
options = tf.data.Options()
options.threading.private_threadpool_size = 32
dataset = dataset.with_options(options)
```
Fewer and larger reads are better still: see `many-small-files`. For reading files, `interleave` over
several of them with `num_parallel_calls` keeps many requests under way.
- `threadpool`: exact. It only gives the pipeline threads of its own.
- `cache`: exact, where the data stay the same; it removes the waiting from all epochs but the first.

## When it is not worth it
When the function computes: more threads than cores then compete for the same cores and with the step
itself. A function that waits inside Python holds the interpreter lock unless the call lets go of it.
"""

GROUP = "input"
LEVERS = ("threadpool", "cache")
