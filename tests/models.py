"""The models whose files are in the shared folder, and the engine that each one's ids come from.

An oracle takes its vocabulary, pattern and names from the published files, nothing from Kizami:
`tokenizers` for a `tokenizer.json`, `tiktoken` for rank files and for `tekken.json` (whose own
package is a shell around it). Untrusted text is text in which no added token counts but runs of
white space that are vocabulary (GPT-NeoX): for it the others are taken out of the file.
"""

from __future__ import annotations

import functools
import gzip
import json
from base64 import b64decode
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import kizami
import numpy as np
import numpy.typing as npt
from kizami.reference import well_formed

from tests.shared import shared_path

Ids = npt.NDArray[np.uint32]


class Case(NamedTuple):
    """A file of vectors, and where the tokenizer is."""

    vectors: str
    source: str
    pretokenizer: str


CASES = [
    Case("cl100k_base", "cl100k_base/cl100k_base.tiktoken", "cl100k"),
    Case("cl100k_base.hf", "cl100k_base/tokenizer.json.gz", "llama3"),
    Case("deepseek_v3", "deepseek_v3", "deepseek3"),
    Case("deepseek_v4", "deepseek_v4", "deepseek3"),
    Case("glm-4", "glm-4", "llama3"),
    Case("gpt-neox", "gpt-neox", "gpt2"),
    Case("gpt-oss", "gpt-oss", "o200k"),
    Case("gpt2", "gpt2", "gpt2"),
    Case("kimi-k2.5", "kimi-k2.5", "kimi"),
    Case("llama3", "llama3", "llama3"),
    Case("llama3_1", "llama3_1", "llama3"),
    Case("llama3.tiktoken", "llama3/tokenizer.model", "llama3"),
    Case("llama4", "llama4", "o200k"),
    Case("mistral_tekken_240718", "mistral_tekken/tekken_240718.json.gz", "tekken"),
    Case("mistral_tekken_240911", "mistral_tekken/tekken_240911.json.gz", "tekken"),
    Case("modernbert", "modernbert", "gpt2"),
    Case("o200k_base", "o200k_base/o200k_base.tiktoken", "o200k"),
    Case("o200k_base.hf", "o200k_base/tokenizer.json.gz", "o200k"),
    Case("qwen3", "qwen3", "qwen2"),
    Case("qwen3.5", "qwen3.5", "qwen3.5"),
]
# A special token of the oracles alone, put between texts to encode many in one call: what is
# between special tokens is encoded on its own, and no published name overlaps this one.
SEPARATOR = "<|end of text of the oracle|>"


@functools.cache
def load(source: str) -> kizami.Tokenizer:
    """Our tokenizer of a file or folder."""
    return kizami.load(shared_path("data", "tokenizers", *source.split("/")))


@functools.cache
def oracle(source: str) -> Oracle:
    """The published one."""
    path = shared_path("data", "tokenizers", *source.split("/"))
    if path.is_dir():
        files = [*path.glob("tokenizer.json*"), *path.glob("*.tiktoken"), *path.glob("*.model")]
        path = files[0]
    if path.name.startswith("tokenizer.json"):
        return HuggingFace(read_json(path))
    if path.name.startswith("tekken"):
        return Tekken(read_json(path))
    return Ranks(path)


def read_json(path: Path) -> dict[str, Any]:
    """The object in a file, which may be compressed."""
    data = path.read_bytes()
    found: dict[str, Any] = json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)
    return found


def is_space(added: dict[str, Any]) -> bool:
    """Whether an added token is vocabulary that counts in every text."""
    return not added["special"] and not added["content"].strip()


class Oracle:
    """Ids of many texts at once, with and without trust."""

    # Names of the control tokens.
    names: Sequence[str]
    # Whether the tokens of a text spell another one.
    normalizes = False

    def encode_many(self, texts: Sequence[str], trusted: bool) -> tuple[Ids, npt.NDArray[np.int64]]:
        """The ids of all texts, one after the other, and `len(texts) + 1` offsets."""
        raise NotImplementedError

    def encode(self, text: str, trusted: bool) -> list[int]:
        """The ids of one text."""
        ids: list[int] = self.encode_many([text], trusted)[0].tolist()
        return ids


class HuggingFace(Oracle):
    """`tokenizers`, on a `tokenizer.json`."""

    def __init__(self, file: dict[str, Any]) -> None:
        self.names = [token["content"] for token in file["added_tokens"] if not is_space(token)]
        # "normalizer" is absent, null, or a sequence of nothing, where there is none.
        normalizer = file.get("normalizer") or {"normalizers": []}
        self.normalizes = normalizer.get("normalizers") != []
        spaces = [token for token in file["added_tokens"] if is_space(token)]
        self._trusted = self._engine(file, file["added_tokens"])
        self.vocab_size: int = self._trusted[0].get_vocab_size()
        self._untrusted = self._engine(file, spaces)

    def _engine(self, file: dict[str, Any], added: list[dict[str, Any]]) -> tuple[Any, Ids]:
        import tokenizers

        engine = tokenizers.Tokenizer.from_str(
            json.dumps({**file, "added_tokens": added, "post_processor": None})
        )
        engine.no_truncation()
        engine.no_padding()
        # The package counts ids of its own where tokens before were left out.
        published = np.arange(1 << 20, dtype=np.uint32)
        for token in added:
            published[engine.token_to_id(token["content"])] = token["id"]
        return engine, published

    def encode_many(self, texts: Sequence[str], trusted: bool) -> tuple[Ids, npt.NDArray[np.int64]]:
        engine, published = self._trusted if trusted else self._untrusted
        texts = [well_formed(text) for text in texts]
        parts = [e.ids for e in engine.encode_batch_fast(texts, add_special_tokens=False)]
        offsets = np.cumsum([0, *map(len, parts)], dtype=np.int64)
        ids = np.fromiter((id_ for part in parts for id_ in part), np.int64, offsets[-1])
        return published[ids], offsets


class _Tiktoken(Oracle):
    """`tiktoken`, for a pattern and ranks."""

    normalize: Callable[[str], str] | None = None

    def __init__(
        self, pattern: str, ranks: dict[bytes, int], special_tokens: dict[str, int]
    ) -> None:
        import tiktoken

        self.names = list(special_tokens)
        self._separator_id = max([*ranks.values(), *special_tokens.values()]) + 1
        self._encoding = tiktoken.Encoding(
            "published",
            pat_str=pattern,
            mergeable_ranks=ranks,
            special_tokens={**special_tokens, SEPARATOR: self._separator_id},
        )

    def encode_many(self, texts: Sequence[str], trusted: bool) -> tuple[Ids, npt.NDArray[np.int64]]:
        allowed = {SEPARATOR, *self.names} if trusted else {SEPARATOR}
        # The separator keeps the last surrogate of a text and the first of the next apart.
        joined = well_formed(SEPARATOR.join([*texts, ""]))
        if self.normalize is not None:
            # One by one: a text may begin with what combines with the end of the separator.
            joined = SEPARATOR.join(map(self.normalize, joined.split(SEPARATOR)))
        found = self._encoding.encode_to_numpy(
            joined, allowed_special=allowed, disallowed_special=()
        )
        is_separator = found == self._separator_id
        ends = np.flatnonzero(is_separator)
        offsets = np.zeros(len(texts) + 1, np.int64)
        offsets[1:] = ends - np.arange(len(ends))
        return found[~is_separator], offsets


class Ranks(_Tiktoken):
    """A rank file, with an `encoding.json` beside it."""

    def __init__(self, path: Path) -> None:
        stated = read_json(path.with_name("encoding.json"))
        lines = path.read_bytes().splitlines()
        ranks = {b64decode(token): int(rank) for token, rank in map(bytes.split, lines)}
        super().__init__(stated["pat_str"], ranks, stated["special_tokens"])
        if stated["normalizer"] is not None:
            import tokenizers

            assert stated["normalizer"] == "NFC"
            # Of `tokenizers`, which is what runs the tokenizer.json of such a model.
            self.normalize = tokenizers.normalizers.NFC().normalize_str
            self.normalizes = True


class Tekken(_Tiktoken):
    """A `tekken.json`: as `mistral-common` gives it to `tiktoken`, and no name counts in a text."""

    def __init__(self, file: dict[str, Any]) -> None:
        config = file["config"]
        specials = config["default_num_special_tokens"]
        used = file["vocab"][: config["default_vocab_size"] - specials]
        ranks = {b64decode(token["token_bytes"]): token["rank"] for token in used}
        super().__init__(config["pattern"], ranks, {})
        self._shift = np.uint32(specials)
        self.names = ["<s>", "</s>", "[INST]", "[/INST]", "[TOOL_CALLS]", "<unk>", "<SPECIAL_20>"]

    def encode_many(self, texts: Sequence[str], trusted: bool) -> tuple[Ids, npt.NDArray[np.int64]]:
        ids, offsets = super().encode_many(texts, False)
        return ids + self._shift, offsets
