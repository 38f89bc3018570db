"""Makes a trained model fast and small to serve, within an accuracy budget, and proves it.

    request.py        the request: one dataclass for the command and `flatout.optimize`
    session.py        a request from start to end; api.py is `flatout.optimize`
    optimizer.py      the workflow: prepare, select, build and check, race, claim, hand over
    candidates.py     which routes are tried, and why the others are not
    builder.py        converts, opens and checks candidates, in processes of work/
    checks.py         what an artefact has to pass before it is timed
    contestant.py     an artefact with a setting, in the races of `measure.race`
    claim.py          the best again, in fresh processes, until one of them stands
    delivery.py       writes the artefact and tries it as its user would; artefact.py has its files
    other_batches.py  how fast the winner is at the other batch sizes
    case.py           the results as a Case; pareto.py marks the Pareto front
    verification.py   repeats the check of an artefact on another machine
    compress/         pruning, distillation, quantization of Keras models, alone or as part of an optimize

The parent process imports no TensorFlow and no converter. Those run in child processes, so that a converter that
crashes, hangs or takes all memory is a row of the results and not the end.
"""
