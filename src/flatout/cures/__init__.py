"""One file per lever: a change that can be injected into an unmodified program from outside.

A lever's docstring is its page. A probe only observes; a lever only changes. The names that a lever may define:

    EQUIVALENCE   exact, reassociated, precision, semantic or bound: what the change may do to the numbers
    SIDE          input, host, compute or runtime: the part of a step that it can shorten
    CONFLICTS     names of levers that cannot be combined with it
    FILLS         True for a lever that keeps what the first epoch computes, and pays from the second one on
    SEVERAL       True for a lever whose settings are places of the program: several of them may be used together
    UNASKED       False for a lever that is tried only when it is named

    values(case)                 settings worth trying ("16", "64"); a lever without settings leaves it out
    skip(case)                   why it cannot help this program, in words; None where it is worth a try
    environment(value)           variables to set before Python starts
    on_tensorflow(injection, module), on_keras(…), on_tf_keras(…)
                                 called in the child right after that package was imported, before the probes; patches
                                 names of `observe.private_names`

The same change as an edit of the source is `source/rewrite/<name>.py`: `edit(source, path, case, value)` gives the new
text of a file, or None. A lever that cannot be injected is tried by running the edited source. `skip`, `values` and
edits run in flatout's own process and never import TensorFlow.

The variable FLATOUT_LEVERS names further directories with lever files: a project's own.
"""

import os

__path__.extend(filter(None, os.environ.get("FLATOUT_LEVERS", "").split(os.pathsep)))
