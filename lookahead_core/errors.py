"""The mistakes that this library names; each message is one sentence that says what to do."""


class LookaheadError(Exception):
    """Something that the person at the keyboard can mend; its text is a sentence for them."""


class ModelError(LookaheadError):
    """The model could not be found, read or held."""


class CacheFull(LookaheadError):
    """The cache has no room left, and nothing more may be forgotten."""


class TextError(LookaheadError):
    """The text cannot be read or written with this model's tokenizer."""
