"""Scores files of pairs of any size in chunks, with any number of processes, and resumes after an interruption.

Each chunk of pairs becomes a file in a folder beside the output, `<output>.parts`, which is written completely or not
at all. The pairs of a chunk depend on the chunk size only. Scores are therefore the same for any number of processes
and interruptions. When all parts are complete, the first process joins them.
"""

import csv
import json
import logging
import math
import shutil
import time
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list
from tqdm.auto import tqdm
from transformers import PreTrainedTokenizerBase

from sts_regression.basics.files import alone_in, check_folder, check_output, files_of_others, replacing
from sts_regression.basics.tables import read_record
from sts_regression.configuration_sts_regression import STSRegressionConfig
from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.models.encoding import Scorer, model_scorer
from sts_regression.models.fingerprint import fingerprint
from sts_regression.models.onnx_graphs import on_backend
from sts_regression.pipeline_sts_regression import grade_indices, grades_of, score_intervals, unreliable_pairs
from sts_regression.serving.pair_file import Chunk, PairFile

logger = logging.getLogger(__name__)

MANIFEST_FILE = "manifest.json"
PART_FILES = "part-[0-9]*"
SCORE_COLUMNS = ("score", "grade", "low", "high", "cosine", "unreliable")
PREDICTED_DIGITS = 6  # decimals
WAIT_SECONDS = 0.5  # between two checks for a part that another process writes


def write_predictions(
    pairs: PairFile,
    model: STSRegressionModel,
    tokenizer: PreTrainedTokenizerBase,
    accelerator: Accelerator,
    path: Path,
    chunk_size: int,
    overwrite: bool = False,
    show_progress: bool = False,
    backend: str = "torch",
) -> None:
    """
    Writes one line per pair: the sentences, the columns of [`score_pairs`], and the other columns of the file.

    All processes must call it. The first returns when the file is complete, the others when they have done their
    share.

    Args:
        pairs: the pairs to score.
        model: a model with a trained head, on the device that scores.
        tokenizer: the model's tokenizer.
        accelerator: the number of processes, and whether to score in mixed precision.
        path: output file, `.csv`, or `.jsonl` for JSON lines.
        chunk_size: number of pairs that are held, scored and written together.
        overwrite: whether parts of other predictions for the same file may be deleted.
        show_progress: whether the first process draws a progress bar of its share.
        backend: engine of the encoder, see [`on_backend`].

    Raises:
        ValueError: for parts of other predictions, a folder that processes do not share, or a file of pairs that
            changes in the meantime.
    """
    folder = _parts_folder(path)
    with alone_in(folder, "predict_output") if accelerator.is_main_process else nullcontext():
        parts = [folder / f"part-{number:06d}" for number in range(-(-pairs.num_pairs // chunk_size))]
        todo: list[Any] = [None]
        if accelerator.is_main_process:
            manifest = {
                "pairs": pairs.sha256,
                "model": fingerprint(model, tokenizer, True),
                "mixed precision": accelerator.mixed_precision,
                "`predict_chunk_size`": chunk_size,
                "`backend`": backend,
            }
            todo = [_begin(folder, parts, manifest, overwrite)]
        broadcast_object_list(todo)  # one process decides, since the others may already have added parts
        share = todo[0][accelerator.process_index :: accelerator.num_processes]
        if share and not (folder / MANIFEST_FILE).is_file():
            raise ValueError(
                f"`predict_output`: process {accelerator.process_index} does not see {str(folder)!r}, which the first "
                "process has created. Name a file in a folder that all machines share."
            )
        if share:  # converting an encoder for a backend takes seconds
            model = on_backend(model, tokenizer, backend)
        scorer = model_scorer(model, tokenizer)
        hidden = not (show_progress and accelerator.is_main_process)
        with accelerator.autocast(), tqdm(total=len(share), desc="Scoring", unit="part", disable=hidden) as progress:
            for chunk in pairs.chunks(chunk_size, share):
                scores = score_pairs(scorer, tokenizer, model.config, chunk.sentences1, chunk.sentences2)
                table = _table(pairs.sentences, chunk, scores)
                with replacing(parts[chunk.number]) as file:
                    file.write(_format(table, path.suffix, with_header=chunk.number == 0))
                progress.update()
        if accelerator.is_main_process:
            _join(parts, path)
            for part in folder.glob(PART_FILES):
                part.unlink()
            (folder / MANIFEST_FILE).unlink()  # last, since it marks the folder as ours
            logger.info(f"\n{pairs.num_pairs:,} predictions: {path}")


def check_predictions(path: Path, inputs: Iterable[str | Path], overwrite: bool) -> None:
    """
    Refuses to write predictions over an input, or over files that are not an unfinished output of this command.

    Args:
        path: file for the predictions.
        inputs: files that the command reads.
        overwrite: whether an existing file may be replaced.

    Raises:
        ValueError: for such a file; the message names it and the remedy.
    """
    folder = _parts_folder(path)
    is_unfinished = (folder / MANIFEST_FILE).is_file()  # the command was killed while it joined parts
    if not (overwrite or is_unfinished):
        check_folder("predict_output", folder, files_of_others(folder, lambda _: False), "--overwrite_output_dir")
    check_output("predict_output", path, inputs, None if overwrite or is_unfinished else "--overwrite_output_dir")


def _parts_folder(path: Path) -> Path:
    return path.with_name(f"{path.name}.parts")


def score_pairs(
    scorer: Scorer,
    tokenizer: PreTrainedTokenizerBase,
    config: STSRegressionConfig,
    sentences1: Sequence[str],
    sentences2: Sequence[str],
) -> dict[str, list[Any]]:
    """
    The columns of predictions for pairs.

    Args:
        scorer: the scorer of the model, see [`model_scorer`].
        tokenizer: the model's tokenizer.
        config: the configuration of the model, with the nodes of the scale and the names of grades, if any.
        sentences1: first sentence of each pair.
        sentences2: second sentence of each pair.

    Returns:
        A `dict` of lists with an entry per pair. If the head is trained: `grade` (name or value), `score` on the label
        scale and, if intervals were learned, the ends `low` and `high` of the label's interval. For a bi-encoder:
        `cosine`. For all models: `unreliable`, see [`unreliable_pairs`]. Scores have six decimals.
    """
    scores = scorer(list(sentences1), list(sentences2))
    columns: dict[str, list[Any]] = {}
    if "head" in scores:
        grades, head = grades_of(config), torch.from_numpy(scores["head"])
        columns["grade"] = [grades[index] for index in grade_indices(head, config).tolist()]
        if ends := score_intervals(head, config):
            columns["low"], columns["high"] = (_rounded(end.tolist()) for end in ends)
    for column, name in (("score", "head"), ("cosine", "cosine")):
        if name in scores:
            columns[column] = _rounded(scores[name].tolist())
    columns["unreliable"] = unreliable_pairs(sentences1, sentences2, tokenizer, config)
    return {column: columns[column] for column in SCORE_COLUMNS if column in columns}


def _rounded(values: Sequence[float]) -> list[float]:
    return [round(value, PREDICTED_DIGITS) for value in values]


def _begin(folder: Path, parts: Sequence[Path], manifest: dict[str, Any], overwrite: bool) -> list[int]:
    """Makes the folder of parts, or reuses that of an interrupted command. Returns the numbers of missing parts."""
    manifest_path = folder / MANIFEST_FILE
    begun = read_record(manifest_path) if manifest_path.is_file() else None
    if begun != manifest:
        if begun is not None and not overwrite:
            other = ", ".join(name for name, value in manifest.items() if begun.get(name) != value)
            raise ValueError(
                f"`predict_output`: {str(folder)!r} holds parts of interrupted predictions with other {other}. Repeat "
                "their command, give another `--predict_output`, or start over with `--overwrite_output_dir`."
            )
        # Old parts are deleted before the new manifest is written, which must never describe them.
        for old in folder.glob(PART_FILES):
            old.unlink()
        folder.mkdir(parents=True, exist_ok=True)
        with replacing(manifest_path) as file:
            file.write(json.dumps(manifest, indent=2).encode() + b"\n")
    there = {path.name for path in folder.iterdir()}
    missing = [number for number, part in enumerate(parts) if part.name not in there]
    if len(missing) < len(parts):
        logger.info(f"{len(parts) - len(missing):,} of {len(parts):,} parts are in {folder} already")
    return missing


def _join(parts: Sequence[Path], path: Path) -> None:
    """Joins the parts in order, and waits for parts that are not complete yet."""
    with replacing(path) as output:
        for part in parts:
            while not part.is_file():
                time.sleep(WAIT_SECONDS)  # a barrier would time out after minutes
            with part.open("rb") as file:
                shutil.copyfileobj(file, output)


def free_names(names: Iterable[str], taken: Container[str]) -> list[str]:
    """Names for columns of the input beside those of predictions: `input_score` in place of `score`, and so on."""
    free: list[str] = []
    for name in names:
        while name in taken or name in free:
            name = f"input_{name}"
        free.append(name)
    return free


def _table(sentences: tuple[str, str], chunk: Chunk, scores: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """
    The columns of the output, with `None` for NaN and infinity in further columns.

    Columns of the input keep their names unless these are taken, see [`free_names`].
    """
    first, second, *others = free_names((*sentences, *chunk.further), SCORE_COLUMNS)
    further = ([_finite(value) for value in values] for values in chunk.further.values())
    return {
        **{first: chunk.sentences1, second: chunk.sentences2},
        **scores,
        **dict(zip(others, further, strict=True)),
    }


def _finite(value: Any) -> Any:
    """A value of JSON with `None` for NaN and infinity, also within lists and objects."""
    if isinstance(value, dict):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _format(table: Mapping[str, Sequence[Any]], suffix: str, with_header: bool) -> bytes:
    """Columns as lines of the output."""
    rows = [dict(zip(table, values, strict=True)) for values in zip(*table.values(), strict=True)]
    if suffix == ".jsonl":
        lines = (json.dumps(row, ensure_ascii=False, allow_nan=False, default=str) for row in rows)
        return "".join(f"{line}\n" for line in lines).encode()
    first, second, *others = table
    others.sort(key=lambda name: SCORE_COLUMNS.index(name) if name in SCORE_COLUMNS else len(SCORE_COLUMNS))
    written = _Lines()
    writer = csv.DictWriter(written, [first, second, *others])
    if with_header:
        writer.writeheader()
    writer.writerows(rows)
    return "".join(written.lines).encode()


class _Lines:
    """Rows of a CSV writer, which quotes both line breaks only if both end its rows; here one of them ends a row."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def write(self, row: str) -> None:
        self.lines.append(f"{row.removesuffix(csv.excel.lineterminator)}\n")
