"""TF_XLA_FLAGS and XLA_FLAGS: what they switch, and which of them end the program.

A flag that TensorFlow does not know ends the process when the flags are first read, and each of the two
variables knows only its own names. Compiling everything (`--tf_xla_auto_jit`) is no free gain on a CPU:
one small training script ran at 0.13 of its speed. Dumps and low optimization levels are aids that were
left on.
"""

from __future__ import annotations

from collections.abc import Iterator

from flatout.environment.reading import Check, Facts, Reading, part, variable

_COSTLY = {
    "xla_dump_to": "XLA writes every module that it compiles to disk.",
    "xla_dump_hlo_pass_re": "XLA writes every module that it compiles to disk.",
    "xla_backend_optimization_level=0": "Compiled code is not optimized.",
    "xla_gpu_autotune_level=0": "XLA takes the first GPU kernel, not the fastest.",
    "xla_gpu_deterministic_ops=true": "Deterministic kernels are used where faster ones exist.",
    "xla_cpu_multi_thread_eigen=false": "Compiled matrix products use one core.",
    "tf_xla_clustering_debug": "Every clustered graph is written to disk.",
}


def check(facts: Facts) -> Iterator[Reading]:
    given = {name: value for name in ("TF_XLA_FLAGS", "XLA_FLAGS") if (value := variable(facts, name)) is not None}
    if not given:
        yield Reading("xla flags", "none", "ok", "XLA compiles where the program asks for it.")
    for name, value in given.items():
        yield _judge(facts, name, value)


def _judge(facts: Facts, name: str, value: str) -> Reading:
    flags = value.split()
    if not value.startswith("--"):
        # A value without dashes is the name of a file that holds the flags.
        return Reading(name, value, "info", "The flags are read from this file; they were not checked.")
    strange = [flag for flag in flags if not flag.startswith("--")]
    foreign = [flag for flag in flags if flag.startswith("--xla_" if name == "TF_XLA_FLAGS" else "--tf_xla_")]
    if strange or foreign:
        other = "XLA_FLAGS" if name == "TF_XLA_FLAGS" else "TF_XLA_FLAGS"
        wrong = " ".join(strange + foreign)
        meaning = f"{name} does not know {wrong}: TensorFlow ends the process when it reads it."
        todo = f"Move it to {other}." if foreign else "Flags start with two dashes and stand apart by spaces."
        return Reading(name, value, "fault", meaning, todo)
    plain = [flag.lstrip("-").lower() for flag in flags]
    costs = [meaning for start, meaning in _COSTLY.items() if any(flag.startswith(start) for flag in plain)]
    if costs:
        return Reading(name, value, "warning", " ".join(dict.fromkeys(costs)), f"Take that flag out of {name}.")
    gpus = part(facts, "nvidia").get("gpus") or part(facts, "nvidia").get("device_files")
    if not gpus and any(flag.startswith(("tf_xla_auto_jit=1", "tf_xla_auto_jit=2")) for flag in plain):
        return Reading(
            name,
            value,
            "warning",
            "Everything that can be clustered is compiled. On a CPU that is as often slower as it is faster.",
            f"Run once without {name} and compare.",
        )
    return Reading(name, value, "info", "Flags of the compiler are set; results and speed may differ from others'.")


CHECK = Check(group="settings", check=check)
