"""tf.data pipelines inside the user's program: what their stages are, how they were made, and how to make them anew.

    stages       reads a dataset that exists: its stages, their state, size, place in the source
    recipes      remembers the call that made each dataset, and replays the calls behind a stage that was replaced
    remade       reads that call from the stage itself, where nobody watched
    iteration    hands a rewritten dataset to the program where it starts to iterate the one it wrote
    caching      a cache in memory that knows its limit and tells when it is full
    vectorizing  functions of single elements, made to work on batches and compared before they are used

What the stages cost (`flatout data inspect`, `flatout.inspect`):

    costing      each stage alone on a sample of its input, against the sample without it; `clock` times it
    running      the pipeline as TensorFlow runs it
    ceilings     what limits it, and how fast it could be: arithmetic alone
    describing   stages as plain facts of a Case
    inspecting   all of that together, as a Case

Rewriting (`flatout data tune`, `flatout.tune_dataset`):

    rewrites/    one file for each rewrite
    copying      copies of a pipeline that share nothing with the program's own
    equality     whether two pipelines give the same elements
    racing       passes in turns, and the interval of their ratio
    shortening   how a pipeline is made short enough to be raced
    tuning       proposes, compares, races, keeps; `workers` runs a generator in a process of its own
    patching     the winners as an edit of the source

    api          the public functions; `session`, `progress` are the parent's side of the commands, `child` and
                 `target_main` the child's

What runs next to the user's code imports TensorFlow only inside functions; the parent's side never does.
"""
