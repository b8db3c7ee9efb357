"""How time and memory grow with pairs, lengths and models: charts, tables, fitted powers, and an aim."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from sts_regression.basics.tables import markdown_table

GROWTH_TITLES = {
    "pairs": "Seconds and memory to read, filter and tokenise pairs",
    "command": "Seconds until a command begins to train, and its memory",
    "predict": "Seconds of a command that scores pairs in bfloat16, and its memory",
    "length": "Seconds and memory by the length of sentences: MiniLM's shape, random weights, 16 pairs a step",
    "model": "Seconds and memory by the size of the model: random weights, sentences as in STS-B, 16 pairs a step",
}
SECONDS_FOR_A_MILLION = 40.0  # pairs to read, filter and tokenise: the longest that we aim for
POINTS_FITTED = 3  # largest ones: at smaller ones, constant costs prevail

Growth = Mapping[str, Any]  # a parsed growth.json


def growth_section(growth: Growth) -> str:
    """The chart and table of each kind of growth, the fitted powers, and the aims."""
    growth = {"predict": {"points": {}}, **growth}  # not measured yet
    charts = [
        f"![{GROWTH_TITLES[kind]}](speed/growth_{kind}.png)"
        for kind in ("pairs", "command", "predict")
        if growth[kind]["points"]
    ]
    columns = [
        ("pairs", "read", "read, s"),
        ("pairs", "leak filter", "leak filter, s"),
        ("pairs", "tokenise", "tokenise, s"),
        ("pairs", "peak_memory_bytes", "peak memory, GiB"),
        ("command", "until training", "from the command to training, s"),
        ("command", "peak_memory_bytes", "peak memory of the command, GiB"),
        ("predict", "predict", "to score in bfloat16, s"),
        ("predict", "peak_memory_bytes", "peak memory while scoring, GiB"),
    ]
    rows = [
        [f"{int(pairs):,}", *(_grown(growth[kind]["points"].get(pairs), name) for kind, name, _ in columns)]
        for pairs in growth["pairs"]["points"]
    ]
    parts = [*charts, markdown_table(["pairs", *(title for *_, title in columns)], rows)]
    million = growth["pairs"]["points"]["1000000"]
    phases = {name: million[name] for name in ("read", "leak filter", "tokenise")}
    seconds = sum(phases.values())
    parts.append(
        f"A million pairs take {seconds:.0f} s to read, filter and tokenise, {phases['tokenise'] / seconds:.0%} of it "
        f"in the tokenizer. Aim: {SECONDS_FOR_A_MILLION:g} s, "
        f"{'reached' if seconds <= SECONDS_FOR_A_MILLION else '**missed**'}. {_powers(growth['pairs']['points'])} "
        "Memory includes the parts of files that are mapped into memory, which the system can reclaim at any time. "
        "The memory of the command leaves them out, and was measured until it had trained for a minute."
    )
    if scored := growth["predict"]["points"]:
        pairs, largest = list(scored.items())[-1]
        parts.append(
            f"Scoring {int(pairs):,} pairs of made-up text with MiniLM in bfloat16 takes "
            f"{largest['predict'] / 60:.0f} minutes: {int(pairs) / largest['predict']:,.0f} pairs/s, with "
            f"{largest['peak_memory_bytes'] / 2**30:.2f} GiB."
        )
    for kind, header in (("length", "tokens in a sentence"), ("model", "shape of the encoder")):
        points = growth[kind]["points"]
        parts.append(f"![{GROWTH_TITLES[kind]}](speed/growth_{kind}.png)")
        names = {"forward": "forward, s", "training step": "training step, s", "peak_memory_bytes": "peak memory, GiB"}
        rows = [[point, *(_grown(measured, name) for name in names)] for point, measured in points.items()]
        parts.append(markdown_table([header, *names.values()], rows))
        if kind == "length":
            parts.append(f"16 pairs a step, as in the table below. {_powers(points)}")
    return "\n\n".join(parts)


def _powers(points: Mapping[str, Mapping[str, float]]) -> str:
    """The powers with which the times of the largest points grow, by least squares on logarithms."""
    largest = list(points)[-POINTS_FITTED:]
    logs = np.log([float(point) for point in largest])
    names = [name for name in points[largest[0]] if not name.endswith("_bytes")]
    powers = {name: np.polyfit(logs, np.log([points[point][name] for point in largest]), 1)[0] for name in names}
    shown = ", ".join(f"{name} {power:.2f}" for name, power in powers.items())
    return f"Fitted powers of growth from {int(largest[0]):,} to {int(largest[-1]):,}: {shown}."


def _grown(point: Mapping[str, float] | None, name: str) -> str:
    """A measurement of a point in seconds or GiB."""
    if point is None:
        return "not measured"
    return f"{point[name] / 2**30:.2f}" if name.endswith("_bytes") else f"{point[name]:.2f}"
