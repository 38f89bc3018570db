"""Where cases live: `.flatout/cases/`, the pointer to the latest one, and the database of past runs.

`saving` stands apart: it computes what the database keeps of a run, which needs numpy; showing a case must not.
"""

from flatout.store.cases import (
    FILE,
    HOME,
    latest_tune,
    load,
    locate,
    new_directory,
    write_atomically,
    write_case,
)

__all__ = [
    "FILE",
    "HOME",
    "latest_tune",
    "load",
    "locate",
    "new_directory",
    "write_atomically",
    "write_case",
]
