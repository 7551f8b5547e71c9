"""Files of a model from the Hugging Face hub or its cache."""

from __future__ import annotations

from pathlib import Path

from kizami.errors import MissingExtraError, SourceNotFoundError

__all__ = ["download"]

# Of a repository, what a tokenizer may need: never the weights.
_PATTERNS = [
    "tiktoken.model",
    "tokenizer.json",
    "tokenizer_config.json",
    "generation_config.json",
    "tekken.json",
    "*.tiktoken",
    "chat_template.jinja",
]


def download(
    repo: str, revision: str | None, token: str | bool | None, local_files_only: bool
) -> Path:
    """The folder with the tokenizer files of a repository."""
    try:
        import huggingface_hub
    except ImportError:
        raise MissingExtraError(
            f"there is no directory {repo!r} here; as a hub id it needs huggingface_hub "
            "(the extra `hub`): pip install 'huggingface_hub>=0.25'; "
            "or download the repository and give its path",
            extra="hub",
        ) from None
    try:
        directory = huggingface_hub.snapshot_download(
            repo,
            revision=revision,
            token=token,
            local_files_only=local_files_only,
            allow_patterns=_PATTERNS,
        )
    except (OSError, ValueError) as error:
        where = "the local hub cache" if local_files_only else "the hub"
        reason = str(error).strip().partition("\n")[0].removeprefix("Got: ")
        reason = reason or type(error).__name__
        raise SourceNotFoundError(
            f"there is no directory {repo!r} here, and it cannot be had from {where}: {reason}; "
            "check the id and the connection, or download the repository and give its path",
            source=repo,
        ) from error
    return Path(directory)
