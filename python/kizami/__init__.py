"""Kizami: exact, fast token ids for LLM prompts.

Start with `load("kimi-k3")`, which gives a `Tokenizer`; `Segment` states which text is trusted.
"""

from kizami import errors as errors
from kizami._batch import Batch as Batch
from kizami._blocks import BlockHasher as BlockHasher
from kizami._blocks import block_hashes as block_hashes
from kizami._load import load as load
from kizami._session import Session as Session
from kizami._session import SessionCache as SessionCache
from kizami._stream import DecodeStream as DecodeStream
from kizami._threads import get_num_threads as get_num_threads
from kizami._threads import set_num_threads as set_num_threads
from kizami._tokenizer import Tokenizer as Tokenizer
from kizami._version import __version__ as __version__
from kizami.segments import Segment as Segment

__all__ = [
    "Batch",
    "BlockHasher",
    "DecodeStream",
    "Segment",
    "Session",
    "SessionCache",
    "Tokenizer",
    "__version__",
    "block_hashes",
    "errors",
    "get_num_threads",
    "load",
    "set_num_threads",
]
