"""Converts many small files, or a pipeline, into a few large record shards, and back.

    sources/      where elements come from, one module per kind; detection chooses the kind
    plan          which element goes into which shard, decided before anything is written
    shard         writes one shard: temporary file, note, final name
    workers       runs jobs on all cores, in processes that may die
    destination   the directory of a set of shards: lock, resuming, completion
    convert       the conversion; beam runs it with Apache Beam, stream converts a pipeline
    schema        describes a set, as JSON in its directory; reader writes the Python file that reads it
    verify        checks that every element is there once; extract restores the files
    summary       the result as text and as a Case
    formats, example, tfrecord, arrayrecord, checksum, tensors    the bytes themselves

Only `stream_main`, which runs the user's pipeline in a child process, imports TensorFlow.
"""
