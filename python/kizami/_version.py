"""The version, as Cargo.toml states it for the native module.

Not asked of `importlib.metadata`, which takes longer to import than all else here.
"""

from kizami._native import VERSION

__all__ = ["__version__"]

__version__: str = VERSION
