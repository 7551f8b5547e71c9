"""Which encoding a model of OpenAI's uses: names are looked for whole, then by how they begin."""

from __future__ import annotations

from kizami import _native

__all__ = ["encoding_name_for_model"]

# Encoding -> names of models.
_NAMES = {
    "o200k_base": "o1 o3 o4-mini gpt-5 gpt-4.1 gpt-4o",
    "cl100k_base": "gpt-4 gpt-3.5-turbo gpt-3.5 gpt-35-turbo davinci-002 babbage-002"
    " text-embedding-ada-002 text-embedding-3-small text-embedding-3-large",
    "p50k_base": "text-davinci-003 text-davinci-002 code-davinci-002 code-davinci-001"
    " code-cushman-002 code-cushman-001 davinci-codex cushman-codex",
    "p50k_edit": "text-davinci-edit-001 code-davinci-edit-001",
    "r50k_base": "davinci curie babbage ada text-davinci-001 text-curie-001 text-babbage-001"
    " text-ada-001 text-similarity-davinci-001 text-similarity-curie-001"
    " text-similarity-babbage-001 text-similarity-ada-001 text-search-davinci-doc-001"
    " text-search-curie-doc-001 text-search-babbage-doc-001 text-search-ada-doc-001"
    " code-search-babbage-code-001 code-search-ada-code-001",
    "gpt2": "gpt2 gpt-2",
}
# How names begin; the first that fits counts.
_BEGINNINGS = (
    ("o200k_base", "o1- o3- o4-mini- gpt-5 gpt-4.5- gpt-4.1- chatgpt-4o- gpt-4o-"),
    ("cl100k_base", "gpt-4- gpt-3.5-turbo- gpt-35-turbo-"),
    ("o200k_harmony", "gpt-oss-"),
    ("o200k_base", "ft:gpt-4o"),
    ("cl100k_base", "ft:gpt-4 ft:gpt-3.5-turbo ft:davinci-002 ft:babbage-002"),
)
_ENCODING = {model: encoding for encoding, models in _NAMES.items() for model in models.split()}
_PREFIXES = [(start, encoding) for encoding, starts in _BEGINNINGS for start in starts.split()]


def encoding_name_for_model(model_name: str) -> str:
    """The name of the encoding of a model; the bundled models of Kizami name their own.

    Raises:
        KeyError: The model is not known.

    >>> encoding_name_for_model("gpt-4o-2024-05-13")
    'o200k_base'
    """
    if model_name in _ENCODING:
        return _ENCODING[model_name]
    for start, encoding in _PREFIXES:
        if model_name.startswith(start):
            return encoding
    if model_name in _native.bundled_names():
        return model_name
    raise KeyError(
        f"Could not automatically map {model_name} to a tokeniser: name the encoding yourself, "
        "with `get_encoding`"
    )
