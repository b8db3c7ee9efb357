"""Compares methods from scores to grades and intervals on five graded corpora, to choose those in `grading`.

    python benchmarks/grading_choice.py --graded_data FOLDER

Scores are the cosines of the untouched MiniLM on training and development pairs; no test pair is read. Each method is
fitted on many draws of training pairs, and measured on other pairs. "Same texts" are the rest of the training and
development pairs together, which are exchangeable with the drawn pairs. "New texts" are development pairs, which share
no text with them. The methods in use and their constants were chosen on all five corpora, so their numbers here may be
somewhat too good. Scores are kept in `outputs/`, the table in `results/grading/choice.json`.
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.graded_data import GRADED_SETS, HIGHEST_GRADE, split_graded_set
from sts_regression.basics.tables import aligned_table, write_json
from sts_regression.grading.cut_points import fit_cut_points, grade_index
from sts_regression.grading.grading import measure_grades, measure_intervals
from sts_regression.grading.held_out import halfway, nearest_grade
from sts_regression.grading.intervals import fewest_pairs_for_intervals, fit_intervals
from sts_regression.grading.score_map import fit_score_map
from sts_regression.models.encoding import model_scorer
from sts_regression.models.loading import find_model, load_model, prepare_for_scoring

ROOT = Path(__file__).resolve().parent.parent
COSINES_FILE, GRADING_TABLE = ROOT / "outputs" / "grading" / "scores.npz", ROOT / "results" / "grading" / "choice.json"
MOST_PAIRS = {"train": 1500, "validation": 1000}
SAMPLE_SIZES = (20, 60, 200, 500, 1000)
DRAWS = 30
LEVEL = 0.9
FEWEST_OF_GRADE = 20  # least number of pairs for the coverage of a grade
OVERALL, OF_GRADE = (0.88, 0.92), 0.85
CORPUS_GRADES = {
    name: np.linspace(0, HIGHEST_GRADE, 4 if name in ("parade", "ukp_aspect") else 6) for name in GRADED_SETS
}


def main() -> None:
    """Scores the pairs unless their scores are kept, compares the methods, and writes the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graded_data", type=Path, required=True, help="folder of the graded sets")
    folder = parser.parse_args().graded_data
    if not COSINES_FILE.is_file():
        score_graded_sets(folder)
    with np.load(COSINES_FILE) as stored:
        pairs = {name: np.array(stored[name], float) for name in stored}
    table: dict[str, Any] = {}
    for name in GRADED_SETS:
        for texts in ("same texts", "new texts"):
            for size in SAMPLE_SIZES:
                found = compare_ways(name, pairs, size, texts == "new texts")
                table.setdefault(name, {}).setdefault(texts, {})[str(size)] = found
                sys.stdout.write(f"\n{name}, {size} pairs, {texts}\n{shown(found)}\n")
    about = {"level": LEVEL, "draws": DRAWS, "chosen_on": list(GRADED_SETS), "score": "cosine, untouched encoder"}
    write_json({**about, "sets": table}, GRADING_TABLE)


def score_graded_sets(folder: Path) -> None:
    """Writes cosines and labels of the first pairs of each set, by set and split."""
    model, tokenizer = load_model(find_model(None), {})
    prepare_for_scoring(model, tokenizer, None)
    score = model_scorer(model, tokenizer)
    stored: dict[str, Any] = {}
    for name in GRADED_SETS:
        for split, most in MOST_PAIRS.items():
            first, second, labels = zip(*split_graded_set(name, folder)[split][:most], strict=True)
            stored[f"{name}/{split}/scores"] = score(list(first), list(second))["cosine"]
            stored[f"{name}/{split}/labels"] = np.array(labels)
    COSINES_FILE.parent.mkdir(parents=True, exist_ok=True)
    np.savez(COSINES_FILE, **stored)


def compare_ways(name: str, pairs: dict[str, np.ndarray], size: int, new_texts: bool) -> dict[str, Any]:
    """All measures of each method, means over the draws."""
    values = CORPUS_GRADES[name]
    known, unseen = ([pairs[f"{name}/{split}/{kind}"] for kind in ("scores", "labels")] for split in MOST_PAIRS)
    if not new_texts:
        known = [np.concatenate(parts) for parts in zip(known, unseen, strict=True)]
    rows: dict[str, dict[str, list[dict[str, float]]]] = {"grades": defaultdict(list), "intervals": defaultdict(list)}
    for seed in range(DRAWS):
        order = np.random.default_rng(seed).permutation(len(known[0]))
        scores, labels = (part[order[:size]] for part in known)
        others, truth = unseen if new_texts else (part[order[size:]] for part in known)
        score_map = fit_score_map(scores, labels, 0, HIGHEST_GRADE)
        mapped, of_others = score_map.apply(scores), score_map.apply(others)
        for way, index in grades_by_way(scores, mapped, labels, values, others, of_others).items():
            rows["grades"][way].append(measure_grades(index, nearest_grade(truth, values), values))
        for way, ends in INTERVALS.items() if size >= fewest_pairs_for_intervals(LEVEL) else ():
            # The package fits its intervals on raw scores.
            fitted, measured = (scores, others) if ends is ends_as_kept else (mapped, of_others)
            found = measure_intervals(*ends(fitted, labels, values, measured), truth, values)
            of_grades = [row["coverage"] for row in found["coverage_by_grade"] if row["pairs"] >= FEWEST_OF_GRADE]
            rows["intervals"][way].append(
                {
                    "coverage": found["coverage"],
                    "lowest_coverage_of_a_grade": min(of_grades),
                    "width": found["width"],
                    "share_of_draws_with_coverage_88_to_92": float(OVERALL[0] <= found["coverage"] <= OVERALL[1]),
                    "share_of_draws_with_each_grade_85": float(min(of_grades) >= OF_GRADE),
                }
            )
    return {kind: {way: _means(draws) for way, draws in ways.items()} for kind, ways in rows.items()}


def _means(draws: list[dict[str, float]]) -> dict[str, float]:
    return {measure: round(float(np.mean([draw[measure] for draw in draws])), 4) for measure in draws[0]}


def grades_by_way(
    scores: np.ndarray,
    mapped: np.ndarray,
    labels: np.ndarray,
    values: np.ndarray,
    others: np.ndarray,
    of_others: np.ndarray,
) -> dict[str, np.ndarray]:
    """The grades of other pairs by each method after fitting."""
    slope, intercept = np.polyfit(scores, labels, 1)
    mean = labels.mean()
    correlation = max(float(np.corrcoef(mapped, labels)[0, 1]), 0.1)
    by_cuts: dict[str, Any] = {
        "halfway from the nearest to the label frequencies (kept)": fit_cut_points(mapped, labels, values),
        "label frequencies": np.quantile(mapped, [(labels < middle).mean() for middle in halfway(values)]),
        "least absolute error": cuts_of_least_error(mapped, nearest_grade(labels, values), len(values)),
    }
    return {
        "nearest to the raw score": nearest_grade(HIGHEST_GRADE * others, values),
        "nearest to a line": nearest_grade(intercept + slope * others, values),
        "nearest to the mapped score": nearest_grade(of_others, values),
        # Minimises the expected squared error less kappa's share of the variance, given the expected label.
        "largest kappa": nearest_grade(mean + (of_others - mean) / correlation, values),
        **{way: grade_index(of_others, cuts) for way, cuts in by_cuts.items()},
    }


def cuts_of_least_error(scores: np.ndarray, grades: np.ndarray, number: int) -> np.ndarray:
    """Cut points with the least absolute error on the pairs, each fitted separately, since the error is a sum."""
    order = np.argsort(scores)
    ascending, cuts = scores[order], []
    gaps = np.r_[-np.inf, halfway(ascending), np.inf]
    for upper in range(1, number):
        at_least = grades[order] >= upper
        errors = np.r_[0, np.cumsum(at_least)] + np.r_[np.cumsum(~at_least[::-1])[::-1], 0]
        best = np.flatnonzero(errors == errors.min())
        cuts.append(gaps[best[len(best) // 2]])
    return np.nan_to_num(np.maximum.accumulate(cuts))


def ends_of_one_width(
    mapped: np.ndarray, labels: np.ndarray, values: np.ndarray, of_others: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Split conformal: the score plus and minus one quantile of the absolute error."""
    candidates = _candidates(labels, values)
    radius = np.full(len(candidates), conformal_quantile(np.abs(labels - mapped)))
    return _ends(candidates, radius, of_others)


def ends_by_label(
    mapped: np.ndarray, labels: np.ndarray, values: np.ndarray, of_others: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Split conformal with a quantile for each label, over the pairs within half a unit, or the 20 nearest."""
    candidates, errors = _candidates(labels, values), np.abs(labels - mapped)
    radius = []
    for label in candidates:
        distances = np.abs(labels - label)
        near = distances <= max(0.5, np.partition(distances, 19)[19])
        radius.append(conformal_quantile(errors[near]))
    return _ends(candidates, np.array(radius), of_others)


def ends_as_kept(
    scores: np.ndarray, labels: np.ndarray, values: np.ndarray, others: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The intervals of the package."""
    return fit_intervals(scores, labels, values, LEVEL).apply(others)


INTERVALS: dict[str, Callable[..., tuple[np.ndarray, np.ndarray]]] = {
    "one width": ends_of_one_width,
    "a width for each label": ends_by_label,
    "a range of scores for each label (kept)": ends_as_kept,
}


def conformal_quantile(errors: np.ndarray) -> float:
    """The quantile of the errors at the level, by the (n + 1) rule; infinite if there are too few errors."""
    rank = int(np.ceil((len(errors) + 1) * LEVEL - 1e-9))
    return float(np.sort(errors)[rank - 1]) if rank <= len(errors) else np.inf


def _candidates(labels: np.ndarray, values: np.ndarray) -> np.ndarray:
    ordinal = np.allclose(labels, values[nearest_grade(labels, values)])
    return values if ordinal else np.linspace(0, HIGHEST_GRADE, 101)


def _ends(candidates: np.ndarray, radius: np.ndarray, of_others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    inside = np.abs(candidates - of_others[:, None]) <= radius  # (pairs, candidates)
    nearest = nearest_grade(of_others, candidates)
    inside[np.arange(len(of_others)), nearest] |= ~inside.any(axis=1)
    return candidates[inside.argmax(axis=1)], candidates[len(candidates) - 1 - inside[:, ::-1].argmax(axis=1)]


def shown(found: dict[str, Any]) -> str:
    """The measures of each method as lines."""
    lines = []
    for ways in filter(None, found.values()):
        measures = list(next(iter(ways.values())))
        lines.append(aligned_table([["", *measures]]))
        lines += [aligned_table([[way.ljust(40), *(f"{row[m]:.3f}" for m in measures)]]) for way, row in ways.items()]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
