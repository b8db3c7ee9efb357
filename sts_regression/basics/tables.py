"""Formats correlations and tables, reads and writes JSON records, and makes the table of results on the screen."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sts_regression.basics.files import is_file, reading, replacing
from sts_regression.basics.hub_tokens import without_tokens

REPORTED_SCORES = ("cosine", "head")
SPLIT_TITLES = {"validation": "development", "test": "test"}


def write_json(data: Any, path: Path) -> None:
    """
    Writes JSON without tokens of the Hub, and makes its folder. The file is written completely or not at all.

    Raises:
        ValueError: for NaN and infinite numbers, which JSON does not know.
    """
    text = without_tokens(json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False))
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(f"{text}\n".encode())


def read_record(path: Path) -> dict[str, Any]:
    """
    The mapping in one of our JSON files.

    Raises:
        ValueError: if the file cannot be read or is damaged; the message names it.
    """
    if not is_file(path):
        raise ValueError(f"{path}: no such file. Run the command that writes it again.")
    with reading(path):
        content = path.read_bytes()
    try:
        record = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{path}: damaged, not valid JSON ({error!s:.200}). Run the command that wrote it again."
        ) from error
    if not isinstance(record, dict):
        raise ValueError(f"{path}: damaged, not a mapping. Run the command that wrote it again.")
    return record


def cut(text: str, length: int) -> str:
    """A text, cut to at most `length` characters."""
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def seconds_of_all(record: Mapping[str, Any]) -> float:
    """The duration of a run, with its earlier stages and its inner runs, such as folds."""
    inner = (record.get(name, {}) for name in ("folds", "refit", "learning_curve", "bundled_pairs"))
    others = sum(part.get("seconds", 0) for part in (*inner, *record.get("stages", [])))
    return record["seconds"] + others


def percent(value: float | None, sd: float | None = None) -> str:
    """A correlation in percent, with its standard deviation if given; a dash if nothing was measured."""
    if value is None:
        return "–"
    return f"{100 * value:.2f}" if sd is None else f"{100 * value:.2f} ± {100 * sd:.2f}"


def aligned_table(rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells in columns of constant width, the first column aligned left and the others right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows)
    return "\n".join(lines)


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def results_on_screen(rows: Mapping[str, Mapping[str, Mapping[str, float]]]) -> str:
    """
    Spearman's correlations in percent, with a line per state of the model and a pair of columns per split.

    Args:
        rows: measures by state ("before training", …) and split, each from [`measure_scores`]. A missing measure is
            shown as a dash.
    """
    splits = list(dict.fromkeys(split for measures in rows.values() for split in measures))
    width = max(map(len, rows))
    lines = [
        " " * width + "".join(f"{SPLIT_TITLES[split]:>18}" for split in splits),
        " " * width + "".join(f"{score:>9}" for _ in splits for score in REPORTED_SCORES),
    ]
    for state, measures in rows.items():
        cells = [measures.get(split, {}).get(f"spearman_{score}") for split in splits for score in REPORTED_SCORES]
        lines.append(f"{state:<{width}}" + "".join(f"{percent(cell):>9}" for cell in cells))
    return "Spearman's correlation with the gold labels, in percent\n" + "\n".join(lines)
