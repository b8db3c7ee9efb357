"""The part of a [`Grading`] in a checkpoint's configuration, and its summary in words."""

from typing import Any

from sts_regression.grading.grading import FEWEST_PAIRS_MEASURED, Grading

MODEL_PARTS = ("level", "num_pairs", "score_map", "cut_points", "intervals", "thresholds")
# The same score means another grade in another source.
OF_ONE_SOURCE = "Grades and intervals are learned from {} alone, and hold for pairs like these."


def for_model(grading: Grading) -> dict[str, Any]:
    """The part of a grading that scoring needs, as `grading` of an [`STSRegressionConfig`]."""
    values = grading.to_dict()
    return {name: values[name] for name in MODEL_PARTS}


def in_words(grading: Grading) -> str:
    """A summary of the grades' errors, measured by cross-fitting, and of the intervals."""
    report, parts = grading.report, []
    if grading.source is not None:
        parts.append(OF_ONE_SOURCE.format(grading.source))
    if report:
        parts.append(
            f"Grades by learned cut points, cross-validated on {grading.num_pairs:,} development pairs: mean absolute "
            f"error {report['mae']:.2f}, quadratic weighted kappa {report['quadratic_kappa']:.2f}."
        )
    if "coverage" in report:
        parts.append(
            f"{100 * grading.level:.0f} % intervals contain {100 * report['coverage']:.0f} % of the labels; their "
            f"mean width is {report['width']:.2f}."
        )
    single = report.get("single_grades")
    if single is not None and single["pairs"] >= FEWEST_PAIRS_MEASURED:
        parts.append(f"Those of a single grade contain {100 * single['coverage']:.0f} %.")
    return " ".join([*parts, *([grading.no_intervals] if grading.no_intervals else [])])
