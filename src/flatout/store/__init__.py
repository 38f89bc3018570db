"""Where cases live: `.flatout/cases/`, the pointer to the latest one, and the database of past runs.

`saving` is not imported here: it needs numpy, which showing a case does not.
"""

from flatout.store.cases import (
    FILE,
    HOME,
    latest_tune,
    latest_tune_in,
    latest_with_patch,
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
    "latest_tune_in",
    "latest_with_patch",
    "load",
    "locate",
    "new_directory",
    "write_atomically",
    "write_case",
]
