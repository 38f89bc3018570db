"""`flatout check`: performance faults that source alone can show, without running it and without TensorFlow.

What looks for a fault stands with its cause in `flatout.causes`: functions marked with `@pattern`. This room holds what
they look through and what is done with what they see:

- `names`, `scopes`, `module`: one file as a tree of scopes, with what its names mean;
- `traced`, `datasets`, `loops`, `functions`: what runs as a graph, how a pipeline came to be, which loop is that of
  the steps, what a function does;
- `checker`: one text → sightings; `suppress`, `settings`, `selection`: which of them count;
- `files`, `notebooks`, `cache`, `driver`: many files, on many cores, and none of them twice;
- `repairs/`, `fixing`, `repairing`: the edits; `output/`: one file per format.
"""
