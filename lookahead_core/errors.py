"""The mistakes that this library names; each message is one sentence that says what to do."""


class LookaheadError(Exception):
    """Something that the person at the keyboard can mend; its text is a sentence for them."""

    status = 400
    """The same in the numbers of HTTP: whose turn it is to do something about it."""


class ModelError(LookaheadError):
    """The model could not be found, read or held."""


class NoRoom(LookaheadError):
    """There is no room for it now; there may be later."""

    status = 503


class CacheFull(NoRoom):
    """The cache has no room left, and nothing more may be forgotten."""


class TextError(LookaheadError):
    """The text cannot be read or written with this model's tokenizer."""


def is_caused_by(
    error: BaseException | None, kind: type[BaseException] | tuple[type[BaseException], ...], words: str = ""
) -> bool:
    """Whether it, or anything behind it, is of that kind and has those words."""
    while error is not None and not (isinstance(error, kind) and words in str(error)):
        error = error.__cause__ or error.__context__
    return error is not None


def is_out_of_memory(error: BaseException) -> bool:
    """Torch on a CPU and the system say so in words only."""
    return is_caused_by(error, MemoryError) or is_caused_by(error, Exception, "allocate memory")
