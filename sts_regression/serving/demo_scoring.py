"""Checks and scores the texts that visitors of the web page send, and makes a file of the scores.

Nothing here depends on the page. The message of each `ValueError` can be shown to visitors.
"""

import csv
import io
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from transformers import PreTrainedTokenizerBase

from sts_regression.configuration_sts_regression import STSRegressionConfig
from sts_regression.data.columns import PairColumns
from sts_regression.data.labels import nodes_in_words
from sts_regression.data.pairs import sentence_problem, stream_sentences
from sts_regression.models.encoding import Scorer, model_scorer
from sts_regression.models.loading import find_model, load_model, prepare_for_scoring
from sts_regression.serving.prediction import SCORE_COLUMNS, score_pairs

MAX_TEXT_CHARACTERS = 2_000
MAX_LIST_SENTENCES = 200
MAX_FILE_BYTES = 2**20
MAX_FILE_PAIRS = 1_000
FILE_SUFFIXES = (".csv", ".tsv")
FORMULA_STARTS = tuple("=+-@＝＋－＠")  # a spreadsheet reads a cell that begins so as a formula


@dataclass(frozen=True)
class DemoModel:
    """
    A model as the page uses it.

    Attributes:
        name: as visitors see it: a Hub id, or the last part of a folder.
        config: the configuration of the model.
        scorer: the scorer of the model, see [`model_scorer`].
        tokenizer: the model's tokenizer.
    """

    name: str
    config: STSRegressionConfig
    scorer: Scorer
    tokenizer: PreTrainedTokenizerBase

    @property
    def main_score(self) -> str:
        """The score that ranks lists: `score`, or `cosine` if the head is not trained."""
        return "score" if self.config.head_is_trained else "cosine"


def load_demo_model(
    name_or_path: str, revision: str = "main", trust_remote_code: bool = False, max_seq_length: int | None = None
) -> DemoModel:
    """
    Loads a model for the page, on the GPU if there is one.

    Args:
        name_or_path: Hub id or folder of a checkpoint, or of a plain encoder.
        revision: branch, tag or commit on the Hub.
        trust_remote_code: whether an encoder's own code may run.
        max_seq_length: longest text in tokens, see [`prepare_for_scoring`].

    Raises:
        ValueError: as [`find_model`], [`load_model`] and [`model_scorer`].
    """
    model, tokenizer = load_model(find_model(name_or_path, revision, trust_remote_code), {})
    prepare_for_scoring(model, tokenizer, max_seq_length)
    name = Path(name_or_path).resolve().name if Path(name_or_path).exists() else name_or_path
    return DemoModel(name, model.config, model_scorer(model, tokenizer), tokenizer)


def describe_model(model: DemoModel) -> str:
    """Name and label scale of the model, and which scores it cannot give, in lines of text."""
    values, names = model.config.label_values, model.config.label_names
    scale = nodes_in_words(values, separator=", ")
    if names is not None:
        scale = ", ".join(f"{value:g} {name}" for value, name in zip(values, names, strict=True))
    lines = [model.name, f"Label scale: {scale}"]
    if not model.config.head_is_trained:
        lines[1:] = ["It has no trained head: there is a cosine, but no score."]
    if model.config.encoder_type == "cross-encoder":
        lines.append("It is a cross-encoder: there is a score, but no cosine.")
    return "\n".join(lines)


def score_two(model: DemoModel, sentence1: str | None, sentence2: str | None) -> dict[str, Any]:
    """
    The scores of one pair, see [`score_pairs`].

    Raises:
        ValueError: for a sentence that is empty or too long.
    """
    pair = [_checked(name, text) for name, text in (("First sentence", sentence1), ("Second sentence", sentence2))]
    scores = score_pairs(model.scorer, model.tokenizer, model.config, pair[:1], pair[1:])
    return {name: values[0] for name, values in scores.items()}


def rank(model: DemoModel, query: str | None, text: str | None) -> list[dict[str, Any]]:
    """
    Ranks sentences by their score with a query, or by their cosine if there is no score.

    Args:
        model: the model that scores.
        query: first sentence of each pair.
        text: one sentence a line; empty lines are left out.

    Returns:
        A `dict` for each sentence, best first: `sentence`, and the scores of [`score_pairs`]. Equal scores keep their
        order.

    Raises:
        ValueError: for a sentence that is empty or too long, and for too many sentences.
    """
    query = _checked("Query", query)
    sentences = [line.strip() for line in (text or "").splitlines() if line.strip()]
    if not 0 < len(sentences) <= MAX_LIST_SENTENCES:
        raise ValueError(
            f"`Sentences` must hold 1 to {MAX_LIST_SENTENCES:,} sentences, one per line, but holds {len(sentences):,}."
        )
    for number, sentence in enumerate(sentences, start=1):
        _checked(f"Sentences: number {number}", sentence)
    scores = score_pairs(model.scorer, model.tokenizer, model.config, [query] * len(sentences), sentences)
    rows = [
        {"sentence": sentence, **dict(zip(scores, values, strict=True))}
        for sentence, *values in zip(sentences, *scores.values(), strict=True)
    ]
    return sorted(rows, key=lambda row: row[model.main_score], reverse=True)


def score_file(model: DemoModel, path: Path, columns: PairColumns) -> str:
    """
    The pairs of a file and their scores, as the text of a CSV file that a spreadsheet opens without running anything.

    Args:
        model: the model that scores.
        path: `.csv` or `.tsv`.
        columns: names of columns that would be guessed wrong.

    Raises:
        ValueError: for a file of another kind, a file that is too large or unreadable, and a sentence that is empty or
            too long; the message names the file without its folder.
    """
    first, second = zip(*_read_file(path, columns), strict=True)
    table = {
        "sentence1": first,
        "sentence2": second,
        **score_pairs(model.scorer, model.tokenizer, model.config, first, second),
    }
    written = ["sentence1", "sentence2", *(column for column in SCORE_COLUMNS if column in table)]
    text = io.StringIO(newline="")
    # Every text is quoted: spreadsheets that separate by semicolons then begin no new cell within it.
    writer = csv.writer(text, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow(written)
    writer.writerows(map(_without_formula, row) for row in zip(*(table[column] for column in written), strict=True))
    return text.getvalue()


def _read_file(path: Path, columns: PairColumns) -> list[tuple[str, str]]:
    if path.suffix.lower() not in FILE_SUFFIXES:
        raise ValueError(
            f"{path.name}: unknown kind of file {path.suffix!r}. Known kinds: {', '.join(FILE_SUFFIXES)}."
        )
    if path.is_file() and path.stat().st_size > MAX_FILE_BYTES:
        raise ValueError(f"{path.name}: is larger than {MAX_FILE_BYTES // 2**20} MiB. Split it.")
    try:
        pairs = list(islice(stream_sentences(path, columns), MAX_FILE_PAIRS + 1))
    except ValueError as error:
        raise ValueError(str(error).replace(str(path), path.name)) from error
    if len(pairs) > MAX_FILE_PAIRS:
        raise ValueError(f"{path.name}: holds more than {MAX_FILE_PAIRS:,} pairs. Split it.")
    for number, pair in enumerate(pairs, start=1):
        for sentence in pair:
            _checked(f"{path.name}: pair {number}", sentence)
    return pairs


def _checked(name: str, sentence: str | None) -> str:
    problem = sentence_problem(sentence)
    if sentence is None or problem is not None:
        raise ValueError(f"`{name}` {problem}. Write a sentence.")
    if len(sentence) > MAX_TEXT_CHARACTERS:
        raise ValueError(
            f"`{name}` has {len(sentence):,} characters, but at most {MAX_TEXT_CHARACTERS:,} are allowed. Shorten it."
        )
    return sentence


def _without_formula(value: Any) -> Any:
    """The value, with an apostrophe in front if a spreadsheet would take it for a formula."""
    is_formula = isinstance(value, str) and value.lstrip().startswith(FORMULA_STARTS)
    return f"'{value}" if is_formula else value


def describe_limits() -> str:
    """The limits of this module, as a sentence."""
    return (
        f"At most {MAX_TEXT_CHARACTERS:,} characters per sentence, {MAX_LIST_SENTENCES:,} sentences per list, "
        f"{MAX_FILE_PAIRS:,} pairs and {MAX_FILE_BYTES // 2**20} MiB per file."
    )


def shown_score(score: float) -> str:
    """A score with two digits after the point, as the page shows it."""
    return f"{score:z.2f}".replace("-", "−")
