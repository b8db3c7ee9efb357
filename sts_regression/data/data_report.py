"""The data report: suspicious findings about the pairs of a run, one line each, before anything is trained."""

import itertools
import logging
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from datasets import Dataset
from transformers import PreTrainedTokenizerBase

from sts_regression.configuration_sts_regression import STSRegressionConfig
from sts_regression.data.columns import numbers_of, texts_of
from sts_regression.data.labels import LabelScale
from sts_regression.data.leakage import LeakCounts, leak_table, pair_keys
from sts_regression.data.ratings import describe_agreement, measure_agreement, ratings_of
from sts_regression.data.splits import LEAK_FILTER_OPTIONS, UNLABELLED_LOSSES, Splits
from sts_regression.options.data_arguments import DataArguments
from sts_regression.pipeline_sts_regression import TRUNCATED, UNKNOWN, unreliable_pairs

logger = logging.getLogger(__name__)

FEW_DEVELOPMENT_PAIRS = 20  # a correlation on fewer pairs says little
COMMON_SHARE = 0.9  # of the pairs, with one label
GRADE_TOLERANCE = 1e-3  # of the distance between grades, as for the learned grades: 0.3333 is a third
MAX_CLASSES = 11  # a scale with more nodes is a measurement, in which single examples are normal
PAIRS_READ = 20_000  # a larger set is sampled before it is tokenised
REVERSED_BELOW = -0.2  # Spearman's correlation
LINES_SHOWN = 3
TITLES = {"train": "training", "validation": "development", "test": "test"}


def report_findings(findings: Sequence[str], strict: bool, lines: Sequence[str] = ()) -> None:
    """
    Logs the findings, followed by lines that are not findings.

    Raises:
        ValueError: if there are findings and `strict` is true.
    """
    if findings and strict:
        raise ValueError(
            f"`strict`: the data report has {len(findings)} finding{'s' * (len(findings) > 1)}. " + " ".join(findings)
        )
    if findings or lines:
        logger.info("\nData report\n" + "\n".join(f"- {line}" for line in [*findings, *lines]) + "\n")


def report_leaks(leaks: Mapping[str, Mapping[str, LeakCounts]], data_args: DataArguments) -> None:
    """Logs the pairs that the leak filters found, by split and set."""
    for split, counts in leaks.items():
        if any(count.found for count in counts.values()):
            option = LEAK_FILTER_OPTIONS[split]
            is_kept = getattr(data_args, option) == "none"
            remedy = f"kept; `--{option} normalized` leaves them out" if is_kept else "left out"
            logger.info(f"\n{TITLES[split]} pairs that are test pairs, {remedy}\n{leak_table(counts)}\n")


def rating_lines(splits: Splits) -> list[str]:
    """The raters of each set that has several, and their agreement on the pairs that are used."""
    lines = []
    for part in itertools.chain.from_iterable(splits.sets.values()):
        ratings = ratings_of(part.pairs)
        if ratings is not None:
            lines.append(f"{part.name}: {describe_agreement(part.raters, measure_agreement(ratings))}")
    return lines


def data_findings(splits: Splits, tokenizer: PreTrainedTokenizerBase, config: STSRegressionConfig) -> list[str]:
    """
    Looks for problems with the pairs of every split.

    Args:
        splits: the pairs to train on and to score.
        tokenizer: the model's tokenizer, which truncates texts longer than its `model_max_length`.
        config: the configuration of the model.

    Returns:
        A sentence per finding.
    """
    findings: list[str] = []
    for parts in splits.sets.values():
        for part in parts:
            findings += [f"{part.name}: {note}" for note in part.notes]
            findings += _reading_findings(part.name, part.pairs, tokenizer, config)
    keys = {
        split: pair_keys(texts_of(pairs, "sentence1"), texts_of(pairs, "sentence2"))
        for split, pairs in splits.pairs.items()
    }
    for split, of_split in keys.items():
        findings += _repetition_findings(splits.pairs[split], of_split, TITLES[split], splits.scale)
    if "train" in splits.pairs and config.loss_type not in UNLABELLED_LOSSES:
        findings += _grade_findings(splits)
    if "train" in keys and "validation" in keys:
        shared = len(np.intersect1d(keys["train"], keys["validation"]))
        if shared:
            findings.append(
                f"{_occurring(shared, 'development')} among the training pairs, so development scores are too high."
            )
    return findings


def development_findings(num_pairs: int) -> list[str]:
    """Whether there are too few development pairs to choose and calibrate a model by."""
    if num_pairs >= FEW_DEVELOPMENT_PAIRS:
        return []
    return [f"few development pairs ({num_pairs:,}), so scores and verdict are unreliable."]


def reversal_findings(
    spearman: float | None, num_pairs: int, scores: str = "before training, the cosine", split: str = "validation"
) -> list[str]:
    """
    Whether the labels contradict the scores.

    Args:
        spearman: Spearman's correlation of scores and labels, -1 to 1.
        num_pairs: the number of pairs.
        scores: the scores, as a sentence begins with them.
        split: the split of the pairs.
    """
    if spearman is None or num_pairs < FEW_DEVELOPMENT_PAIRS:
        return []
    if spearman > min(REVERSED_BELOW, -2 / np.sqrt(num_pairs)):
        return []
    return [
        f"{scores} and the labels of the {TITLES[split]} pairs correlate at {spearman:.2f}. Do high labels mean "
        "dissimilar texts? If so, reverse the labels, or the order of the names of the grades."
    ]


def _reading_findings(
    name: str, pairs: Dataset, tokenizer: PreTrainedTokenizerBase, config: STSRegressionConfig
) -> Iterator[str]:
    rows = np.arange(len(pairs))
    if len(rows) > PAIRS_READ:
        rows = np.sort(np.random.default_rng(0).choice(rows, PAIRS_READ, replace=False))
    columns = pairs.select(rows)[:]
    marks = unreliable_pairs(columns["sentence1"], columns["sentence2"], tokenizer, config)
    of = f"{len(rows):,} pairs" if len(rows) == len(pairs) else f"{len(rows):,} pairs, a sample,"
    for word, problem in (
        (TRUNCATED, f"a text that is truncated at {tokenizer.model_max_length} tokens"),
        (UNKNOWN, "a text, or a difference between the texts, that is unknown to the tokenizer"),
    ):
        found = [row for row, mark in zip(rows.tolist(), marks, strict=True) if word in mark]
        if found:
            lines = [pairs[row]["line"] for row in found[:LINES_SHOWN]]
            have = "has" if len(found) == 1 else "have"
            yield f"{name}: {len(found):,} of {of} {have} {problem} ({_lines(lines, len(found))})."


def _repetition_findings(pairs: Dataset, keys: np.ndarray, title: str, scale: LabelScale | None) -> Iterator[str]:
    lines, labels = numbers_of(pairs, "line"), numbers_of(pairs, "label")
    rows, starts = _repeated_rows(keys, lines)
    if not len(rows):
        return
    ends = np.append(starts[1:], len(rows))
    shown = lines[rows[: ends[0]]].tolist()
    example = _lines(shown[:LINES_SHOWN], len(shown))
    yield f"{_occurring(len(starts), title)} more than once, in one order or both (for example, {example})."
    apart = np.maximum.reduceat(labels[rows], starts) - np.minimum.reduceat(labels[rows], starts)
    contradictory = np.flatnonzero(apart > 0)
    if len(contradictory):
        own = rows[starts[contradictory[0]] : ends[contradictory[0]]][:LINES_SHOWN]
        places = ", ".join(f"{_called(labels[row], scale)} in line {lines[row]}" for row in own)
        yield (
            f"{_occurring(len(contradictory), title)} with different labels (for example, {places}), "
            f"{round(apart[contradictory].mean(), 2):g} apart on average."
        )


def _repeated_rows(keys: np.ndarray, lines: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """
    The rows of the pairs that occur in several lines, pair by pair, and the place of each pair's first row among them.

    A line that weights repeat counts once.
    """
    ordered = np.sort(keys)
    rows = np.flatnonzero(np.isin(keys, ordered[1:][ordered[1:] == ordered[:-1]]))
    rows = rows[np.sort(np.unique(np.stack([keys[rows], lines[rows]]), axis=1, return_index=True)[1])]
    _, first, pair, counts = np.unique(keys[rows], return_index=True, return_inverse=True, return_counts=True)
    of_several = counts[pair] > 1
    rows = rows[of_several][first[pair][of_several].argsort(kind="stable")]  # pairs in the order of the file
    is_first = np.append(True, keys[rows][1:] != keys[rows][:-1])[: len(rows)]
    return rows, np.flatnonzero(is_first)


def _occurring(number: int, title: str) -> str:
    return f"{number:,} {title} {'pair occurs' if number == 1 else 'pairs occur'}"


def _called(label: float, scale: LabelScale | None) -> str:
    """The name of a grade, or else the number."""
    if scale is None or scale.names is None or label not in scale.values:
        return f"{label:g}"
    return repr(scale.names[scale.values.index(label)])


def _grade_findings(splits: Splits) -> Iterator[str]:
    """Findings on training pairs that nearly all have one label, and on grades with a single pair."""
    assert splits.scale is not None  # there are pairs
    labels, lines = (numbers_of(splits.pairs["train"], column) for column in ("label", "line"))
    if any(part.weight > 1 for part in splits.sets["train"]):  # each pair once
        places = np.stack([splits.set_of_pair["train"], lines])
        once = np.sort(np.unique(places, axis=1, return_index=True)[1])
        labels, lines = labels[once], lines[once]
    values, counts = np.unique(labels, return_counts=True)
    if counts.max() >= COMMON_SHARE * len(labels):
        yield (
            f"{counts.max():,} of {len(labels):,} training pairs have the label "
            f"{_called(values[counts.argmax()].item(), splits.scale)}. Judge "
            "the model by correlations, not by accuracy."
        )
    nodes = np.array(splits.scale.values)
    tolerance = GRADE_TOLERANCE * np.diff(nodes).min()
    are_grades = np.isclose(values[:, None], nodes, rtol=0, atol=tolerance).any(axis=1).all()
    if are_grades and len(nodes) <= MAX_CLASSES and (counts == 1).any():
        single = values[counts == 1].tolist()
        line_of = {label: lines[labels == label].item() for label in single}
        shown = ", ".join(f"{_called(label, splits.scale)} in line {line_of[label]}" for label in single)
        yield f"{len(single)} of the grades {'have' if len(single) > 1 else 'has'} a single training pair ({shown})."


def _lines(lines: Sequence[int], count: int) -> str:
    shown = ", ".join(map(str, lines))
    return f"line{'s' * (count > 1)} {shown}{' …' * (count > len(lines))}"
