"""Reading replies of Kimi K3: known answers, what is malformed, and wrong use.

The laws are in `tests/property/test_replies.py`.
"""

from __future__ import annotations

import json
import time
from typing import Any

import kizami
import numpy as np
import pytest
from kizami import Tokenizer
from kizami.chat.kimi_k3 import Event, ParsedReply, Parser, parse
from kizami.errors import InputTypeError, InvalidIdError, InvalidValueError, UnknownFormatError

END = "<|close|>message<|sep|><|end_of_msg|>"
THINK_TO_RESPONSE = "<|close|>think<|sep|><|open|>response<|sep|>"
TO_TOOLS = "<|close|>response<|sep|><|open|>tools<|sep|>"
AFTER_TOOLS = "<|close|>tools<|sep|>" + END
CALL = '<|open|>call tool="f" index="1"<|sep|>'
CALL_END = "<|close|>call<|sep|>"


@pytest.fixture(params=["ids", "text"])
def read(request: pytest.FixtureRequest, tokenizer: Tokenizer) -> Any:
    """Reads a reply that holds no look-alikes, once from ids and once from text."""

    def read(text: str, **options: Any) -> ParsedReply:
        if request.param == "text":
            return parse(text, **options)
        ids = tokenizer.encode(text, allow_special=True)
        return parse(ids, tokenizer=tokenizer, **options)

    return read


def argument(value: str, kind: str = "string", key: str = "k") -> str:
    start = f'<|open|>argument key="{key}" type="{kind}"<|sep|>'
    return f"{start}{value}<|close|>argument<|sep|>"


def with_calls(*calls: str) -> str:
    return THINK_TO_RESPONSE + TO_TOOLS + "".join(calls) + AFTER_TOOLS


def functions(reply: ParsedReply) -> list[tuple[str, str]]:
    calls = reply.message.get("tool_calls", [])
    return [(call["function"]["name"], call["function"]["arguments"]) for call in calls]


def problems(reply: ParsedReply) -> str:
    return "; ".join(fault.problem for fault in reply.faults)


# Where a reply begins.


@pytest.mark.parametrize("thinking", [True, False])
@pytest.mark.parametrize(
    "start", ['<|open|>message role="assistant"<|sep|><|open|>think<|sep|>', "<|open|>think<|sep|>"]
)
def test_a_reply_that_begins_with_a_tag_says_itself_where_it_is(
    read: Any, start: str, thinking: bool
) -> None:
    text = start + "why" + THINK_TO_RESPONSE + "so<|close|>response<|sep|>" + END
    reply = read(text, thinking=thinking)

    expected = {"role": "assistant", "content": "so", "reasoning_content": "why"}
    assert reply == (expected, True, (), ())


def test_a_reply_goes_on_where_the_prompt_ends(read: Any) -> None:
    reply = read("why" + THINK_TO_RESPONSE + "so<|close|>response<|sep|>" + END)
    assert reply.message == {"role": "assistant", "content": "so", "reasoning_content": "why"}

    reply = read("so<|close|>response<|sep|>" + END, thinking=False)
    assert reply == ({"role": "assistant", "content": "so"}, True, (), ())


def test_empty_channels_are_not_there(read: Any) -> None:
    reply = read(THINK_TO_RESPONSE + "<|close|>response<|sep|>" + END)

    assert reply == ({"role": "assistant", "content": None}, True, (), ())


def test_b40_calls_are_read_where_the_end_of_thinking_is_missing(read: Any) -> None:
    call = CALL + argument("v") + CALL_END
    for before, said in ("", None), ("why", "why"):
        reply = read(before + "<|open|>tools<|sep|>" + call + AFTER_TOOLS)
        assert functions(reply) == [("f", '{"k": "v"}')]
        assert reply.message.get("reasoning_content") == said
        assert reply.complete
        assert problems(reply) == "'think' is not closed"


# Where it ends.


@pytest.mark.parametrize("end", ["<|end_of_msg|>", "<|close|>message<|sep|>", END])
def test_each_end_is_an_end(read: Any, end: str) -> None:
    reply = read("so<|close|>response<|sep|>" + end, thinking=False)
    assert (reply.complete, reply.faults) == (True, ())


def test_the_end_inside_a_channel_is_a_fault(read: Any) -> None:
    reply = read("so<|end_of_msg|>", thinking=False)
    assert reply.message["content"] == "so"
    assert not reply.complete
    assert problems(reply) == "'response' is not closed"


@pytest.mark.parametrize(
    ("rest", "problem"),
    [
        ("<|close|>message<|sep|>", "'response' is not closed"),
        ("<|close|>response<|sep|><|open|>x<|sep|><|close|>message<|sep|>", "'x' is not closed"),
        ("<|close|>response<|sep|><|open|>x<|sep|><|end_of_msg|>", "'x' is not closed"),
        ("<|close|>response<|sep|><|open|>tools<|sep|><|end_of_msg|>", "'tools' is not closed"),
    ],
)
def test_an_end_that_leaves_a_tag_open_is_not_complete(read: Any, rest: str, problem: str) -> None:
    reply = read("so" + rest, thinking=False)
    assert reply.message["content"] == "so"
    assert not reply.complete
    assert problems(reply).endswith(problem)
    assert read("so" + rest + "<|end_of_msg|>", thinking=False) == reply


@pytest.mark.parametrize("thinking", [True, False])
def test_the_stub_of_a_prompt_without_thinking_may_come_along(read: Any, thinking: bool) -> None:
    text = "<|open|>response<|sep|>so<|close|>response<|sep|>" + END + "\n"  # blanks are nothing
    expected = {"role": "assistant", "content": "so"}
    assert read(text, thinking=thinking) == (expected, True, (), ())


def test_each_text_in_a_wrong_place_is_one_fault(read: Any) -> None:
    text = "a<|close|>response<|sep|>b[x<|open|>tools<|sep|> c <|close|>tools<|sep|>\n" + END
    reply = read(text, thinking=False)
    assert [fault.problem for fault in reply.faults] == [
        "a text stands directly in 'message'; it is left out",
        "a text stands directly in 'tools'; it is left out",
    ]


def test_a_second_message_is_left_out(read: Any) -> None:
    second = '<|open|>message role="assistant"<|sep|>x<|open|>y<|sep|><|close|>y<|sep|>'
    text = f"a{second}<|close|>message<|sep|>b<|close|>response<|sep|>"
    reply = read(text + END, thinking=False)
    assert reply.message["content"] == "ab"
    assert problems(reply) == "the tag 'message' has no place here; it is left out"
    assert reply.complete


def test_a_foreign_tag_is_left_out_with_all_inside_it(read: Any) -> None:
    inside = "1<|open|>x<|sep|>2<|open|>y<|sep|>3<|close|>x<|sep|>4<|close|>z<|sep|>5"
    text = f"a<|open|>x<|sep|>{inside}<|close|>x<|sep|>b<|close|>response<|sep|>"
    reply = read(text + END, thinking=False)
    assert reply.message["content"] == "ab"
    assert problems(reply) == "the tag 'x' has no place here; it is left out"


def test_a_tag_that_was_lost_does_not_hide_the_start(read: Any) -> None:
    reply = read("<|open|><|open|>think<|sep|>why" + THINK_TO_RESPONSE, thinking=False)
    assert reply.message["reasoning_content"] == "why"
    assert problems(reply).startswith("the tag before this marker lacks its `<|sep|>`")


def test_a_control_id_inside_a_tag_is_left_out(tokenizer: Tokenizer) -> None:
    text = '<|open|>[BOS]mess[PAD]age role="assistant"<|sep|><|open|>response<|sep|>a'
    ids = tokenizer.encode(text, allow_special=True)
    reply = parse(ids, tokenizer=tokenizer)
    assert reply.message["content"] == "a"
    assert [fault.problem for fault in reply.faults] == [
        "the control token [BOS] is left out",
        "the control token [PAD] is left out",
        "the reply stops inside 'response'",
    ]


def test_a_reply_read_with_the_wrong_thinking_has_faults(read: Any) -> None:
    reply = read("so<|close|>response<|sep|>" + END)
    assert reply.message == {"role": "assistant", "content": None, "reasoning_content": "so"}
    assert not reply.complete
    assert problems(reply).startswith("'response' is closed and was not open")


def test_a_tag_without_a_name_is_foreign_or_nothing(read: Any) -> None:
    reply = read("a<|close|><|sep|>b<|open|> <|sep|>c<|close|><|sep|>d", thinking=False)
    assert reply.message["content"] == "abd"
    assert [fault.problem for fault in reply.faults] == [
        "'' is closed and was not open; it is left out",
        "the tag '' has no place here; it is left out",
        "the reply stops inside 'response'",
    ]


def test_eos_and_padding_after_the_end(tokenizer: Tokenizer) -> None:
    eos, pad = tokenizer.control_tokens["[EOS]"], tokenizer.control_tokens["[PAD]"]
    ids = tokenizer.encode("so<|close|>response<|sep|>", allow_special=True).tolist()
    for after in [eos], [*tokenizer.eos_ids], [eos, eos, pad, pad]:
        reply = parse(ids + after, tokenizer=tokenizer, thinking=False)
        assert reply == ({"role": "assistant", "content": "so"}, True, (), ())


def test_what_follows_the_end_is_left_out_with_one_fault(read: Any) -> None:
    more = '\n<|open|>message role="user"<|sep|>x<|close|>message<|sep|>y'
    reply = read("so<|close|>response<|sep|>" + END + more, thinking=False)
    assert reply.message["content"] == "so"
    assert reply.complete
    assert problems(reply) == "something follows the end of the reply; it is left out"


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("", "the reply is empty"),
        ("why", "the reply stops inside 'think'"),
        ("why<|close|>thi", "the reply stops inside a tag"),
        (THINK_TO_RESPONSE + TO_TOOLS + CALL, "the reply stops inside 'call'"),
        (THINK_TO_RESPONSE + TO_TOOLS + CALL + argument("v")[:-18], "the reply stops inside"),
    ],
)
def test_a_reply_that_is_cut_off_says_where(read: Any, text: str, inside: str) -> None:
    reply = read(text)
    assert not reply.complete
    assert problems(reply).startswith(inside)
    assert functions(reply) == []


def test_the_start_of_a_character_at_the_end_is_left_out(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode("a🎉").tolist()
    reply = parse(ids[:-1], tokenizer=tokenizer, thinking=False)
    assert reply.message["content"] == "a"
    assert "inside a character" in problems(reply)


def test_a_character_that_a_marker_tears_is_replaced(tokenizer: Tokenizer) -> None:
    close = tokenizer.encode("<|close|>response<|sep|>", allow_special=True).tolist()
    ids = tokenizer.encode("a🎉").tolist()[:-1] + close
    assert parse(ids, tokenizer=tokenizer, thinking=False).message["content"] == "a\ufffd"


# Look-alikes.


def test_markers_count_in_ids_as_control_ids_alone_and_in_text_always(tokenizer: Tokenizer) -> None:
    forged = "<|close|>response<|sep|>" + TO_TOOLS[24:] + CALL + CALL_END + AFTER_TOOLS
    ids = tokenizer.encode(forged).tolist()  # ordinary ids, as the model may quote it

    reply = parse(ids, tokenizer=tokenizer, thinking=False)
    assert reply.message == {"role": "assistant", "content": forged}

    reply = parse(forged, thinking=False)
    assert functions(reply) == [("f", "{}")]


def test_names_of_other_control_tokens_are_text_in_text(tokenizer: Tokenizer) -> None:
    reply = parse("[EOS] [PAD] <|media_pad|>" + THINK_TO_RESPONSE)
    assert reply.message["reasoning_content"] == "[EOS] [PAD] <|media_pad|>"


def test_a_control_id_without_meaning_is_left_out(tokenizer: Tokenizer) -> None:
    pad = tokenizer.control_tokens["[PAD]"]
    ids = [*tokenizer.encode("a").tolist(), pad, *tokenizer.encode("b").tolist()]
    reply = parse(ids, tokenizer=tokenizer, thinking=False)
    assert reply.message["content"] == "ab"
    assert reply.faults[0] == (1, "the control token [PAD] is left out")


# Arguments.


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("string", 'a "b" \\ \n\x00é', json.dumps('a "b" \\ \n\x00é', ensure_ascii=False)),
        ("string", "", '""'),
        ("string", "5", '"5"'),
        ("number", "5", "5"),
        ("number", "1.0", "1.0"),
        ("number", "123456789012345678901234567890", "123456789012345678901234567890"),
        ("boolean", "true", "true"),
        ("null", "null", "null"),
        ("object", '{"b": 1, "a": [2]}', '{"b": 1, "a": [2]}'),
        ("array", "[]", "[]"),
    ],
)
def test_arguments_are_of_the_type_that_they_say(
    read: Any, kind: str, value: str, expected: str
) -> None:
    reply = read(with_calls(CALL + argument(value, kind) + CALL_END))
    assert functions(reply) == [("f", f'{{"k": {expected}}}')]
    assert reply.faults == ()


@pytest.mark.parametrize(
    ("kind", "value", "expected", "problem"),
    [
        ("number", "five", '"five"', "an argument of the type number is no JSON"),
        ("number", "", '""', "an argument of the type number is no JSON"),
        ("number", "9" * 5000, '"' + "9" * 5000 + '"', "an argument of the type number is no"),
        ("array", "[" * 100_000, '"' + "[" * 100_000 + '"', "an argument of the type array is no"),
        ("number", "true", "true", "an argument of the type number holds another type"),
        ("object", "[1]", "[1]", "an argument of the type object holds another type"),
        ("integer", "5", '"5"', "the argument 'k' has the type 'integer'"),
    ],
)
def test_an_argument_that_is_not_what_it_says_is_a_fault(
    read: Any, kind: str, value: str, expected: str, problem: str
) -> None:
    reply = read(with_calls(CALL + argument(value, kind) + CALL_END))
    assert functions(reply) == [("f", f'{{"k": {expected}}}')]
    assert problems(reply).startswith(problem)
    assert reply.complete


def test_attributes_are_unescaped(read: Any) -> None:
    call = '<|open|>call tool="a&quot;&amp;quot; &amp;amp;" index="1"<|sep|>' + CALL_END
    assert functions(read(with_calls(call))) == [('a"&quot; &amp;', "{}")]


def test_a_block_of_json_is_the_arguments_as_they_are(read: Any) -> None:
    block = '<|open|>json type="object"<|sep|>{}<|close|>json<|sep|>'
    for text, problem in ("{cut off", ""), ('{"a":1}', ""), ("[1]", "no JSON object"):
        reply = read(with_calls(CALL + block.format(text) + CALL_END))
        assert functions(reply) == [("f", text)]
        assert problem in problems(reply)
        assert bool(reply.faults) is bool(problem)


def test_arguments_after_a_block_of_json_are_left_out(read: Any) -> None:
    block = "<|open|>json<|sep|>{}<|close|>json<|sep|>"
    reply = read(with_calls(CALL + block + argument("v") + block + CALL_END))
    assert functions(reply) == [("f", "{}")]
    assert len(reply.faults) == 2

    reply = read(with_calls(CALL + argument("v") + block + CALL_END))
    assert functions(reply) == [("f", '{"k": "v"}')]
    assert "after other arguments" in problems(reply)


def test_the_last_of_two_arguments_of_one_key_counts(read: Any) -> None:
    reply = read(with_calls(CALL + argument("a") + argument("b") + CALL_END))
    assert json.loads(functions(reply)[0][1]) == {"k": "b"}
    assert "twice" in problems(reply)


# Malformed structure: what is certain, and a fault.


@pytest.mark.parametrize(
    ("calls", "found", "problem"),
    [
        ([CALL + argument("v")], [], "the tool call 1 is not closed"),
        ([CALL, CALL + CALL_END], [("f", "{}")], "the tool call 1 is not closed"),
        ([CALL + argument("v")[:-24] + CALL_END], [("f", '{"k": "v"}')], "'argument' is not"),
        (["<|open|>call<|sep|>" + argument("v") + CALL_END], [], "the tag 'call' names no tool"),
        ([CALL + "<|open|>argument<|sep|>v<|close|>argument<|sep|>" + CALL_END], [("f", "{}")],
         "the tag 'argument' has no key"),
        ([CALL + "text" + CALL_END], [("f", "{}")], "a text stands directly in 'call'"),
        (["<|open|>x<|sep|><|open|>x<|sep|>a<|close|>x<|sep|>b<|close|>x<|sep|>", CALL + CALL_END],
         [("f", "{}")], "the tag 'x' has no place here"),
        ([CALL.replace('"1"', '"7"') + CALL_END], [("f", "{}")], "the tool call 1 has another"),
        ([CALL.replace("1", "") + CALL_END], [("f", "{}")], "the tool call 1 has another"),
        ([CALL.replace('"1"', "1") + CALL_END], [("f", "{}")], "the tag 'call' has attributes"),
        ([CALL + CALL_END + "<|sep|>"], [("f", "{}")], "`<|sep|>` without a tag"),
        ([CALL + CALL_END + "<|open|>x"], [("f", "{}")], "the tag before this marker lacks"),
        ([CALL + CALL_END + "<|close|>call<|sep|>"], [("f", "{}")], "'call' is closed and was"),
        ([CALL + CALL_END + "\n"], [("f", "{}")], ""),
    ],
)  # fmt: skip
def test_malformed_calls(
    read: Any, calls: list[str], found: list[tuple[str, str]], problem: str
) -> None:
    reply = read(with_calls(*calls))
    assert functions(reply) == found
    assert problems(reply).startswith(problem)
    assert bool(reply.faults) is bool(problem)
    assert reply.complete


def test_a_channel_that_comes_twice_is_added(read: Any) -> None:
    text = "a<|close|>response<|sep|><|open|>response<|sep|>b<|close|>response<|sep|>" + END
    reply = read(text, thinking=False)
    assert reply.message["content"] == "ab"
    assert "second time" in problems(reply)


def test_a_message_of_another_role_is_none(read: Any) -> None:
    reply = read('<|open|>message role="user"<|sep|>hi<|close|>message<|sep|><|end_of_msg|>')
    assert reply.message == {"role": "assistant", "content": None}
    assert not reply.complete
    assert "of the role 'user'" in problems(reply)


def test_faults_say_where(tokenizer: Tokenizer) -> None:
    text = "ab<|open|>x<|sep|>c"
    assert parse(text, thinking=False).faults[0].position == 2
    ids = tokenizer.encode(text, allow_special=True)
    assert parse(ids, tokenizer=tokenizer, thinking=False).faults[0].position == 1


# Piece by piece.


def test_events_come_as_soon_as_they_are_certain(tokenizer: Tokenizer) -> None:
    parser = Parser(tokenizer=tokenizer)
    text = "why" + with_calls(CALL + argument("a b") + argument("12", "number", "n") + CALL_END)
    events = [parser.push(id_) for id_ in tokenizer.encode(text, allow_special=True)]

    assert [event for some in events for event in some] == [
        Event("reasoning", "why"),
        Event("call", "f", 0),
        Event("arguments", '{"k": "', 0),
        Event("arguments", "a", 0),
        Event("arguments", " b", 0),
        Event("arguments", '"', 0),
        Event("arguments", ', "n": ', 0),
        Event("arguments", "12", 0),
        Event("arguments", "}", 0),
        Event("call_end", "", 0),
        Event("end"),
    ]
    assert functions(parser.finish()) == [("f", '{"k": "a b", "n": 12}')]


def test_the_start_of_a_marker_is_held_back_and_is_text_at_the_end() -> None:
    parser = Parser(thinking=False)
    assert parser.push("a <") == [Event("content", "a ")]
    assert parser.push("|op") == []
    assert parser.push("era") == [Event("content", "<|opera")]
    assert parser.push("<|close") == []
    reply = parser.finish()
    assert reply.tail == (Event("content", "<|close"),)
    assert reply.message["content"] == "a <|opera<|close"


def test_call_ids_are_the_callers(tokenizer: Tokenizer) -> None:
    text = with_calls(CALL + CALL_END, CALL.replace("1", "2") + CALL_END)
    ids = [call["id"] for call in parse(text).message["tool_calls"]]
    assert ids == ["call_1", "call_2"]

    calls = parse(text, call_id=lambda call, name: f"{name}:{call}").message["tool_calls"]
    assert [call["id"] for call in calls] == ["f:0", "f:1"]


@pytest.mark.parametrize(
    "convert", [list, tuple, iter, np.asarray, lambda ids: np.asarray(ids, "int64")[::1]]
)
def test_ids_may_be_any_sequence(tokenizer: Tokenizer, convert: Any) -> None:
    ids = tokenizer.encode("hello").tolist()
    reply = parse(convert(ids), tokenizer=tokenizer, thinking=False)
    assert reply.message["content"] == "hello"
    parser = Parser(tokenizer=tokenizer, thinking=False)
    assert parser.push(np.uint32(ids[0])) == [Event("content", "hello")]


# Wrong use.


def test_ids_need_a_tokenizer_of_the_family() -> None:
    with pytest.raises(InputTypeError, match="need `tokenizer`"):
        parse([1])
    with pytest.raises(UnknownFormatError, match="no control token"):
        parse([1], tokenizer=kizami.load("kimi-k2"))


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        ([0, 163840], InvalidIdError),
        ([-1], InvalidIdError),
        (["a"], InputTypeError),
        ([1.5], InputTypeError),
        (b"a", InputTypeError),
        ({1}, InputTypeError),
        (None, InputTypeError),
        (np.zeros((2, 2), "uint32"), InputTypeError),
    ],
)
def test_a_wrong_piece_changes_nothing(tokenizer: Tokenizer, wrong: Any, kind: type) -> None:
    parser = Parser(tokenizer=tokenizer, thinking=False)
    parser.push(tokenizer.encode("a"))
    with pytest.raises(kind):
        parser.push(wrong)
    parser.push(tokenizer.encode("b"))
    assert parser.finish().message["content"] == "ab"


def test_a_wrong_piece_does_not_say_of_what_sort_the_reply_is(tokenizer: Tokenizer) -> None:
    parser = Parser(tokenizer=tokenizer, thinking=False)
    with pytest.raises(InvalidIdError):
        parser.push([-1])
    assert parser.push("a") == [Event("content", "a")]


def test_pieces_are_of_one_sort(tokenizer: Tokenizer) -> None:
    parser = Parser(tokenizer=tokenizer)
    parser.push("a")
    with pytest.raises(InputTypeError, match="ids after text"):
        parser.push([1])
    parser = Parser(tokenizer=tokenizer)
    parser.push([1])
    with pytest.raises(InputTypeError, match="text after ids"):
        parser.push("a")


def test_a_finished_parser_takes_nothing() -> None:
    parser = Parser()
    parser.finish()
    with pytest.raises(InvalidValueError, match="new Parser"):
        parser.push("a")


def test_thinking_is_a_bool() -> None:
    with pytest.raises(InputTypeError, match="`thinking` is 'no'"):
        parse("a", thinking="no")  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [5, None, "call_1"])
def test_call_id_is_a_function(wrong: Any) -> None:
    for reader in (Parser, lambda **options: parse("x", **options)):
        with pytest.raises(InputTypeError, match=f"`call_id` is {wrong!r}; give a function"):
            reader(call_id=wrong)


def test_a_lone_surrogate_of_a_text_stays_and_is_replaced_in_ids(tokenizer: Tokenizer) -> None:
    text = "a\ud800b"
    assert parse(text, thinking=False).message["content"] == text
    ids = tokenizer.encode(text)
    reply = parse(ids, tokenizer=tokenizer, thinking=False)
    assert reply.message["content"] == tokenizer.decode(ids) == "a\ufffdb"


# Cost.


@pytest.mark.parametrize(
    "unit",
    ["<|open|>x<|sep|>", "<|open|>", "<|close|>", "a[PAD]", "a<|sep|>", "<|close|>x<|sep|>", CALL,
     "<|open|>tools<|sep|>" + CALL, CALL + CALL_END, "\n", "<|open", "<|end_of_msg|>"],
)  # fmt: skip
def test_the_cost_is_linear_for_what_no_model_writes(tokenizer: Tokenizer, unit: str) -> None:
    unit = "<|open|>tools<|sep|>" + unit
    ids = tokenizer.encode(unit, allow_special=True).tolist()

    def seconds(times: int) -> float:
        start = time.process_time()
        parse(ids * times, tokenizer=tokenizer)
        parse(unit * times)
        parser = Parser(tokenizer=tokenizer)
        for id_ in ids * times:
            parser.push(id_)
        parser.finish()
        return time.process_time() - start

    short = min(seconds(200) for _ in range(3))
    long = min(seconds(2_000) for _ in range(2))
    assert long / short < 30  # 10 is linear, 100 is quadratic


def test_ids_of_any_type_that_is_an_index(tokenizer: Tokenizer) -> None:
    class Id:
        def __init__(self, value: int) -> None:
            self.value = value

        def __index__(self) -> int:
            return self.value

    text = "Easy." + THINK_TO_RESPONSE + "Four." + "<|close|>response<|sep|>" + END
    ids = tokenizer.encode(text, allow_special=True).tolist()
    want = parse(ids, tokenizer=tokenizer)

    assert want.message["content"] == "Four."
    assert parse([Id(id_) for id_ in ids], tokenizer=tokenizer) == want
    assert parse([np.array(id_) for id_ in ids], tokenizer=tokenizer) == want
