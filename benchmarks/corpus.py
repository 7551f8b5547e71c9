"""Whole files to ids: Kizami's corpus runs against what other tokenizers offer for files.

    python benchmarks/corpus.py --size 100MB --rounds 3
    python benchmarks/corpus.py --size 100MB --workers 1,2 --plot workers.png

Makes mixed text (code and eight languages, see `kizami.bench.texts`) as JSON Lines, runs every
engine in a process of its own, in turns, and prints a table; `--lines` takes lines of plain text as
documents instead. Kizami reads the file and writes shards to the disk, with checksums; others leave
their ids in memory where the table says so. Times are from the open file to the last id, without
loading the tokenizer or starting workers; the least of all rounds is shown. Memory is that of the
process with all its children, at most, while the clock runs; pages that several of them share count
for each. Ids must be equal, or the table says so. With `--plot`, Kizami alone runs on one machine,
on Ray and on Dask, with each number of workers (threads; actors; processes of one thread).

Needs `pip install 'kizami[bench,data]'`, for clusters `ray` and `dask` too; engines that are
missing are left out.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
from corpus_engines import ENGINES, SLOW, Job, package

Result = dict[str, Any]
_SINGLE = "kizami,kizami-batch,gigatoken,gigatoken-batch,tokenizers,datasets"
_CLUSTERS = "kizami,kizami-ray,kizami-dask"
_UNITS = {"MB": 10**6, "GB": 10**9}


def size_of(text: str) -> int:
    """Bytes of `50MB` or `1GB`."""
    found = re.fullmatch(r"(\d+) ?(MB|GB)", text.upper())
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is no size such as 50MB or 1GB")
    return int(found[1]) * _UNITS[found[2]]


def make_text(path: Path, wanted_bytes: int, seed: int) -> None:
    """Documents of 200 to 20,000 characters: JSON Lines, or lines as they come."""
    from kizami.bench.texts.mixing import Mixer
    from kizami.bench.texts.sources import Sources

    mixer, random = Mixer(Sources()), Random(seed)
    size = 0
    with path.open("w", encoding="utf-8", newline="\n") as file:
        while size < wanted_bytes:
            wanted = int(200 * 100 ** random.random())
            parts: list[str] = []
            while sum(map(len, parts)) < wanted:
                parts.append(mixer.part("mixed", random))
            line = text = "".join(parts)
            if path.suffix == ".jsonl":
                line = json.dumps({"id": size, "text": text, "lang": "mixed"}, ensure_ascii=False)
            size += len(line.encode()) + 1
            file.write(line + "\n")


def work(engine: str, path: str, workers: int) -> None:
    """One run, in this process: says when the clock starts and stops, then what came out."""
    with tempfile.TemporaryDirectory(dir=Path(path).parent) as name:
        job = Job(path, Path(name), workers)
        run = ENGINES[engine].ready(job)
        say("start")
        before = cpu()
        start = time.perf_counter()
        ids = run()
        seconds = time.perf_counter() - start
        spent = cpu() - before
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        say("stop")
        find = ENGINES[engine].ids
        sha256, tokens = hashlib.sha256(), 0
        for array in find(Path(name)) if find else ids or ():
            flat_ids = np.ascontiguousarray(flat(array), "<u4")
            sha256.update(flat_ids)
            tokens += len(flat_ids)
        say(
            "result", seconds=seconds, cpu=spent, peak_mb=peak, tokens=tokens,
            ids_sha256=sha256.hexdigest(),
        )  # fmt: skip


def say(what: str, **facts: Any) -> None:
    """A line for the process that measures."""
    print(json.dumps({"what": what, **facts}), flush=True)


def cpu() -> float:
    """Processor seconds of this process and all its children, those that are over too."""
    import psutil

    own = psutil.Process()
    total = 0.0
    for process in (own, *own.children(recursive=True)):
        with contextlib.suppress(psutil.Error):
            total += sum(process.cpu_times()[:4])
    return total


def flat(ids: Any) -> Any:
    """Ids of any kind as one array: NumPy, Arrow, or awkward lists."""
    if type(ids).__module__.startswith("pyarrow"):
        return ids.to_numpy(zero_copy_only=False)
    if isinstance(ids, np.ndarray):
        return ids
    import awkward

    return awkward.to_numpy(awkward.flatten(ids, axis=1))


class Watch:
    """The memory of a process and all its children, 20 times a second while `on`."""

    def __init__(self, pid: int) -> None:
        import psutil

        self._psutil = psutil
        self._process = psutil.Process(pid)
        self.on = threading.Event()
        self.peak = 0
        self.alone = True
        threading.Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        while self._process.is_running():
            self.on.wait(1)
            if not self.on.is_set():
                continue
            try:
                tree = [self._process, *self._process.children(recursive=True)]
                self.alone = self.alone and len(tree) == 1
                self.peak = max(self.peak, sum(map(self._memory, tree)))
            except self._psutil.Error:
                return
            time.sleep(0.05)

    def _memory(self, process: Any) -> int:
        try:
            rss: int = process.memory_info().rss
        except self._psutil.Error:
            return 0
        return rss


def measure(engine: str, path: Path, workers: int) -> Result | None:
    """One run in a process of its own."""
    command = [sys.executable, __file__, "--worker", engine, "--file", str(path)]
    command += ["--workers", str(workers)]
    environment = {**os.environ, "PYTHONPATH": package()}
    result: Result | None = None
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment
        ) as process,
    ):
        watch = Watch(process.pid)
        assert process.stdout is not None
        for line in process.stdout:
            if not line.startswith('{"what"'):
                continue
            facts = json.loads(line)
            what = facts.pop("what")
            if what == "start":
                watch.on.set()
            elif what == "stop":
                watch.on.clear()
            else:
                result = facts
        if process.wait() or result is None:
            errors.seek(0)
            last = errors.read().strip().rpartition("\n")[2]
            print(f"{engine}: {last}", file=sys.stderr)
            return None
    # The system's own figure sees every moment, but only of one process.
    sampled = watch.peak / (1 << 20)
    return {**result, "peak_mb": result["peak_mb"] if watch.alone else sampled}


def rounds_of(
    engines: list[str], path: Path, rounds: int, slow_rounds: int, workers: int
) -> dict[str, list[Result]]:
    """All runs, engine after engine within a round; another one begins each round."""
    results: dict[str, list[Result]] = {}
    for number in range(rounds):
        first = number % len(engines)
        for engine in engines[first:] + engines[:first]:
            if engine in SLOW and len(results.get(engine, ())) >= slow_rounds:
                continue
            if (result := measure(engine, path, workers)) is not None:
                results.setdefault(engine, []).append(result)
    return results


def table(results: dict[str, list[Result]], megabytes: float) -> str:
    """The results as Markdown, the fastest first; ids are compared with the first engine's."""
    right = next(iter(results.values()))[0]["ids_sha256"]
    lines = [
        "| engine | way | runs | seconds | MB/s | CPU s | peak MB | ids |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    least = {engine: min(runs, key=lambda run: run["seconds"]) for engine, runs in results.items()}
    for engine, best in sorted(least.items(), key=lambda item: item[1]["seconds"]):
        runs = results[engine]
        peak = max(run["peak_mb"] for run in runs)
        spent = min(run["cpu"] for run in runs)
        same = all(run["ids_sha256"] == right for run in runs)
        lines.append(
            f"| {engine} | {ENGINES[engine].way} | {len(runs)} | {best['seconds']:.2f} |"
            f" {megabytes / best['seconds']:.0f} | {spent:.2f} | {peak:.0f} |"
            f" {'equal' if same else 'DIFFERENT'} |"
        )
    return "\n".join(lines)


def plot(speeds: dict[str, dict[int, float]], title: str, path: Path) -> None:
    """Megabytes a second over workers, a curve for each engine."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.5), layout="constrained")
    for (engine, points), marker in zip(speeds.items(), "os^Dv", strict=False):
        axes.plot(list(points), list(points.values()), marker=marker, label=ENGINES[engine].way)
    axes.set(xlabel="workers", ylabel="MB a second", ylim=(0, None), title=title)
    axes.set_xticks(sorted({number for points in speeds.values() for number in points}))
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)


def main() -> None:
    """Make the text, run all, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", type=size_of, default=size_of("100MB"), help="such as 1GB")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--slow-rounds", type=int, default=1, help=f"of {', '.join(sorted(SLOW))}")
    parser.add_argument("--engines", help=f"some of {', '.join(ENGINES)}")
    parser.add_argument("--lines", action="store_true", help="plain text, a document a line")
    parser.add_argument("--file", type=Path, help="the text to use, or to make and keep")
    parser.add_argument("--workers", default=str(os.cpu_count()), help="such as 1,2,4")
    parser.add_argument("--plot", type=Path, metavar="PNG", help="throughput over --workers")
    parser.add_argument("--worker", choices=ENGINES, help=argparse.SUPPRESS)
    args = parser.parse_args()
    workers = [int(number) for number in args.workers.split(",")]
    if args.worker:
        work(args.worker, str(args.file), workers[0])
        return
    engines = (args.engines or (_CLUSTERS if args.plot else _SINGLE)).split(",")
    with tempfile.TemporaryDirectory() as name:
        path = args.file or Path(name, "mixed.txt" if args.lines else "mixed.jsonl")
        if not path.exists():
            make_text(path, args.size, 1)
        size = os.path.getsize(path)
        title = f"{size:,} bytes, {os.cpu_count()} CPUs, least of {args.rounds} rounds"
        print(title)
        speeds: dict[str, dict[int, float]] = {engine: {} for engine in engines}
        for number in workers:
            results = rounds_of(engines, path, args.rounds, args.slow_rounds, number)
            heading = f"{number} worker{'s' * (number > 1)}"
            print(f"\n{heading}\n\n{table(results, size / 1e6)}", flush=True)
            for engine, runs in results.items():
                speeds[engine][number] = size / 1e6 / min(run["seconds"] for run in runs)
        if args.plot:
            plot(speeds, title, args.plot)


if __name__ == "__main__":
    main()
