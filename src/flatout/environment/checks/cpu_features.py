"""The vector instructions of this CPU, against what TensorFlow needs and can use.

The x86 wheels of TensorFlow need AVX: without it the import ends in an illegal instruction. oneDNN looks
at the CPU when it runs and uses what is there, up to AVX-512, VNNI and AMX; the operations outside oneDNN
are compiled for the lowest CPU that the wheel supports, which TensorFlow says when it starts ("rebuild
TensorFlow with the appropriate compiler flags"). That message is no fault: the operations that cost time
are mostly oneDNN's.
"""

from __future__ import annotations

from collections.abc import Iterator

from flatout.environment.reading import Check, Facts, Reading, part

_SHOWN = {
    "AVX": ("avx",),
    "AVX2": ("avx2",),
    "FMA": ("fma",),
    "AVX-512": ("avx512f",),
    "VNNI": ("avx512_vnni", "avx_vnni"),
    "bf16": ("avx512_bf16", "bf16"),
    "AMX": ("amx_tile",),
    "NEON": ("asimd",),
    "SVE": ("sve",),
    "i8mm": ("i8mm",),
}


def check(facts: Facts) -> Iterator[Reading]:
    flags = set(part(facts, "cpu").get("flags") or ())
    machine = str(part(facts, "system").get("machine") or "")
    if not flags:
        yield Reading("cpu features", "unknown", "info", "This system does not tell which instructions its CPU has.")
        return
    has = [shown for shown, names in _SHOWN.items() if flags.intersection(names)]
    value = ", ".join(has) or "none that matter"
    if machine in ("x86_64", "AMD64") and "avx" not in flags:
        yield Reading(
            "cpu features",
            value,
            "fault",
            "This CPU has no AVX (or the virtual machine hides it). TensorFlow's wheels need it and crash without.",
            "Give the virtual machine the host's CPU model, or build TensorFlow for this CPU.",
        )
    elif machine in ("x86_64", "AMD64") and not {"avx2", "fma"} <= flags:
        yield Reading(
            "cpu features",
            value,
            "warning",
            "Without AVX2 and FMA, matrix products and convolutions run far below what the same clock could give.",
            "If this is a virtual machine, give it the host's CPU model; otherwise take a newer CPU.",
        )
    else:
        yield Reading("cpu features", value, "ok", "TensorFlow's libraries choose their kernels by these.")


CHECK = Check(group="machine", check=check)
