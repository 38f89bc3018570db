"""Many small files, or a pipeline, as a few large record shards, and back.

    sources/      where elements come from, one file per kind
    plan          which element goes into which shard, decided beforehand
    shard         one shard: temporary file, note, final name; what is done is not done again
    workers       all cores, in processes that may die
    convert       the conversion itself; beam, the same by an Apache Beam runner; stream, the same for a pipeline
    schema        what lies in a set, as JSON beside it; reader writes the Python file that reads it
    verify        whether every element is there once; extract gives the files back
    example, tfrecord, arrayrecord, checksum, tensors    the bytes themselves

Nothing here imports TensorFlow but `stream_main`, which runs the user's pipeline in a process of its own.
"""
