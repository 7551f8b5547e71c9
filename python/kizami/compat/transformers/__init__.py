"""`transformers`, run by Kizami: call `patch()` once, keep the rest.

    import kizami.compat.transformers

    kizami.compat.transformers.patch()

Tokenizers that `AutoTokenizer.from_pretrained` and its like give afterwards are of the same
classes, with the same ids, and work on Kizami: fast tokenizers with a byte-level BPE, and the slow
ones of the Kimi line. All others stay as they are, with a warning that says why.

Read next: `_patch` for what is replaced, `_backend` for fast tokenizers, `_kimi` for slow ones.
"""

from kizami.compat.transformers._patch import adopt as adopt
from kizami.compat.transformers._patch import is_adopted as is_adopted
from kizami.compat.transformers._patch import patch as patch
from kizami.compat.transformers._patch import unpatch as unpatch

__all__ = ["adopt", "is_adopted", "patch", "unpatch"]
