"""A slow tokenizer as Moonshot publishes it, written for these tests.

Behaviour as `docs/concepts/exactness.md` describes it: Python around `tiktoken`, text cut character
by character, conversations encoded segment by segment. Its segments come from Kizami's renderer, so
that it says nothing about rendering; the vectors and `test_transformers_nemo.py` do.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kizami
import pytest
from kizami import _native
from kizami._export import byte_letters
from kizami.chat.kimi_k3 import render

transformers: Any = pytest.importorskip("transformers", reason="needs transformers")
tiktoken: Any = pytest.importorskip("tiktoken")
loading: Any = pytest.importorskip("tiktoken.load")

SLICE, RUN = 400_000, 25_000


def write_folder(folder: Path) -> Path:
    """A folder with the files of Kimi K3 that a tokenizer needs, made from what is bundled."""
    tokenizer = kizami.load("kimi-k3")
    (folder / "tiktoken.model").write_bytes(tokenizer.to_tiktoken())
    flags = dict.fromkeys(("lstrip", "normalized", "rstrip", "single_word"), False)
    named = {
        str(id_): {"content": name, "special": special, **flags}
        for id_, name, special in tokenizer._native.control_tokens()
        if not name.startswith("<|reserved_token_")
    }
    own = ("[BOS]", "[EOS]", "[PAD]", "[UNK]")
    special = [token["content"] for token in named.values() if token["special"]]
    config = {
        "added_tokens_decoder": named,
        "additional_special_tokens": [name for name in special if name not in own],
        "bos_token": "[BOS]",
        "eos_token": "[EOS]",
        "pad_token": "[PAD]",
        "unk_token": "[UNK]",
        "model_max_length": 1_048_576,
        "tokenizer_class": "TikTokenTokenizer",
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


class TikTokenTokenizer(transformers.PreTrainedTokenizer):  # type: ignore[misc]
    """See the top of this file."""

    vocab_files_names = {"vocab_file": "tiktoken.model"}  # noqa: RUF012
    model_input_names = ["input_ids", "attention_mask"]  # noqa: RUF012
    pat_str = _native.KIMI_PATTERN

    def __init__(self, vocab_file: str, added_tokens_decoder: Any = None, **kwargs: Any) -> None:
        ranks = loading.load_tiktoken_bpe(vocab_file)
        names = {id_: token.content for id_, token in (added_tokens_decoder or {}).items()}
        first = len(ranks)
        controls = {
            names.get(id_, f"<|reserved_token_{id_}|>"): id_ for id_ in range(first, first + 256)
        }
        self.vocab_file = vocab_file
        self.model = tiktoken.Encoding(
            "kimi", pat_str=self.pat_str, mergeable_ranks=ranks, special_tokens=controls
        )
        letters = dict(enumerate(byte_letters()))
        self.decoder = {
            id_: self.model.decode_single_token_bytes(id_).decode("latin-1").translate(letters)
            for id_ in range(first + 256)
        }
        self.encoder = {name: id_ for id_, name in self.decoder.items()}
        self._bytes = {letter: byte for byte, letter in letters.items()}
        super().__init__(added_tokens_decoder=added_tokens_decoder, **kwargs)

    @property
    def vocab_size(self) -> int:
        return int(self.model.n_vocab)

    def get_vocab(self) -> dict[str, int]:
        return self.encoder

    def _pieces(self, text: str, run_limit: int) -> Iterator[str]:
        start = run = 0
        was_space = text[:1].isspace()
        for i, char in enumerate(text):
            run = run + 1 if char.isspace() == was_space else 1
            was_space = char.isspace()
            if run > run_limit:
                yield text[start:i]
                start, run = i, 1
        yield text[start:]

    def _encode_text_piece(self, text: str, allow_special_tokens: bool = True) -> list[int]:
        options: dict[str, Any] = (
            {"allowed_special": "all"} if allow_special_tokens else {"disallowed_special": ()}
        )
        ids: list[int] = []
        for at in range(0, len(text), 400_000):
            for piece in self._pieces(text[at : at + 400_000], 25_000):
                ids += self.model.encode(piece, **options)
        return ids

    def encode(self, text: str, allow_special_tokens: bool = True, **kwargs: Any) -> Any:
        if kwargs:
            transformers.utils.logging.get_logger(__name__).warning("options: %s", kwargs)
            return super().encode(text, **kwargs)
        assert type(text) is str
        return self._encode_text_piece(text, allow_special_tokens)

    def decode(self, token_ids: Any, **kwargs: Any) -> Any:
        if kwargs:
            return super().decode(token_ids, **kwargs)
        return self.model.decode([token_ids] if isinstance(token_ids, int) else token_ids)

    def _tokenize(self, text: str, **kwargs: Any) -> list[str]:
        return [self.decoder[id_] for id_ in self.encode(text)]

    def _convert_token_to_id(self, token: str) -> int:
        return self.encoder[token]

    def _convert_id_to_token(self, index: int) -> str | None:
        return self.decoder.get(index)

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        return bytes(self._bytes[char] for char in "".join(tokens)).decode("utf-8", "replace")

    def save_vocabulary(self, save_directory: str, filename_prefix: Any = None) -> tuple[str]:
        out = Path(save_directory, f"{filename_prefix or ''}tiktoken.model")
        out.write_bytes(Path(self.vocab_file).read_bytes())
        return (str(out),)

    def _render(self, conversation: Any, **options: Any) -> Any:
        return render(conversation, **options)

    def _encode_chat_segments(self, segments: Any) -> list[int]:
        ids: list[int] = []
        for segment in segments:
            ids += self._encode_text_piece(segment.text, segment.allow_special)
        return ids

    def apply_chat_template(
        self,
        conversation: Any,
        tools: Any = None,
        tokenize: bool = False,
        add_generation_prompt: bool = True,
        thinking: bool = True,
        padding: Any = False,
        truncation: bool = False,
        max_length: int | None = None,
        return_tensors: Any = None,
        return_dict: bool = False,
        **kwargs: Any,
    ) -> Any:
        batched = bool(conversation) and isinstance(conversation[0], list)
        options = {"tools": tools, "add_generation_prompt": add_generation_prompt}
        rendered = [
            self._render(one, **options, thinking=thinking, **kwargs)
            for one in (conversation if batched else [conversation])
        ]
        if not tokenize:
            texts = ["".join(segment.text for segment in segments) for segments in rendered]
            return texts if batched else texts[0]
        all_ids = [self._encode_chat_segments(segments) for segments in rendered]
        if truncation and max_length is not None:
            all_ids = [ids[:max_length] for ids in all_ids]
        if not (batched or padding or return_tensors or return_dict):
            return all_ids[0]
        batch = self.pad(
            {"input_ids": all_ids}, padding=padding, max_length=max_length if padding else None
        )
        if return_tensors is not None:
            batch = transformers.BatchEncoding(dict(batch), tensor_type=return_tensors)
        return batch if return_dict else batch["input_ids"]


class OtherRenderer(TikTokenTokenizer):
    """One whose conversations are written in another way."""

    def _render(self, conversation: Any, **options: Any) -> Any:
        return [kizami.Segment("[BOS]", True), *super()._render(conversation, **options)]


class OtherCuts(TikTokenTokenizer):
    """One that cuts nothing."""

    def _encode_text_piece(self, text: str, allow_special_tokens: bool = True) -> list[int]:
        allowed: Any = {"allowed_special": "all"} if allow_special_tokens else {}
        return list(self.model.encode(text, disallowed_special=(), **allowed))

    def encode(self, text: str, allow_special_tokens: bool = True, **kwargs: Any) -> Any:
        return self._encode_text_piece(text, allow_special_tokens)


class OtherPattern(TikTokenTokenizer):
    """One that splits in another way."""

    pat_str = r"\S+|\s+"
