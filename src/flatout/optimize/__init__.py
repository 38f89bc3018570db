"""Make a trained model fast and small to serve, within an accuracy budget, and prove it.

    prepare/       from what the user gave to the subject, in a child process
    subject.py     the model as everything here sees it, on disk
    route.py       what a way of running a model has to offer
    backends/      the ways, one file each, found by their file
    graph.py       the subject as a TensorFlow function, frozen or not; only in child processes
    work/          the processes in which models are converted and run

    optimizer.py   the story: prepare, line up, make and check, race, claim, hand over
    lineup.py      which routes are tried, and why the others are not
    workshop.py    converts, opens and checks candidates
    checks.py      what an artefact has to pass before it is timed
    race.py        paired, interleaved rounds of contestants (contestant.py)
    claiming.py    the best again, in fresh processes; handover.py puts the artefact together
    front.py       the Pareto front
    telling.py     all of it as a Case; session.py is what surrounds it; verifying.py repeats the check elsewhere

The parent of a command imports no TensorFlow and no converter: those run in processes of their own, so that one which
crashes, hangs or takes all memory is a row of the table and not the end.
"""
