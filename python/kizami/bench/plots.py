"""Plots of a record: latency over prompt size, speed by script, scaling over threads and callers.

Colours are told apart by people who see few of them, and every engine has a marker of its own. A
plot without data in the record is left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kizami.bench._extras import need
from kizami.bench.lab.engines import NAMES
from kizami.bench.table import OURS

__all__ = ["draw"]

Line = dict[str, Any]
# Okabe and Ito's colours, and a marker for each engine.
_COLOURS = ("#D55E00", "#000000", "#0072B2", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#777777")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_KINDS = ("english", "code", "agent", "zh", "ja", "ko", "ru", "ar", "hi", "th", "mixed")


def draw(lines: list[Line], folder: Path) -> list[Path]:
    """Draw what the lines of a record hold; gives the files written."""
    lines = [line for line in lines if "seconds" in line]
    if not lines:
        return []
    pyplot = _pyplot()
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, plot in _PLOTS.items():
        figure, axes = pyplot.subplots(figsize=(10, 5.5), layout="constrained")
        if plot(axes, lines):
            figure.legend(loc="outside right center", frameon=False, fontsize=9)
            figure.text(0.99, 0.005, _footer(lines), ha="right", va="bottom", fontsize=7.5)
            figure.get_layout_engine().set(rect=(0, 0.03, 1, 0.97))  # room for the line below
            path = folder / f"{name}.png"
            figure.savefig(path, dpi=150)
            written.append(path)
        pyplot.close(figure)
    return written


def _pyplot() -> Any:
    need("matplotlib").use("Agg")
    pyplot = need("matplotlib.pyplot")
    pyplot.rcParams.update(
        {
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.alpha": 0.25,
        }
    )
    return pyplot


def _style(engine: str) -> dict[str, Any]:
    number = NAMES.index(engine) if engine in NAMES else len(_COLOURS) - 1
    ours = engine == OURS
    return {
        "color": _COLOURS[number],
        "marker": _MARKERS[number],
        "linewidth": 2.8 if ours else 1.4,
        "linestyle": "-" if ours else "--",
        "zorder": 3 if ours else 2,
    }


def _footer(lines: list[Line]) -> str:
    commit = f", commit {lines[0]['commit']}" if lines[0].get("commit") else ""
    python = lines[0]["machine"]["python"]
    return f"Medians; whiskers, if any: median distance from them. Python {python}{commit}"


def _title(axes: Any, text: str, lines: list[Line]) -> None:
    machine = lines[0]["machine"]
    axes.set_title(f"{text}\n{machine['cpu']}, {machine['cpus']} CPUs, {lines[0]['date'][:10]}")


def _engines(lines: Iterable[Line]) -> list[str]:
    found = dict.fromkeys(line["engine"] for line in lines)
    known = [name for name in NAMES if name in found]
    return known + [name for name in found if name not in NAMES]


def _label(engine: str, lines: Iterable[Line]) -> str:
    version = next((line["engine_version"] for line in lines if line["engine"] == engine), "")
    inexact = any(line["engine"] == engine and line["exact"] is False for line in lines)
    return f"{engine} {version}" + (" (some ids differ)" if inexact else "")


def _curves(
    axes: Any, lines: list[Line], x: dict[int, float], y: dict[int, tuple[float, float, float]]
) -> None:
    """A curve for each engine; x and y (least, middle, most) by the identity of a line."""
    for engine in _engines(lines):
        mine = sorted(
            (line for line in lines if line["engine"] == engine), key=lambda line: x[id(line)]
        )
        places = [x[id(line)] for line in mine]
        least, middle, most = zip(*(y[id(line)] for line in mine), strict=True)
        below = [m - low for m, low in zip(middle, least, strict=True)]
        above = [high - m for m, high in zip(middle, most, strict=True)]
        axes.errorbar(
            places,
            middle,
            yerr=(below, above),
            capsize=2,
            elinewidth=0.8,
            label=_label(engine, lines),
            **_style(engine),
        )


def _latency(axes: Any, lines: list[Line]) -> bool:
    """Milliseconds of a request over its ids, both logarithmic."""
    warm = [
        line
        for line in lines
        if line["definition"]["mode"] == "warm"
        and line["definition"].get("tokens")
        and line["threads"] is None
    ]
    groups: dict[tuple[str, str], list[Line]] = {}
    for line in warm:
        definition = line["definition"]
        groups.setdefault((definition["shape"], definition["kind"]), []).append(line)
    if not groups:
        return False
    (shape, kind), chosen = max(
        groups.items(),
        key=lambda item: (len({line["case"] for line in item[1]}), item[0][0] == "118"),
    )
    if len({line["case"] for line in chosen}) < 2:
        return False
    x = {id(line): float(line["tokens"]) for line in chosen}
    y = {id(line): _milliseconds(line) for line in chosen}
    _curves(axes, chosen, x, y)
    axes.set(xscale="log", yscale="log", xlabel="ids of the request", ylabel="milliseconds")
    plain = need("matplotlib.ticker").FuncFormatter(
        lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}"
    )
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(plain)
    what = "one text" if shape == "text" else f"{shape} segments"
    _title(axes, f"Latency of a request, warm, new text: {what}, {kind}", lines)
    return True


def _milliseconds(line: Line) -> tuple[float, float, float]:
    middle, mad = line["seconds"]["median"] * 1e3, line["seconds"]["mad"] * 1e3
    return middle - mad, middle, middle + mad


def _scripts(axes: Any, lines: list[Line]) -> bool:
    """Megabytes a second by kind of text, a bar for each engine."""
    chosen = [line for line in lines if line["case"].startswith("script-")]
    kinds = [kind for kind in _KINDS if any(line["definition"]["kind"] == kind for line in chosen)]
    if len(kinds) < 2:
        return False
    engines = _engines(chosen)
    width = 0.85 / len(engines)
    for number, engine in enumerate(engines):
        speeds = {
            line["definition"]["kind"]: line["input_bytes"]
            / line["seconds"]["samples"]
            / line["seconds"]["median"]
            / 1e6
            for line in chosen
            if line["engine"] == engine
        }
        places = [place + (number - (len(engines) - 1) / 2) * width for place in range(len(kinds))]
        axes.bar(
            places,
            [speeds.get(kind, 0.0) for kind in kinds],
            width,
            label=_label(engine, chosen),
            color=_style(engine)["color"],
            hatch=("", "//", "..", "xx", "\\\\", "++", "--", "oo")[number % 8],
            edgecolor="white",
            linewidth=0.5,
        )
    axes.set_xticks(range(len(kinds)), kinds)
    axes.set(xlabel="kind of text", ylabel="MB of UTF-8 a second, warm, new text")
    threads = chosen[0]["threads"]
    beside = f"{threads} thread" if threads else "threads as each engine likes"
    _title(axes, f"Speed by script: one text, {beside}", lines)
    return True


def _threads(axes: Any, lines: list[Line]) -> bool:
    """Millions of ids a second over threads."""
    chosen = [line for line in lines if line["case"].startswith("threads-")]
    if len({line["threads"] for line in chosen}) < 2:
        return False
    x = {id(line): float(line["threads"]) for line in chosen}
    y = {id(line): _speed(line) for line in chosen}
    _curves(axes, chosen, x, y)
    axes.set(xlabel="threads", ylabel="million ids a second", ylim=(0, None))
    axes.set_xticks(sorted(set(x.values())))
    _title(axes, "One request of a million ids over threads", lines)
    return True


def _speed(line: Line) -> tuple[float, float, float]:
    slow, middle, fast = reversed(_milliseconds(line))
    return (
        line["tokens"] / slow / 1e3,
        line["tokens"] / middle / 1e3,
        line["tokens"] / fast / 1e3,
    )


def _callers(axes: Any, lines: list[Line]) -> bool:
    """The time for all requests over the number of threads that call at once."""
    chosen = [line for line in lines if line["definition"]["mode"] == "callers"]
    if len({line["callers"] for line in chosen}) < 2:
        return False
    x = {id(line): float(line["callers"]) for line in chosen}
    y = {id(line): _milliseconds(line) for line in chosen}
    _curves(axes, chosen, x, y)
    prompts = chosen[0]["definition"]["prompts"]
    axes.set(yscale="log", xlabel="threads that call at once", ylabel="milliseconds for all")
    axes.set_xscale("log", base=2)
    places = sorted(set(x.values()))
    axes.set_xticks(places, [f"{place:g}" for place in places])
    _title(axes, f"{prompts} requests of 15,000 characters", lines)
    return True


_PLOTS = {"latency": _latency, "scripts": _scripts, "threads": _threads, "callers": _callers}
