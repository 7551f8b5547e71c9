"""The interface of `tiktoken` 0.14 over `kizami.Tokenizer`: the same calls, ids, texts and errors.

`from kizami.compat import tiktoken` in place of `import tiktoken` is the whole change. The guide
"The tiktoken drop-in" lists the corners in which the two differ. `Encoding.from_tokenizer` and
`Encoding.from_tiktoken` take what is loaded already.
"""

from kizami.compat.tiktoken import core as core
from kizami.compat.tiktoken import load as load
from kizami.compat.tiktoken import model as model
from kizami.compat.tiktoken import registry as registry
from kizami.compat.tiktoken._encoding import Encoding as Encoding
from kizami.compat.tiktoken._models import encoding_name_for_model as encoding_name_for_model
from kizami.compat.tiktoken._registry import encoding_for_model as encoding_for_model
from kizami.compat.tiktoken._registry import get_encoding as get_encoding
from kizami.compat.tiktoken._registry import list_encoding_names as list_encoding_names

__all__ = [
    "Encoding",
    "core",
    "encoding_for_model",
    "encoding_name_for_model",
    "get_encoding",
    "list_encoding_names",
    "load",
    "model",
    "registry",
]
