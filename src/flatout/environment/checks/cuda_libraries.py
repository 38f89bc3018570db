"""The CUDA libraries, against the versions that this TensorFlow asks for in its own metadata.

`tensorflow[and-cuda]` installs NVIDIA's libraries as packages in matching versions. Other frameworks in
the same environment can move them out of range, and libraries on `LD_LIBRARY_PATH` are found first,
whatever pip installed.
"""

from __future__ import annotations

from collections.abc import Iterator

from flatout.environment.packages import within
from flatout.environment.reading import Check, Facts, Reading, part

_INSTALL = 'pip install --upgrade "tensorflow[and-cuda]" brings the matching versions.'


def check(facts: Facts) -> Iterator[Reading]:
    if not part(part(facts, "tensorflow"), "build").get("is_cuda_build"):
        return
    packages = part(facts, "packages")
    versions, wanted = part(packages, "versions"), part(packages, "cuda_wanted")
    on_path = [str(path) for path in part(facts, "libraries").get("cuda_on_path") or ()]
    present = {name: str(versions[name]) for name in wanted if name in versions}
    wrong = {name: version for name, version in present.items() if not within(version, str(wanted[name]))}
    for name, version in wrong.items():
        meaning = f"This TensorFlow asks for {wanted[name]}; with another version it may fail, or see no GPU."
        yield Reading(name, version, "fault", meaning, _INSTALL)
    absent = sorted(set(wanted) - set(present))
    if absent and present:
        meaning = "Some of the libraries that this TensorFlow asks for are not installed: " + ", ".join(absent) + "."
        yield Reading("cuda libraries", f"{len(present)} of {len(wanted)}", "warning", meaning, _INSTALL)
    elif wanted and not present and not on_path:
        meaning = "None of NVIDIA's packages is installed; TensorFlow depends on what the system offers."
        yield Reading("cuda libraries", "the system's", "info", meaning, _INSTALL)
    elif not wrong and present:
        yield Reading("cuda libraries", f"{len(present)} packages", "ok", "In the versions that it was built for.")
    if on_path and present:
        shown = ", ".join(sorted({path.rpartition("/")[0] for path in on_path}))
        yield Reading(
            "LD_LIBRARY_PATH",
            shown,
            "warning",
            "CUDA libraries in these directories are loaded before the ones that pip installed for TensorFlow.",
            "Take them out of LD_LIBRARY_PATH for this program.",
        )


CHECK = Check(group="gpu", check=check)
