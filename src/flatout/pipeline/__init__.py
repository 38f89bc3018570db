"""tf.data pipelines inside the user's program: what their stages are, what they cost, and how to change them.

`observe.stages` reads a stage that exists; this package builds on it.

Making a pipeline again with a change:

    recipes            remembers the call that made each dataset, and replays the calls behind a replaced stage
    stage_calls        reads that call from the stage itself, for datasets made before flatout was there
    options            options of a dataset by their dotted names
    iteration          gives the program a rewritten dataset where it begins to iterate the one that it wrote
    rewriting          what a rewrite of a cure receives and returns
    caching            where a cache may stand, and a cache in memory with a limit
    vectorization      functions of single elements made to work on batches, compared before they are used
    generator_process  a Python generator in a process of its own

Looking at a pipeline without disturbing it:

    copies             copies that share no shuffle and no cache with the program's own pipeline
    descriptions       stages as plain facts of a Case
    stage_costs        the cost of each stage alone, on a sample of its input; `clock` times it
    runtime_model      the pipeline as TensorFlow runs it

All of this runs beside the user's code and imports TensorFlow only inside functions.
"""
