"""The options of a beam search, checked when they are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lookahead_core.strategies.rules import LogitRules
from lookahead_core.validation import check_choice, check_integer, check_number


@dataclass(frozen=True)
class BeamOptions(LogitRules):
    """The options of a beam search; `BeamKeywords` explains each.

    Making them raises a ValueError for a wrong value, or for options that contradict each other.
    """

    num_beams: int = 5
    num_return_sequences: int | None = None
    length_penalty: float = 1.0
    early_stopping: bool | Literal["never"] = False
    num_beam_groups: int = 1
    diversity_penalty: float = 0.0
    stopping: Literal["transformers", "seed"] = "transformers"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("num_beams", self.num_beams, 1, 100)
        if self.num_return_sequences is not None:
            check_integer("num_return_sequences", self.num_return_sequences, 1, 100)
        if self.returned > self.num_beams:
            raise ValueError(
                f"num_return_sequences is {self.returned}, and there are only {self.num_beams} beams; raise num_beams."
            )
        check_number("length_penalty", self.length_penalty, -10, 10)
        check_choice("early_stopping", self.early_stopping, (False, True, "never"))
        check_choice("stopping", self.stopping, ("transformers", "seed"))
        check_integer("num_beam_groups", self.num_beam_groups, 1, self.num_beams)
        check_number("diversity_penalty", self.diversity_penalty, 0, 1000)
        if self.num_beams % self.num_beam_groups:
            raise ValueError(
                f"num_beam_groups is {self.num_beam_groups}, and {self.num_beams} beams cannot be shared out evenly."
            )
        if self.diversity_penalty and self.num_beam_groups == 1:
            raise ValueError("diversity_penalty keeps groups apart, and there is one; raise num_beam_groups.")
        if self.num_beam_groups > 1 and not self.diversity_penalty:
            raise ValueError(
                f"num_beam_groups is {self.num_beam_groups}, and all would find the same; raise diversity_penalty."
            )
        if self.stopping == "seed" and (self.length_penalty != 1 or self.early_stopping or self.num_beam_groups > 1):
            raise ValueError(
                'stopping="seed" adds up log-probabilities and ends when enough sequences have ended; it takes no '
                "length_penalty, early_stopping or num_beam_groups."
            )

    @property
    def returned(self) -> int:
        """The number of beams to return: `num_return_sequences`, or `num_beams` if that is None."""
        return self.num_beams if self.num_return_sequences is None else self.num_return_sequences
