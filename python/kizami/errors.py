"""The errors that Kizami raises on purpose.

Every class is a `KizamiError` and also the built-in that fits, so `except ValueError` keeps
working; the facts are attributes, so nobody has to parse a message. Messages start in lower case,
name the value, and end with the way out.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "ChatKeyError",
    "ChatTypeError",
    "ChatValueError",
    "ChatWarning",
    "CorpusError",
    "CorpusWriteError",
    "InputTypeError",
    "InternalError",
    "InvalidIdError",
    "InvalidValueError",
    "KizamiError",
    "MissingExtraError",
    "SourceNotFoundError",
    "UnknownFormatError",
    "UnsupportedError",
    "VocabularyError",
]


class KizamiError(Exception):
    """Base of all errors of this package. Facts are given by keyword and become attributes."""

    def __init__(self, message: str = "", **facts: Any) -> None:
        super().__init__(message)
        self.message = message
        self._facts = facts
        for name, value in facts.items():
            setattr(self, name, value)

    def __str__(self) -> str:
        # KeyError would show the repr of its argument.
        return self.message

    def at_row(self, row: int) -> KizamiError:
        """The same error, said of one row of a batch: the attribute `row`, and in the message."""
        return type(self)(f"row {row}: {self.message}", **{**self._facts, "row": row})

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.message, self._facts))


def _rebuild(kind: type[KizamiError], message: str, facts: dict[str, Any]) -> KizamiError:
    return kind(message, **facts)


class InputTypeError(KizamiError, TypeError):
    """An argument has the wrong type.

    Attributes, where they apply: `segment` (index in the list of segments), `position` (index in
    the list of texts or ids), `row` (index in a batch of ids).
    """

    segment: int
    position: int
    row: int


class InvalidValueError(KizamiError, ValueError):
    """An argument has the right type and an impossible value.

    Attributes, where they apply: `line` (1-based, of a chat template).
    """

    line: int


class InvalidIdError(KizamiError, ValueError):
    """A token id is not in the vocabulary.

    Attributes: `id`, `position` (index in the ids given), `vocab_size`; `row` in a batch.
    """

    row: int
    id: int
    position: int
    vocab_size: int


class VocabularyError(KizamiError, ValueError):
    """A vocabulary file is damaged or says something impossible.

    Attributes, where they apply: `path`, `line` (1-based).
    """

    path: str
    line: int


class UnknownFormatError(KizamiError, ValueError):
    """The source was found, and Kizami does not know how to read it exactly; it never guesses.

    Attributes, where they apply: `source`; `segment` (index in the list of segments).
    """

    source: str
    segment: int


class UnsupportedError(KizamiError, NotImplementedError):
    """A drop-in lacks this part of the library that it stands in for; the message says the way out.

    Attributes: `name`, as the other library calls it.
    """

    name: str


class SourceNotFoundError(KizamiError, FileNotFoundError):
    """`load` found no such bundled name, file, directory or hub id.

    Attributes: `source`.
    """

    source: str


class MissingExtraError(KizamiError, ImportError):
    """A feature needs an optional dependency that is not installed.

    Attributes: `extra` (the name to install, as in `pip install 'kizami[hub]'`).
    """

    extra: str


class ChatValueError(KizamiError, ValueError):
    """A message, or an option of the chat renderer, has an impossible value.

    Attributes, where they apply: `message_index` (0-based); `refusal`, what a chat template says
    that refuses the conversation.
    """

    message_index: int
    refusal: str


class ChatTypeError(KizamiError, TypeError):
    """A part of a message has the wrong type. Attributes: as `ChatValueError`."""

    message_index: int


class ChatKeyError(KizamiError, KeyError):
    """A message lacks a key that it must have. Attributes: as `ChatValueError`, and `key`."""

    message_index: int
    key: str


class ChatWarning(UserWarning):
    """The chat renderer leaves something out, exactly as the published one does.

    The message says what, and how to keep it. Filter it with the tools of `warnings`.

    Attributes: `skipped_message` (index, 0-based, of a message that is left out as a whole; None
    if it is something else).
    """

    def __init__(self, message: str = "", skipped_message: int | None = None) -> None:
        super().__init__(message)
        self.skipped_message = skipped_message


class CorpusError(KizamiError, ValueError):
    """Input files, or the output of an earlier run, do not hold what they should.

    Attributes, where they apply: `path`; `row` (1-based: a line, a document of a text file, a row
    of a table); `reason`, one word for what is wrong, such as `"no-field"`.
    """

    path: str
    row: int
    reason: str


class CorpusWriteError(KizamiError, OSError):
    """The output of a corpus run cannot be written. Whole shards are kept; a later run goes on.

    Attributes: `path`.
    """

    path: str


class InternalError(KizamiError, RuntimeError):
    """A bug in Kizami. The message holds what to report; the tokenizer stays usable."""
