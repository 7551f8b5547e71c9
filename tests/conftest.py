"""What all tests share: the tokenizer of Kimi K3, and the budget of random tests.

`KIZAMI_MAX_EXAMPLES` sets how many examples hypothesis tries (100 if it is not set). With `CI` set,
the examples are the same in every run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import kizami
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "kizami",
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    max_examples=int(os.environ.get("KIZAMI_MAX_EXAMPLES") or 100),
    print_blob=True,
    # A fixture here is an immutable tokenizer; texts with many fragments are what we are after.
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.large_base_example,
    ],
)
settings.load_profile("kizami")


@pytest.fixture(scope="session")
def tokenizer() -> kizami.Tokenizer:
    """The bundled tokenizer of Kimi K3."""
    return kizami.load("kimi-k3")


@pytest.fixture
def threads() -> Iterator[None]:
    """Puts the number of threads back after the test."""
    before = kizami.get_num_threads()
    yield
    kizami.set_num_threads(before)
