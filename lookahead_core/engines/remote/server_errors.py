"""The errors of a model's server, and the count of attempts after which a fault is raised."""

from __future__ import annotations

import random
import time

from lookahead_core.errors import LookaheadError, NoRoom

ATTEMPTS = 4
"""How often a request is sent, without an answer in between, before its fault is raised."""
BACK_OFF = 0.25
"""Seconds before the second attempt; each further wait is twice as long."""
LONGEST_WAIT = 10.0
"""Maximum seconds to wait because of Retry-After, in all attempts together; the fault is raised if it would be more."""


class ServerFault(NoRoom):
    """The model's server gave no whole answer, and the same request may succeed later."""

    def __init__(self, sentence: str, *, wait: float | None = None, retry: bool = True, lost: bool = False) -> None:
        """`wait` has the seconds that the server asks to wait, `retry` says whether to send the request again.

        `lost` says that the server does not answer at all, so that another one should get the request at once.
        """
        super().__init__(sentence)
        self.wait = wait
        self.retry = retry
        self.lost = lost


class ServerRefusal(LookaheadError):
    """The model's server refuses a request (a status 4xx), and would refuse it again."""

    status = 502

    def __init__(self, code: int, message: str, server: str) -> None:
        """`code` is the HTTP status, `message` the server's own words."""
        super().__init__(refusal_sentence(code, message, server))
        self.code = code
        self.message = message


class RowsUnavailable(LookaheadError):
    """Raised where the log-probabilities of all tokens are needed, but the server returns only the likeliest ones."""

    def __init__(self, server: str, most: int) -> None:
        """`most` is the number of tokens that the server gives."""
        super().__init__(
            f"This needs the log-probabilities of all tokens, and {server} gives only the {most} likeliest: start it "
            "with --max-logprobs -1, or leave out sampling, banned tokens, penalties, words, token healing and wide "
            "beams."
        )


def refusal_sentence(code: int, message: str, server: str) -> str:
    """Return the sentence for a refusal with this HTTP status: what is wrong and what to do."""
    if code in (401, 403):
        return f"{server} wants a key or does not accept this one ({code}): set LOOKAHEAD_SERVER_KEY."
    if code in (404, 405):
        return f"{server} has no such call or model ({code}): check the address, which ends in /v1, and the name."
    words = " ".join(message.split())[:200].rstrip(".")
    return f"{server} refuses the request ({code}: {words}): change the text or the options."


class Retries:
    """Counts the faults of one piece of work since its last progress, and waits before the next attempt."""

    def __init__(self) -> None:
        self._faults, self._waited = 0, 0.0

    def note_progress(self) -> None:
        """Start the count anew: the server has answered a part."""
        self._faults, self._waited = 0, 0.0

    def is_last(self, fault: ServerFault) -> bool:
        """Whether there is no further attempt after this fault, so that `wait_after` would raise it."""
        return not fault.retry or self._faults + 1 >= ATTEMPTS or self._waited + (fault.wait or 0.0) > LONGEST_WAIT

    def wait_after(self, fault: ServerFault) -> None:
        """Wait as the server asks, or with back-off; raise the fault if it should not be tried again.

        That is after ATTEMPTS faults without progress, if the server's waits would be more than LONGEST_WAIT seconds
        together, and if `fault.retry` is false.
        """
        last = self.is_last(fault)
        self._faults += 1
        if last:
            raise fault
        self._waited += fault.wait or 0.0
        back_off = BACK_OFF * 2 ** (self._faults - 1) * random.uniform(0.5, 1)
        time.sleep(back_off if fault.wait is None else fault.wait)
