"""A proof (`tune --prove`) in sentences."""

from __future__ import annotations

from flatout.model.case import Proof
from flatout.model.levers import shown


def told(proof: Proof) -> list[str]:
    """The proof in sentences."""
    cut = " Interrupted: this is what was compared until then." if proof.interrupted else ""
    what = shown(proof.levers)
    if proof.outcome == "differs":
        where = f" First difference seen: {proof.first_thing}, step {proof.first_step:,}." if proof.first_step else ""
        lines = [f"{what}: not the same. {_upper(proof.compared)}.{where}{cut}"]
        return lines + [f"the lever acts here: {note}" for note in proof.notes]
    if proof.outcome == "not-shown":
        return [f"{what}: not shown. {_upper(proof.compared)}.{cut}"]
    how = {"exact": "the same", "reassociated": "the same up to rounding"}.get(proof.parity, "as promised")
    parts = [f"{proof.steps:,} steps"]
    parts += [f"{proof.epochs} epochs"] if proof.epochs > 1 else []
    if proof.variables:
        every = "all " if proof.variables == proof.of_variables else f"{proof.variables} of "
        parts.append(f"{every}{proof.of_variables} variables")
    parts += [f"{proof.outputs:,} elements of outputs"] if proof.outputs else []
    end = "to the end of the program" if proof.whole else "the end was not reached"
    return [f"{what}: {how} over {', '.join(parts)}, {end}. {_upper(proof.compared)}.{cut}"]


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
