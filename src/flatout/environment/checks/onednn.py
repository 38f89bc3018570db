"""oneDNN, the library that does TensorFlow's heavy work on the CPU, and the variables that limit it.

It is on by default on x86 and chooses its kernels by the CPU it finds. `TF_ENABLE_ONEDNN_OPTS=0` is often
copied from an answer about silencing its message; `ONEDNN_MAX_CPU_ISA` caps the instructions it may use:
a matrix product on an AMX machine took eight times as long under SSE41. `ONEDNN_VERBOSE` prints a line
per primitive.
"""

from __future__ import annotations

from collections.abc import Iterator

from flatout.environment.reading import Check, Facts, Reading, part, variable


def check(facts: Facts) -> Iterator[Reading]:
    switch = variable(facts, "TF_ENABLE_ONEDNN_OPTS")
    in_use = part(facts, "tensorflow").get("onednn")
    x86 = part(facts, "system").get("machine") in ("x86_64", "AMD64")
    if switch in ("0", "false", "False"):
        yield Reading(
            "onednn",
            f"off (TF_ENABLE_ONEDNN_OPTS={switch})",
            "warning" if x86 else "info",
            "The operations that cost most on a CPU run without their vector kernels.",
            "unset TF_ENABLE_ONEDNN_OPTS; to silence its message set TF_CPP_MIN_LOG_LEVEL=1 in its place.",
        )
    elif in_use is not None:
        status = "on" if in_use else "off"
        yield Reading("onednn", status, "ok" if in_use or not x86 else "info", f"TensorFlow reports it {status}.")
    for name in ("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"):
        cap = variable(facts, name)
        if cap and cap.upper() not in ("ALL", "DEFAULT"):
            yield Reading(
                name,
                cap,
                "warning",
                "oneDNN may use no newer instructions than these, whatever the CPU has.",
                f"unset {name}.",
            )
    for name in ("ONEDNN_VERBOSE", "DNNL_VERBOSE"):
        level = variable(facts, name)
        if level and level not in ("0", "none"):
            meaning = "oneDNN prints a line for every primitive that it runs, thousands in a step."
            yield Reading(name, level, "warning", meaning, f"unset {name} outside of a hunt for slow primitives.")


CHECK = Check(group="settings", check=check)
