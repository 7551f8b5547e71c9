"""For mkdocstrings: `>>>` examples in docstrings become code blocks in the documentation.

Docstrings have their examples bare, as `doctest` and readers of the code want them; in Markdown,
bare lines would be read as text with links.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

_EXAMPLE = re.compile(r"(?m)^( *)>>> .*(?:\n\1\S.*|\n\1 +\S.*)*")


class FenceExamples(Extension):
    """Puts a fence around each run of example lines."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Change the docstring of one object."""
        if obj.docstring and ">>> " in obj.docstring.value:
            value = obj.docstring.value
            obj.docstring.value = _EXAMPLE.sub(r"\1```pycon\n\g<0>\n\1```", value)
