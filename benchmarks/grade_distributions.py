"""Compares intervals from a distribution over grades with conformal intervals around a score.

    python benchmarks/grade_distributions.py CHECKPOINT --sts_data FOLDER --graded_data FOLDER

The checkpoint has a head that predicts a distribution, such as that of `recipes/minilm/hl_gauss_cosine.yaml`. All
intervals come from this one model: from the quantiles of the distribution as they are, from its quantiles after
calibration (distributional conformal prediction, Chernozhukov et al. 2021), and from its mean, as for other models.
They are calibrated on draws of 200 development pairs, and measured on the others. No test pair is read. Writes
results/grading/distributions.json.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import torch

from benchmarks.graded_data import GRADED_SETS, HIGHEST_GRADE, LabelledPair, split_graded_set
from benchmarks.grading_choice import LEVEL, conformal_quantile, ends_as_kept, ends_of_one_width
from sts_regression.basics.tables import aligned_table, write_json
from sts_regression.data.pairs import read_pairs
from sts_regression.grading.grading import measure_intervals
from sts_regression.grading.held_out import halfway
from sts_regression.grading.score_map import fit_score_map
from sts_regression.head_sts_regression import grade_logits, pair_features, raw_scores
from sts_regression.models.encoding import encode_sentences
from sts_regression.models.loading import find_model, load_model, prepare_for_scoring
from sts_regression.training.run_record import describe_environment

KEPT_FILE_OF_DISTRIBUTIONS = Path(__file__).resolve().parent.parent / "results" / "grading" / "distributions.json"
# Development pairs of the corpora that the recipe trains on, with the lowest and the highest label.
OF_TRAINED_CORPORA = {
    "stsb": ("stsbenchmark/sts-dev.csv", 0.0, 5.0),
    "sick": ("sick/SICK_trial.txt", 1.0, 5.0),
}
CALIBRATED_ON, DRAWN = 200, 100  # pairs, and times
WAYS = ("mean of the distribution, one width", "mean of the distribution, by label (kept)", "quantiles", "calibrated")


def main() -> None:
    """Scores the development pairs, compares the intervals, and writes the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path, help="folder of the model")
    parser.add_argument("--sts_data", type=Path, required=True, help="folder of the STS data")
    parser.add_argument("--graded_data", type=Path, required=True, help="folder of the other graded sets")
    args = parser.parse_args()
    environment = describe_environment()  # before a tracked file is written, which counts as a change
    table = {}
    for name, pairs in development_pairs(args.sts_data, args.graded_data).items():
        probabilities, scores, labels = predict_distributions(args.checkpoint, pairs)
        table[name] = compare_intervals(probabilities, scores, labels)
        rows = [[way, *(f"{value:.3f}" for value in measures.values())] for way, measures in table[name].items()]
        sys.stdout.write(f"{name}, {len(pairs)} pairs\n{aligned_table(rows)}\n")
        sys.stdout.flush()
    about = {"level": LEVEL, "calibrated_on": CALIBRATED_ON, "draws": DRAWN, "environment": environment}
    write_json({**about, "sets": table}, KEPT_FILE_OF_DISTRIBUTIONS)


def development_pairs(sts_folder: Path, graded_folder: Path) -> dict[str, list[LabelledPair]]:
    """Development pairs by corpus, with labels from 0 to 5."""
    found = {}
    for name, (file, low, high) in OF_TRAINED_CORPORA.items():
        pairs = read_pairs(sts_folder / file).pairs[:]
        labels = HIGHEST_GRADE * (np.array(pairs["label"]) - low) / (high - low)
        found[name] = list(zip(pairs["sentence1"], pairs["sentence2"], labels.tolist(), strict=True))
    return found | {name: split_graded_set(name, graded_folder)["validation"] for name in GRADED_SETS}


def predict_distributions(checkpoint: Path, pairs: list[LabelledPair]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Probabilities (pairs, grades), their means and the labels, (pairs,) each."""
    model, tokenizer = load_model(find_model(str(checkpoint)), {})
    prepare_for_scoring(model, tokenizer, None, "cpu")
    first, second, labels = zip(*pairs, strict=True)
    u, v = (encode_sentences(model, tokenizer, list(texts)) for texts in (first, second))
    with torch.inference_mode():
        logits = model.head(pair_features(u, v, model.config))
        probabilities = grade_logits(logits, model.config).softmax(dim=-1)
        scores = raw_scores(logits, model.config)
    return probabilities.double().numpy(), scores.double().numpy(), np.array(labels)


def compare_intervals(
    probabilities: np.ndarray, scores: np.ndarray, labels: np.ndarray
) -> dict[str, dict[str, float]]:
    """Coverage and mean width of each way to make intervals, means over the draws."""
    grades = np.linspace(0, HIGHEST_GRADE, probabilities.shape[1])
    found: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
    for seed in range(DRAWN):
        order = np.random.default_rng(seed).permutation(len(labels))
        known, others = order[:CALIBRATED_ON], order[CALIBRATED_ON:]
        score_map = fit_score_map(scores[known], labels[known], 0, HIGHEST_GRADE)
        mapped = score_map.apply(scores)
        # The distance of a label from the median of its distribution, as a probability.
        distances = np.abs(cumulative(probabilities[known], labels[known]) - 0.5)
        ends = (
            ends_of_one_width(mapped[known], labels[known], grades, mapped[others]),
            ends_as_kept(scores[known], labels[known], grades, scores[others]),
            quantiles(probabilities[others], LEVEL / 2),
            quantiles(probabilities[others], conformal_quantile(distances)),
        )
        for way, (low, high) in zip(WAYS, ends, strict=True):
            measured = measure_intervals(low, high, labels[others], grades)
            found[way].append((measured["coverage"], measured["width"]))
    means = {way: np.mean(measures, axis=0) for way, measures in found.items()}
    return {way: {"coverage": float(coverage), "width": float(width)} for way, (coverage, width) in means.items()}


def cumulative(probabilities: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The probability of a lower label, (pairs,). That of a grade is spread evenly up to the middles beside it."""
    edges, reached = _edges(probabilities)
    return np.array([np.interp(label, edges, below) for label, below in zip(labels, reached, strict=True)])


def quantiles(probabilities: np.ndarray, distance: float) -> tuple[np.ndarray, np.ndarray]:
    """The labels whose cumulative probability is 1/2 minus and plus `distance`, (pairs,) each."""
    edges, reached = _edges(probabilities)
    low, high = (
        np.array([np.interp(np.clip(0.5 + sign * distance, 0, 1), below, edges) for below in reached])
        for sign in (-1, 1)
    )
    return low, high


def _edges(probabilities: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    grades = np.linspace(0, HIGHEST_GRADE, probabilities.shape[1])
    edges = np.concatenate([[0], halfway(grades), [HIGHEST_GRADE]])
    reached = np.concatenate([np.zeros((len(probabilities), 1)), probabilities.cumsum(axis=1)], axis=1)
    return edges, reached


if __name__ == "__main__":
    main()
