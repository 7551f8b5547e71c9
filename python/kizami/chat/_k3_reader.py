"""Kimi K3's reply -> an assistant message, at once (`parse`) or while it comes (`Parser`).

From ids the structure is certain: only control ids make it, and text that looks like a marker is
text. From a `str` that cannot be known any more.

Read next: `_k3_reply` for the results, `_k3_tags` for the grammar and what is done when it is
broken, `_k3_scan` for ids and text.
"""

from __future__ import annotations

from typing import Any

from kizami.chat._k3_faults import kind_of, start_of
from kizami.chat._k3_reply import CallId, Draft, Event, ParsedReply, default_call_id
from kizami.chat._k3_scan import IdScanner, ReplyTokenizer, TextScanner
from kizami.chat._k3_tags import Tags
from kizami.errors import InputTypeError, InvalidValueError

__all__ = ["Parser", "parse"]


class Parser:
    """Reads a reply in pieces of any size: ids as the model makes them, or text.

    Args:
        tokenizer: The tokenizer of the ids (`kizami.load("kimi-k3")`). Text needs none.
        thinking: As it was for `render`: whether the prompt ends inside `think` or `response`. It
            counts only for a reply that begins there. One that begins with an open tag says
            itself where it is: a whole `message` as `render` writes it, or the stub (`think`,
            `response`) that ends the prompt.
        call_id: Makes the `id` of a tool call from its number (from 0) and the tool's name; the
            model writes none. The default gives `call_1`, `call_2`, ...

    Raises:
        InputTypeError: `thinking` is no bool, or `call_id` cannot be called.

    Cost: O(bytes) in total, however the reply is cut; not for several threads at a time.
    Law: the pieces do not matter. The events, with neighbours of one kind put together, and the
    result are those of everything in one piece.

    >>> import kizami
    >>> tokenizer = kizami.load("kimi-k3")
    >>> parser = Parser(tokenizer=tokenizer, thinking=False)
    >>> for id_ in tokenizer.encode("Hi 🎉"):
    ...     print(parser.push(id_))
    [Event(kind='content', text='Hi', call=None)]
    [Event(kind='content', text=' ', call=None)]
    []
    [Event(kind='content', text='🎉', call=None)]
    >>> parser.push(tokenizer.eos_ids)
    [Event(kind='end', text='', call=None)]
    >>> parser.finish().message
    {'role': 'assistant', 'content': 'Hi 🎉'}
    """

    __slots__ = ("_draft", "_reply", "_scanner", "_tags", "_tokenizer")

    def __init__(
        self,
        *,
        tokenizer: ReplyTokenizer | None = None,
        thinking: bool = True,
        call_id: CallId = default_call_id,
    ) -> None:
        if thinking not in (0, 1):  # as `render`: "no" must not mean yes
            raise InputTypeError(f"`thinking` is {start_of(thinking)}; give True or False")
        if not callable(call_id):
            problem = "give a function of a call's number and its tool's name"
            raise InputTypeError(f"`call_id` is {start_of(call_id)}; {problem}")
        self._draft = Draft(call_id)
        self._tags = Tags(self._draft, bool(thinking))
        self._tokenizer = tokenizer
        self._scanner: IdScanner | TextScanner | None = None
        self._reply: ParsedReply | None = None

    def push(self, piece: Any, /) -> list[Event]:
        """Read on.

        Args:
            piece: An id, ids (a sequence of ints or an integer array), or `str`; all pieces of a
                reply are of one sort. In a `str` the names of the four markers are structure,
                even if the model wrote them in ordinary ids: give ids where you have them.

        Returns:
            What is certain now and was not before; often nothing. Text is held back while a
            character is not whole, or while it may be the start of a marker; an argument that is
            no string, until it ends.

        Raises:
            InvalidIdError, InputTypeError: The ids are none of this tokenizer's, or there is no
                tokenizer, or pieces are of two sorts. Nothing has been read of the piece. (What
                `call_id` raises comes through, and the rest of the piece is lost.)
            InvalidValueError: After `finish`.
            UnknownFormatError: The tokenizer has not the markers of Kimi K3.

        A malformed reply is no error: see `ParsedReply.faults`.
        """
        if self._reply is not None:
            raise InvalidValueError("the reply is finished; make a new Parser for the next one")
        scanner = self._scanner_for(piece)
        scanner.push(piece)
        self._scanner = scanner
        return self._draft.take_events()

    def finish(self) -> ParsedReply:
        """The input is over. A second call gives the same object."""
        if self._reply is None:
            self._tags.finish(self._scanner.finish() if self._scanner else 0)
            draft = self._draft
            tail = tuple(draft.take_events())
            faults = tuple(draft.faults)
            self._reply = ParsedReply(draft.message(), self._tags.complete, faults, tail)
        return self._reply

    def _scanner_for(self, piece: Any) -> Any:
        is_text = isinstance(piece, str)
        if self._scanner is not None:
            if isinstance(self._scanner, TextScanner) is not is_text:
                sort = "ids after text" if not is_text else "text after ids"
                raise InputTypeError(f"the reply goes on with {sort}; give one sort of pieces")
            return self._scanner
        if is_text:
            return TextScanner(self._tags)
        if self._tokenizer is None:
            hint = 'ids need `tokenizer`, as in tokenizer=kizami.load("kimi-k3")'
            raise InputTypeError(f"the reply is {kind_of(piece)}, not text; {hint}")
        return IdScanner(self._tokenizer, self._tags)


def parse(
    reply: Any,
    /,
    *,
    tokenizer: ReplyTokenizer | None = None,
    thinking: bool = True,
    call_id: CallId = default_call_id,
) -> ParsedReply:
    """Read a reply that is there as a whole: `Parser`, one `push`, `finish`.

    Args:
        reply: Ids, or `str`. Prefer ids: in a `str`, a marker's name is structure even if the model
            only quoted it. (Decode without `skip_special` if it has to be a `str`.)
        tokenizer: As for `Parser`: the tokenizer of the ids.
        thinking: As for `Parser`: where a reply begins that does not begin with an open tag.
        call_id: As for `Parser`: makes the `id`s of tool calls.

    Raises:
        InvalidIdError, InputTypeError, UnknownFormatError: As `Parser` and `Parser.push`; never
            because of what the model wrote.

    Law: `parse(encode_segments(render([m], thinking_effort=None, add_generation_prompt=False)))`
    gives `m` back, complete and without faults, for every assistant message `m` in the form that
    `ParsedReply.message` has, but for the `id`s of calls, which are not in a prompt. Of another
    form it gives that form: `docs/guides/replies.md` lists what changes.

    >>> text = "Easy.<|close|>think<|sep|><|open|>response<|sep|>Four."
    >>> reply = parse(text + "<|close|>response<|sep|><|close|>message<|sep|><|end_of_msg|>")
    >>> reply.message
    {'role': 'assistant', 'content': 'Four.', 'reasoning_content': 'Easy.'}
    >>> reply.complete, reply.faults
    (True, ())
    """
    parser = Parser(tokenizer=tokenizer, thinking=thinking, call_id=call_id)
    parser.push(reply)
    return parser.finish()
