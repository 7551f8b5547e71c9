"""Whole files to ids: Kizami's corpus runs against what other tokenizers offer for files.

    python benchmarks/corpus.py --megabytes 100 --rounds 3

Makes mixed text (code and eight languages, see `kizami.bench.texts`) as JSON Lines, runs every
engine in a process of its own, in turns, and prints a table. Kizami reads the file and writes
shards to the disk, with checksums; the others leave their ids in memory. Times are from the open
file to the last id, without loading the tokenizer; the least of all rounds is shown. Ids must be
equal, or the table says so. Needs `pip install 'kizami[bench]'`; engines that are missing are left
out.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import kizami
import numpy as np

Ids = Any


def make_text(path: Path, megabytes: int, seed: int) -> None:
    """JSON Lines of documents of 200 to 20,000 characters."""
    from kizami.bench.texts.mixing import Mixer
    from kizami.bench.texts.sources import Sources

    mixer, random = Mixer(Sources()), Random(seed)
    size = 0
    with path.open("w", encoding="utf-8") as file:
        while size < megabytes * 1_000_000:
            wanted = int(200 * 100 ** random.random())
            parts: list[str] = []
            while sum(map(len, parts)) < wanted:
                parts.append(mixer.part("mixed", random))
            text = "".join(parts)
            line = json.dumps({"id": size, "text": text, "lang": "mixed"}, ensure_ascii=False)
            size += len(line.encode()) + 1
            file.write(line + "\n")


def texts_of(path: str) -> Iterator[list[str]]:
    """The texts in lists of some MB, as one reads them without a library."""
    batch: list[str] = []
    size = 0
    with open(path, encoding="utf-8") as file:
        for line in file:
            batch.append(json.loads(line)["text"])
            size += len(line)
            if size > 4 << 20:
                yield batch
                batch, size = [], 0
    yield batch


def run_kizami(path: str, folder: Path) -> Callable[[], Ids]:
    """Shards on the disk."""
    import kizami.corpus

    tokenizer = kizami.load("kimi-k3")

    def run() -> Ids:
        kizami.corpus.tokenize(path, folder / "out", tokenizer, overwrite=True)
        return None

    return run


def kizami_ids(folder: Path) -> Ids:
    """What the shards hold."""
    shards = sorted((folder / "out").glob("*.bin"))
    return np.concatenate([np.fromfile(shard, "<u4") for shard in shards])


def run_kizami_batch(path: str, folder: Path) -> Callable[[], Ids]:
    """Batches of texts."""
    tokenizer = kizami.load("kimi-k3")
    return lambda: np.concatenate([tokenizer.encode_batch(t).ids for t in texts_of(path)])


def run_gigatoken(path: str, folder: Path) -> Callable[[], Ids]:
    """Its reader of JSON Lines."""
    import gigatoken
    from gigatoken.gigatoken_rs import JsonlFileSource

    ranks = folder / "ranks.tiktoken"
    ranks.write_bytes(kizami.load("kimi-k3").to_tiktoken())
    tokenizer = gigatoken.Tokenizer.from_tiktoken(ranks, "kimi", {}).backend
    return lambda: tokenizer.encode_files(JsonlFileSource([path]))


def run_gigatoken_batch(path: str, folder: Path) -> Callable[[], Ids]:
    """Batches of texts."""
    import gigatoken

    ranks = folder / "ranks.tiktoken"
    ranks.write_bytes(kizami.load("kimi-k3").to_tiktoken())
    tokenizer = gigatoken.Tokenizer.from_tiktoken(ranks, "kimi", {}).backend

    def run() -> Ids:
        parts = [tokenizer.encode_batch(texts) for texts in texts_of(path)]
        return np.concatenate([flat(part) for part in parts])

    return run


def run_tokenizers(path: str, folder: Path) -> Callable[[], Ids]:
    """Batches of texts."""
    import tokenizers

    tokenizer = tokenizers.Tokenizer.from_str(kizami.load("kimi-k3").to_tokenizer_json())

    def run() -> Ids:
        parts = []
        for texts in texts_of(path):
            for encoding in tokenizer.encode_batch_fast(texts, add_special_tokens=False):
                parts.append(np.array(encoding.ids, np.uint32))
        return np.concatenate(parts)

    return run


def flat(ids: Ids) -> Ids:
    """An awkward array of lists as one array of ids."""
    import awkward

    return awkward.to_numpy(awkward.flatten(ids, axis=1))


ENGINES: dict[str, tuple[Callable[[str, Path], Callable[[], Ids]], str]] = {
    "kizami": (run_kizami, "kizami.corpus.tokenize, shards on disk"),
    "kizami-batch": (run_kizami_batch, "json + encode_batch, in memory"),
    "gigatoken": (run_gigatoken, "encode_files, in memory"),
    "gigatoken-batch": (run_gigatoken_batch, "json + encode_batch, in memory"),
    "tokenizers": (run_tokenizers, "json + encode_batch_fast, in memory"),
}


def work(engine: str, path: str) -> None:
    """One run, in this process; what it took goes to standard output."""
    with tempfile.TemporaryDirectory(dir=Path(path).parent) as name:
        run = ENGINES[engine][0](path, Path(name))
        before = resource.getrusage(resource.RUSAGE_SELF)
        start = time.perf_counter()
        ids = run()
        seconds = time.perf_counter() - start
        after = resource.getrusage(resource.RUSAGE_SELF)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        if ids is None:
            ids = kizami_ids(Path(name))
        elif not isinstance(ids, np.ndarray):
            ids = flat(ids)
        digest = hashlib.sha256(np.ascontiguousarray(ids.astype("<u4", copy=False))).hexdigest()
        result = {
            "seconds": seconds,
            "cpu": cpu,
            "peak_mb": after.ru_maxrss / 1024,
            "tokens": len(ids),
            "ids_sha256": digest,
        }
        print(json.dumps(result))


def measure(engines: list[str], path: Path, rounds: int) -> dict[str, list[dict[str, Any]]]:
    """All runs, engine after engine within a round."""
    results: dict[str, list[dict[str, Any]]] = {}
    for number in range(rounds):
        order = engines[number % len(engines) :] + engines[: number % len(engines)]
        for engine in order:
            command = [sys.executable, __file__, "--worker", engine, "--file", str(path)]
            ran = subprocess.run(command, capture_output=True, text=True, check=False)
            if ran.returncode:
                last = ran.stderr.strip().rpartition("\n")[2]
                print(f"{engine}: {last}", file=sys.stderr)
                continue
            results.setdefault(engine, []).append(json.loads(ran.stdout))
    return results


def table(results: dict[str, list[dict[str, Any]]], megabytes: float) -> str:
    """The results as Markdown, the fastest first."""
    right = results["kizami"][0]["ids_sha256"]
    lines = [
        "| engine | way | seconds | MB/s | CPU s | peak MB | ids |",
        "| --- | --- | ---: | ---: | ---: | ---: | --- |",
    ]
    least = {engine: min(runs, key=lambda run: run["seconds"]) for engine, runs in results.items()}
    for engine, best in sorted(least.items(), key=lambda item: item[1]["seconds"]):
        peak = max(run["peak_mb"] for run in results[engine])
        same = all(run["ids_sha256"] == right for run in results[engine])
        lines.append(
            f"| {engine} | {ENGINES[engine][1]} | {best['seconds']:.2f} |"
            f" {megabytes / best['seconds']:.0f} | {best['cpu']:.2f} | {peak:.0f} |"
            f" {'equal' if same else 'DIFFERENT'} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Make the text, run all, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--file", type=Path, help="JSON Lines to use or to make")
    parser.add_argument("--worker", choices=ENGINES)
    args = parser.parse_args()
    if args.worker:
        work(args.worker, str(args.file))
        return
    with tempfile.TemporaryDirectory() as name:
        path = args.file or Path(name, "mixed.jsonl")
        if not path.exists():
            make_text(path, args.megabytes, 1)
        size = os.path.getsize(path)
        print(f"{size:,} bytes, {os.cpu_count()} CPUs, least of {args.rounds} rounds\n")
        results = measure(args.engines.split(","), path, args.rounds)
        print(table(results, size / 1e6))


if __name__ == "__main__":
    main()
