"""The structure of a Kimi K3 reply: markers and texts in, what they mean into a `Draft`.

Grammar of a whole message (`_k3_parts` has the notation):

    message(role="assistant" name?) = think? response tools? close end
    tools = call(tool index)*          call = argument(key type)* | json

A reply as the model writes it lacks the start: the prompt ended inside `think` or `response`.

Rules for what is not so, each with a fault in the draft:
1. An open tag belongs to the innermost open tag that may hold it; what is open inside that one is
   closed first.
2. A close tag closes the open tag of its name and all inside it; if there is none, nothing.
3. An open tag that nothing open may hold, or that lacks what it must say, is *foreign*: it is left
   out, with all inside it, up to its own close tag or until rule 1 or 2 closes it.
4. A tool call that is not closed by its own close tag is not whole, and is left out.

Known tags nest four deep and of foreign ones only the outermost is kept, so a marker costs O(1).

Read next: `_k3_scan`, which finds the markers in ids and in text.
"""

from __future__ import annotations

import re
from typing import Final, Literal

from kizami.chat._k3_faults import start_of
from kizami.chat._k3_reply import Draft

MarkKind = Literal["open", "close", "sep", "end"]

# The tags that may stand in a tag; "" is what is around the message.
_CHILDREN: Final[dict[str, tuple[str, ...]]] = {
    "": ("message",),
    "message": ("think", "response", "tools"),
    "tools": ("call",),
    "call": ("argument", "json"),
}
_ATTRIBUTE: Final = re.compile(r'\s+([^\s="]+)="([^"]*)"')


class Tags:
    """The tags that are open. A scanner calls `mark`, `text` and `control` in order, then `finish`.

    Attributes:
        draft: Where everything goes.
        complete: Whether the message ended with nothing left open in it.
    """

    __slots__ = (
        "_ended",
        "_foreign",
        "_header",
        "_header_closes",
        "_noted",
        "_seen",
        "_stack",
        "_start",
        "complete",
        "draft",
    )

    def __init__(self, draft: Draft, thinking: bool) -> None:
        self.draft = draft
        self.complete = False
        self._ended = False
        self._start = "think" if thinking else "response"  # "" as soon as the reply has begun
        self._stack = [""]
        self._foreign: tuple[str, int] | None = None  # name, and how often it is open
        self._seen: set[str] = set()
        self._header: list[str] | None = None  # text between a marker and its `<|sep|>`
        self._header_closes = False
        self._noted = False  # a text in a wrong place has its fault: one in each gap

    def mark(self, kind: MarkKind, position: int) -> None:
        if self._ended:
            if kind != "end":  # which engines pad with
                self._after_end(position)
            return
        self._noted = False
        if kind == "sep" and self._header is not None:
            header, self._header = "".join(self._header), None
            self._tag(header)  # its faults stand where its first marker does
            return
        self.draft.position = position
        if self._header is not None:
            self._header = None
            self.draft.fault("the tag before this marker lacks its `<|sep|>`; it is left out")
        if kind == "open":
            self._header, self._header_closes = [], False
            return
        self._begin()
        if kind == "close":
            self._header, self._header_closes = [], True
        elif kind == "end":
            self._end()
        else:
            self.draft.fault("`<|sep|>` without a tag before it; it is left out")

    def text(self, text: str) -> None:
        """Take a text that is not empty, in any number of pieces."""
        if self._header is not None:
            self._header.append(text)
            return
        if self._ended:
            if not text.isspace():
                self._after_end(self.draft.position)
            return
        self._begin()
        top = self._stack[-1]
        if self._foreign:
            return
        if top == "think":
            self.draft.reasoning(text)
        elif top == "response":
            self.draft.content(text)
        elif top == "argument":
            self.draft.argument(text)
        elif top == "json":
            self.draft.raw(text)
        elif not self._noted and not text.isspace():
            self._noted = True
            place = f"directly in {start_of(top)}" if top else "outside the message"
            self.draft.fault(f"a text stands {place}; it is left out")

    def control(self, name: str, position: int) -> None:
        """Leave out a control token that means nothing in a reply."""
        if self._ended:
            return  # padding
        if self._header is None:
            self._begin()
        self.draft.position = position
        self.draft.fault(f"the control token {name} is left out")

    def cut_character(self, size: int, position: int) -> None:
        """Leave out the first bytes of a character; the rest of it never came."""
        if not self._ended:
            self.draft.position = position
            self.draft.fault(f"the reply stops inside a character; {size} bytes are left out")

    def finish(self, position: int) -> None:
        """The input is over; what is open now was cut off."""
        if self._ended:
            return
        self.draft.position = position
        if self._header is not None:
            self.draft.fault("the reply stops inside a tag")
        elif self._start:
            self.draft.fault("the reply is empty")
        else:
            inside = self._foreign[0] if self._foreign else self._stack[-1]
            self.draft.fault(f"the reply stops inside {start_of(inside)}")

    # The start and the end

    def _begin(self) -> None:
        """If nothing was there yet: the reply goes on where the generation prompt ends."""
        if self._start:
            self._stack += ["message", self._start]
            self._seen.add(self._start)
            self._start = ""

    def _end(self) -> None:
        if self._stack == ["", "message"] and not self._foreign:
            self.complete = True
        self._close_down_to(min(2, len(self._stack)))
        self._ended = True
        self.draft.end()

    def _after_end(self, position: int) -> None:
        if not self._noted:
            self._noted = True
            self.draft.position = position
            self.draft.fault("something follows the end of the reply; it is left out")

    # Tags

    def _tag(self, header: str) -> None:
        words = header.split(None, 1)
        name = words[0] if words else ""
        if self._header_closes:
            self._close(name)
            return
        attributes = {}
        at = header.index(name) + len(name)
        while match := _ATTRIBUTE.match(header, at):
            attributes[match[1]] = match[2].replace("&quot;", '"').replace("&amp;", "&")
            at = match.end()
        if header[at:].strip():
            self.draft.fault(f"the tag {start_of(name)} has attributes that cannot be read")
        self._open(name, attributes)

    def _open(self, name: str, attributes: dict[str, str]) -> None:
        if self._start and name in ("message", "think", "response"):
            # The message is there as a whole, or with the stub that ends the prompt.
            self._stack += [] if name == "message" else ["message"]
            self._start = ""
        self._begin()
        depth = self._holder(name)
        if depth:
            self._close_down_to(depth)
            problem = self._take(name, attributes)
            if not problem:
                self._stack.append(name)
                return
        elif self._foreign:
            if name == self._foreign[0]:
                self._foreign = (name, self._foreign[1] + 1)
            return
        else:
            problem = "has no place here"
        self.draft.fault(f"the tag {start_of(name)} {problem}; it is left out")
        self._foreign = (name, 1)

    def _holder(self, name: str) -> int:
        """How many open tags remain, from the outside, where this one is opened; 0: none fits."""
        for depth in range(len(self._stack), 0, -1):
            if name in _CHILDREN.get(self._stack[depth - 1], ()):
                return depth if name != "message" or len(self._stack) == 1 else 0
        return 0

    def _take(self, name: str, attributes: dict[str, str]) -> str:
        """Tell the draft what begins; or else what is wrong with the tag."""
        draft = self.draft
        if name == "message":
            if attributes.get("role") != "assistant":
                return f"is of the role {start_of(attributes.get('role', ''))}, not 'assistant'"
            draft.name = attributes.get("name", "")
        elif name == "call":
            if "tool" not in attributes:
                return "names no tool"
            draft.start_call(attributes["tool"])
            if attributes.get("index") != str(draft.call_number):
                draft.fault(f"the tool call {draft.call_number} has another index")
        elif name == "argument":
            if "key" not in attributes:
                return "has no key"
            if draft.has_raw:
                return "comes after a block of JSON"
            draft.start_argument(attributes["key"], attributes.get("type", ""))
        elif name == "json":
            if draft.has_arguments or draft.has_raw:
                return "comes after other arguments"
            draft.start_raw()
        elif name in self._seen:
            draft.fault(f"the tag {start_of(name)} comes a second time; what is in it is added")
        self._seen.add(name)
        return ""

    def _close(self, name: str) -> None:
        if self._foreign and name == self._foreign[0]:
            times = self._foreign[1] - 1
            self._foreign = (name, times) if times else None
        elif name and name in self._stack:
            depth = self._stack.index(name) + 1
            whole = depth == len(self._stack) and not self._foreign
            self._close_down_to(depth)
            self._pop()
            if name == "message":
                self.complete = whole
                self._ended = True
                self.draft.end()
        elif not self._foreign:
            self.draft.fault(f"{start_of(name)} is closed and was not open; it is left out")

    def _close_down_to(self, depth: int) -> None:
        """Close, as faults, what is open beyond the `depth` outermost tags."""
        if self._foreign:
            self.draft.fault(f"{start_of(self._foreign[0])} is not closed")
            self._foreign = None
        while len(self._stack) > depth:
            if self._stack[-1] == "call":
                number = self.draft.call_number
                self.draft.fault(f"the tool call {number} is not closed; it is left out")
                self._stack.pop()
            else:
                self.draft.fault(f"{start_of(self._stack[-1])} is not closed")
                self._pop()

    def _pop(self) -> None:
        name = self._stack.pop()
        if name == "argument":
            self.draft.end_argument()
        elif name == "call":
            self.draft.end_call()
