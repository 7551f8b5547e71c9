"""Tool calls and tool results of a Kimi K3 conversation: reading and pairing, no writing.

`read_ahead` does what the published renderer checks before it writes the first segment; `Results`
pairs a run of tool messages with the calls that they answer.

Read next: `_k3_writer`, which writes both.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from kizami.chat import _k3_parts as k3
from kizami.chat._k3_faults import Place, fault, show, too_deep
from kizami.errors import ChatTypeError, ChatValueError

# The call as it was given, and its arguments: a dict, or the text that is not JSON.
Call = tuple[Any, "dict[Any, Any] | str"]
# Index in `messages` (0-based), and the message.
ToolMessage = tuple[int, "dict[Any, Any]"]


class ReadAhead(NamedTuple):
    """What is read of the messages before the first segment is written, by index of the message.

    Attributes:
        calls: Tool calls, where there are any.
        tools: Tool lists with sorted keys, where there are any.
    """

    calls: dict[int, list[Call]]
    tools: dict[int, Any]


def read_ahead(messages: list[Any], first: int = 0) -> ReadAhead:
    """Read the tool calls and the tool lists of every message.

    Roles do not matter yet: the published renderer refuses wrong arguments in any message. The
    first of `messages` has the index `first`.

    Raises:
        ChatTypeError, ChatValueError: See `read_arguments` and `sorted_copy`.
    """
    ahead = ReadAhead({}, {})
    for index, message in enumerate(messages, first):
        if not isinstance(message, dict):
            continue
        if tools := message.get("tools"):
            ahead.tools[index] = sorted_copy(index, tools)
        if calls := message.get("tool_calls"):
            try:
                calls = list(calls)
            except TypeError:
                problem = f"has `tool_calls` of {show(calls)}; give a list of calls"
                raise fault(ChatTypeError, index, problem) from None
            ahead.calls[index] = [(call, read_arguments(index, call)) for call in calls]
    return ahead


def read_arguments(index: int, call: Any) -> dict[Any, Any] | str:
    """The arguments of a call as a dict, or the text itself if it does not parse.

    Raises:
        ChatTypeError: They are neither a dict, nor text, nor None.
        ChatValueError: They are JSON text, but not of an object.

    >>> read_arguments(0, {"name": "now", "arguments": "{\\"utc\\": true}"})
    {'utc': True}
    >>> read_arguments(0, {"name": "now", "arguments": "{cut off"})
    '{cut off'
    """
    if not isinstance(call, dict):
        return {}  # refused when it is written, and only then
    function = call.get("function")
    arguments = (function if isinstance(function, dict) else call).get("arguments")
    if isinstance(arguments, dict):
        return arguments
    if arguments is None:
        return {}
    if not isinstance(arguments, str):
        problem = f"has `arguments` of {show(arguments)}; give a dict or JSON text"
        raise fault(ChatTypeError, index, problem)
    if not arguments.strip():
        return {}
    try:
        value = json.loads(arguments)
    except json.JSONDecodeError:
        return arguments
    except ValueError as error:  # an integer of more digits than the interpreter reads
        problem = f"has `arguments` that cannot be read ({error}); give a dict"
        raise fault(ChatValueError, index, problem) from error
    except RecursionError:
        raise too_deep(index) from None
    if isinstance(value, dict):
        return value
    problem = f"has `arguments` {show(arguments)}, JSON that is not an object;"
    raise fault(ChatValueError, index, f'{problem} wrap the value, as in {{"value": ...}}')


def sorted_copy(place: Place, value: Any) -> Any:
    """A tool list or schema with sorted keys, or an error about `place`."""
    try:
        return k3.sorted_keys(value)
    except TypeError as error:
        problem = f"has a tool list or schema whose keys cannot be sorted ({error});"
        raise fault(ChatTypeError, place, f"{problem} make every key a string") from error
    except RecursionError:
        raise too_deep(place) from None


class Results:
    """The calls of the last assistant message, for the tool results after it.

    Attributes:
        names: The tool of each call, filled by who writes the calls.
        written: How many results have been written since that message.
    """

    __slots__ = ("_calls", "_position_of", "names", "written")

    def __init__(self, calls: list[Call]) -> None:
        self.names: list[Any] = []
        self.written = 0
        self._calls = calls
        self._position_of: dict[str, int] | None = None

    def in_order(self, run: list[ToolMessage]) -> list[tuple[int, dict[Any, Any], Any]]:
        """Put the tool messages of a run into the order of the calls that they answer.

        Ids are compared as strings; of calls with the same id the first counts. Several results of
        one call keep their order.

        Returns:
            Index, message, and name of the call. If one message answers no call, the whole run as
            it is, with None for the names.
        """
        positions = self._positions()
        placed: list[tuple[int, int, dict[Any, Any]]] = []
        for index, message in run:
            answered = message["tool_call_id"] if "tool_call_id" in message else message.get("id")
            position = None if answered is None else positions.get(str(answered))
            if position is None:
                return [(index, message, None) for index, message in run]
            placed.append((position, index, message))
        placed.sort(key=_position)
        return [(index, message, self.names[position]) for position, index, message in placed]

    def name_in_turn(self) -> Any:
        """The tool of the call at the position of the result to be written next, or None."""
        return self.names[self.written] if self.written < len(self.names) else None

    def _positions(self) -> dict[str, int]:
        if self._position_of is None:
            self._position_of = {}
            for position, (call, _) in enumerate(self._calls):
                identity = call.get("id")
                if identity is not None:
                    self._position_of.setdefault(str(identity), position)
        return self._position_of


def _position(item: tuple[int, int, dict[Any, Any]]) -> int:
    return item[0]
