"""The errors that this library raises for users; each message is a sentence that says what to do."""

from collections.abc import Mapping
from types import MappingProxyType

NO_MEMORY = (
    "There is no memory left for this text and its branches. To go on, shorten the text, ask for fewer or shorter "
    "branches, or try again later."
)
"""The sentence for errors of requests that `is_out_of_memory` recognises."""
NO_TOKENS = "The text is empty, and this model has no start token: write at least one character."
"""The sentence of errors for an empty text, where the model has no start token to predict from."""
VIEW_ENDED = (
    "The text has changed, or another lookahead of it has begun, while branches were growing below it; look ahead "
    "again."
)
"""The sentence of errors of a lookahead whose view of the document has ended."""


class LookaheadError(Exception):
    """The base class of errors whose message is shown to the user as it is: it says what is wrong and what to do."""

    status = 400
    """The HTTP status for this error: 4xx if the request must change, 5xx if the server cannot serve it now."""
    reason = ""
    """A code such as "source_too_long" for errors to which a page offers a remedy; empty for most errors."""
    details: Mapping[str, object] = MappingProxyType({})
    """Values that the remedy needs, as JSON; empty for most errors."""


class ModelError(LookaheadError):
    """The model could not be found, read or loaded into memory, or does not fit an option or another model."""


class NoAnswer(ModelError):
    """No server of the model could be reached, or all have failed, as it was to be loaded; they may answer later."""


class NoRoom(LookaheadError):
    """The server cannot take this request now: no memory, no free turn, or it is ending; a later one may succeed."""

    status = 503


class CacheFull(NoRoom):
    """The KV cache has no room for a forward pass, even after all was freed that is not in use."""


class WorkerLost(NoRoom):
    """The worker process that computed a request has ended in the middle of it; another one takes the next request."""


class Interrupted(NoRoom):
    """The work for a request has ended in the middle for a reason outside of it; the same request may succeed again."""


class InvalidLogits(LookaheadError):
    """The model has returned logits that are not numbers (NaN) or infinite, so that there are no probabilities."""

    status = 500

    def __init__(
        self,
        sentence: str = "The model's computation has failed for this text: it returned values that are no numbers. "
        "Change the text a little to try again.",
    ) -> None:
        super().__init__(sentence)


class TextError(LookaheadError):
    """The text cannot be encoded or decoded: it holds half of a surrogate pair, or the model has no tokenizer."""


def is_caused_by(
    error: BaseException | None, kind: type[BaseException] | tuple[type[BaseException], ...], message: str = ""
) -> bool:
    """Whether the error, or one in its chain, is of the type `kind` and its text, `str(error)`, contains `message`.

    The chain goes on with an error's cause, or its context if it has no cause. False for None.
    """
    while error is not None and not (isinstance(error, kind) and message in str(error)):
        error = error.__cause__ or error.__context__
    return error is not None


def is_out_of_memory(error: BaseException) -> bool:
    """Whether the error, or one in its chain as in `is_caused_by`, is a MemoryError or says that memory has run out.

    Torch says so in the message alone, with "allocate memory" on a CPU and "out of memory" on a GPU. So any Exception
    counts whose text has these words.
    """
    return is_caused_by(error, MemoryError) or any(
        is_caused_by(error, Exception, words) for words in ("allocate memory", "out of memory")
    )
