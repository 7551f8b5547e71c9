"""On what a record was made: processor, memory, versions, commit."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import kizami
from kizami.bench._extras import need

__all__ = ["commit", "machine", "now"]


def machine() -> dict[str, Any]:
    """The machine, as records state it."""
    memory = need("psutil").virtual_memory().total
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    return {
        "cpu": _cpu(),
        "cpus": os.cpu_count(),
        "cpus_usable": affinity,
        "memory_gib": round(memory / 2**30),
        "load_average": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "os": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "numpy": _version("numpy"),
    }


def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "unknown"


def commit() -> str:
    """The commit of the checkout that the package runs from, `+` for changes; else empty."""
    folder = Path(kizami.__file__).parent

    def git(*args: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(folder), *args], capture_output=True, text=True, check=False
        )
        return done.stdout.strip() if done.returncode == 0 else ""

    try:
        if not git("ls-files", "--error-unmatch", "__init__.py"):
            return ""  # not this project's repository
        changed = git("status", "--porcelain", "--untracked-files=no")
        return git("rev-parse", "--short=12", "HEAD") + ("+" if changed else "")
    except OSError:
        return ""


def now() -> str:
    """The time, in UTC."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
