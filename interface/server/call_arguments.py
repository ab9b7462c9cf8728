"""Check the arguments of calls from programs: their names, types, and upper limits."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from interface.server.branch_request import MOST_CHARACTERS, whole

NAMES = (
    "next_token", "continue_messages", "logprobs", "highlights", "gen_revisions", "lookahead", "generate",
    "beam_search", "compress",
)  # fmt: skip
CAPS = {
    "k": 20, "n_branch_tokens": 20, "depth": 40, "n_future_tokens": 40, "max_new_tokens": 512, "max_length": 1024,
    "n": 10, "num_beams": 20, "budget": 512,
}  # fmt: skip
"""Upper limits of whole-number arguments of calls from programs; the methods of `Calls` allow more."""
TOKEN_COUNTS = {
    "next_token": (("k",), ("n_future_tokens", "depth")),
    "continue_messages": (("n_branch_tokens",), ("n_future_tokens",)),
    "lookahead": (("k",), ("depth",)),
}
"""Arguments of calls for the number of branches and for their length; the first one that is set counts."""
MOST_HIGHLIGHTED = 400_000
"""Characters of a text times `k` in the call `highlights`, whose answer has `k` alternatives for each token."""
MOST_STOPS, LONGEST_STOP = 20, 200
"""The most stop strings of a call, and characters of each: they are searched for after every token."""


def function_of(name: str) -> Callable[..., dict[str, Any]]:
    """Return the method of `Calls` with that name, as a function whose first parameter is `self`.

    It is not checked that the name is one of NAMES.
    """
    from lookahead_core.serving.calls import Calls

    return getattr(Calls, name)  # type: ignore[no-any-return]


@cache
def parameters_of(name: str) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of the call with that name, in order and by their names, without `self`.

    Their annotations are types, and no strings. Computed once for each name: it takes a tenth of what a refused call
    costs.
    """
    parameters = inspect.signature(function_of(name), eval_str=True).parameters
    return MappingProxyType(dict(list(parameters.items())[1:]))


def checked(call: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of a program's arguments for the call with that name, those with a limit in CAPS as int.

    Raises ValueError with a sentence for an unknown or missing argument, a string of more than MOST_CHARACTERS, a list
    of too many or too long stop strings, and a value in CAPS that is neither None nor a whole number from 1 to its
    limit. Other values are not checked, and defaults are not filled in.
    """
    known = parameters_of(call)
    for name in arguments:
        if name not in known:
            raise ValueError(f"{str(name)[:40]!r} is not an argument of this call; it takes {', '.join(known)}.")
    for name, parameter in known.items():
        if parameter.default is parameter.empty and name not in arguments:
            raise ValueError(f"{name} is missing; this call takes {', '.join(known)}.")
    valid = dict(arguments)
    for name, value in arguments.items():
        if name in CAPS and value is not None:
            valid[name] = whole(name, value, 1, CAPS[name])
        if isinstance(value, str) and len(value) > MOST_CHARACTERS:
            raise ValueError(
                f"{name} has {len(value):,} characters, and at most {MOST_CHARACTERS:,} are allowed: shorten it."
            )
    _check_stops(arguments.get("stop"))
    if call == "highlights":
        _check_highlighted(valid)
    return valid


def _check_highlighted(arguments: Mapping[str, Any]) -> None:
    """Raise ValueError if the answer of the call `highlights` would be too large, see MOST_HIGHLIGHTED."""
    texts = [arguments.get(name) for name in ("updated_doc", "doc")]
    length = next((len(text) for text in texts if isinstance(text, str) and text.strip()), 0)
    k = arguments.get("k", 5)
    if isinstance(k, int) and length * k > MOST_HIGHLIGHTED:
        raise ValueError(
            f"The text has {length:,} characters, and with k = {k} at most {MOST_HIGHLIGHTED // k:,} are allowed: "
            "shorten it, or lower k."
        )


def check_tokens(call: str, arguments: Mapping[str, Any], most: int) -> None:
    """Raise ValueError if a call's number of branches times their length is above `most`; see TOKEN_COUNTS."""
    if call not in TOKEN_COUNTS:
        return
    known = parameters_of(call)
    values = {name: parameter.default for name, parameter in known.items()} | dict(arguments)
    k, depth = (
        next((values[name] for name in names if values[name] is not None), None) for names in TOKEN_COUNTS[call]
    )
    if k is not None and depth is not None and k * depth > most:
        raise ValueError(f"{k} branches of {depth} tokens are asked for, and at most {most} tokens are allowed.")


def _check_stops(stops: Any) -> None:
    """Raise ValueError for a list of more than MOST_STOPS elements, or with a string of over LONGEST_STOP characters.

    `stops` is a call's argument `stop`. Any other value passes: the call itself refuses wrong types.
    """
    if not isinstance(stops, list):
        return
    if len(stops) > MOST_STOPS:
        raise ValueError(f"stop has {len(stops):,} strings, and at most {MOST_STOPS} are allowed: leave some out.")
    if any(isinstance(one, str) and len(one) > LONGEST_STOP for one in stops):
        raise ValueError(f"stop has a string of more than {LONGEST_STOP} characters: shorten it.")
