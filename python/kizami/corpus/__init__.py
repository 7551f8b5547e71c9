"""Whole corpora: files of texts in, shards of token ids out.

`import kizami` does not load it; write `import kizami.corpus`. For many machines there are
`kizami.corpus.ray` and `kizami.corpus.dask`, which are imported by themselves.
"""

from kizami.corpus._arrow import encode_arrow as encode_arrow
from kizami.corpus._check import Estimate as Estimate
from kizami.corpus._check import Verified as Verified
from kizami.corpus._check import estimate as estimate
from kizami.corpus._check import verify as verify
from kizami.corpus._columns import Totals as Totals
from kizami.corpus._run import Progress as Progress
from kizami.corpus._run import Report as Report
from kizami.corpus._run import tokenize as tokenize

__all__ = [
    "Estimate",
    "Progress",
    "Report",
    "Totals",
    "Verified",
    "encode_arrow",
    "estimate",
    "tokenize",
    "verify",
]
