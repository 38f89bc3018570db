"""How much of two runs was compared, in numbers and in words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Extent:
    """What was compared."""

    losses: int = 0
    """Steps of which a loss was compared."""
    no_numbers: int = 0
    """Of these: steps whose loss is no number (NaN, infinite) on either side."""
    steps: int = 0
    """The last step of which anything was."""
    epochs: int = 0
    variables: int = 0
    of_variables: int = 0
    """Of the program."""
    hidden: tuple[str, ...] = ()
    """Variables of which nothing can be told, as rounding alone changes them as much."""
    until: int | None = None
    """The step from which on rounding alone hides what the losses would show."""
    outputs: int = 0
    """Elements put out that were compared, of a program that does not train."""
    whole: bool = False
    """Whether both runs came to their end."""
    few: bool = False
    """Whether so few losses were compared, of those that there are, that they show nothing."""

    def __str__(self) -> str:
        parts = []
        if self.losses:
            over = f" over {self.epochs} epochs" if self.epochs > 1 else ""
            none = f" (NaN or infinite in {self.no_numbers} of them, in both)" if self.no_numbers else ""
            parts.append(f"losses of {self.losses} step{'s' if self.losses != 1 else ''}{over}{none}")
        if self.variables:
            every = self.variables == self.of_variables
            count = f"all {self.variables}" if every else f"{self.variables} of {self.of_variables}"
            after = "" if self.losses else f" after {self.steps} steps"
            parts.append(f"{count} variables{after}")
        if self.outputs:
            parts.append(f"{self.outputs:,} elements of outputs")
        return " and ".join(parts) or "nothing"
