"""Labels: their scales, the maps between scales, and the parsing of labels in data."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from sts_regression.basics.excel_files import NumberText
from sts_regression.configuration_sts_regression import are_evenly_spaced

NO_CLASS = "-"  # SNLI's label of pairs on which its annotators did not agree; data sets on the Hub have -1
NO_CLASS_NAMES = (NO_CLASS, "-1")
# More whole numbers than this are a measurement, not a scale of grades. The user must then name the nodes.
MAX_GUESSED_NODES = 101
MAX_LISTED_NODES = 11
MAX_GUESSED_GRADE = 1e5  # single precision hardly separates larger grades
MAX_GUESSED_FRACTIONS, FRACTION_TOLERANCE = 11, 1e-4  # 0, 0.1, … 1; rounded to four digits
USUAL_PARTS = (2, 3, 4, 5, 10)  # of 0-1, whose ends need not all occur as labels
FEWEST_FRACTIONS = 4  # with fewer different labels, only one node may be unused
# Percentages reach above the first value, or the second if they have a step: 10, 20, … 60 are grades.
LOW_PERCENTAGE, LOW_STEPPED_PERCENTAGE = 50, 70
PERCENTAGE_STEPS = (5, 10, 20, 25)
MIN_STEPPED_SPAN = 10  # of whole numbers that may be grades in steps of more than one
OUTLYING_SHARE = 0.01  # largest share of labels at one end that count as outliers
REPEATED_SHARE = 0.1  # largest share if all of them are one value, such as a code for "not rated"
CODES = re.compile(r"-1|-?9+")  # usual values of such a code
ROUND_STEPS, MAX_EXAMPLE_NODES = (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8), 7
NOT_A_NUMBER, NOT_ONE_OF = "not a number", "not one of"
TRUTH_VALUES = {"false": 0, "true": 1}
NO_NUMBER = (math.nan, NOT_A_NUMBER)
DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+([eE][+-]?\d+)?\s*", re.ASCII)
THOUSAND_OR_FRACTION = re.compile(r"\s*[+-]?[1-9]\d{0,2},\d{3}\s*", re.ASCII)  # 1,000 is either


@dataclass(frozen=True)
class LabelScale:
    """
    A scale of grades.

    Attributes:
        values: the nodes, lowest first. Labels may lie between them.
        names: a name for each node, lowest first, if grades have names.
    """

    values: tuple[float, ...]
    names: tuple[str, ...] | None = None

    def map_to(self, target: "LabelScale", labels: Sequence[float] | np.ndarray) -> np.ndarray:
        """
        Maps labels of this scale onto another; the ends map to the ends. SICK's z on 1-5 becomes 5·(z − 1)/4 on 0-5.

        If the nodes of either scale are uneven and both have equally many, each node maps to its counterpart. The
        inverse is `target.map_to(self, …)`.

        Args:
            target: the other scale.
            labels: labels of any shape.

        Returns:
            Array of the same shape.
        """
        if self._has_counterparts(target):
            return np.asarray(np.interp(np.asarray(labels, dtype=float), self.values, target.values))
        low, high = self.values[0], self.values[-1]
        target_low, target_high = target.values[0], target.values[-1]
        return target_low + (target_high - target_low) * (np.asarray(labels, dtype=float) - low) / (high - low)

    def is_alike(self, target: "LabelScale") -> bool:
        """Whether [`~LabelScale.map_to`] changes nothing."""
        if self._has_counterparts(target):
            return self.values == target.values
        return (self.values[0], self.values[-1]) == (target.values[0], target.values[-1])

    def _has_counterparts(self, target: "LabelScale") -> bool:
        is_even = are_evenly_spaced(self.values) and are_evenly_spaced(target.values)
        return len(self.values) == len(target.values) and not is_even

    def spans(self, labels: Sequence[float] | np.ndarray) -> bool:
        """Whether every label lies on the scale, between its ends."""
        given = np.asarray(labels, dtype=float)
        return bool(((given >= self.values[0]) & (given <= self.values[-1])).all())

    def __str__(self) -> str:
        return nodes_in_words(self.values)


def nodes_in_words(values: Sequence[float], separator: str = " ") -> str:
    """The nodes of a scale, or the ends and the step of a long even one."""
    if len(values) > MAX_LISTED_NODES and are_evenly_spaced(values):
        return f"{values[0]:g} to {values[-1]:g} in steps of {values[1] - values[0]:g}"
    return separator.join(f"{value:g}" for value in values)


STS_SCALE = LabelScale((0.0, 1.0, 2.0, 3.0, 4.0, 5.0))
SICK_SCALE = LabelScale((1.0, 2.0, 3.0, 4.0, 5.0))
UNIT_SCALE = LabelScale((0.0, 0.2, 0.4, 0.6, 0.8, 1.0))  # STS divided by five
NLI_SCALE = LabelScale((0.0, 1.0, 2.0), ("contradiction", "neutral", "entailment"))


@dataclass(frozen=True)
class ParsedLabels:
    """
    Labels as numbers.

    Attributes:
        values: the labels; `None` for a pair on whose class annotators did not agree.
        problems: descriptions of bad labels, by the number of the row.
        scale: [`NLI_SCALE`] if the labels are its names.
        has_decimal_commas: whether labels are written as "0,75".
    """

    values: list[float | None]
    problems: dict[int, str]
    scale: LabelScale | None
    has_decimal_commas: bool = False


def without_repeated_names(names: Iterable[str]) -> list[str]:
    """Names of grades as first written, without those that differ from an earlier one in case only."""
    by_folded: dict[str, str] = {}
    for name in names:
        by_folded.setdefault(name.casefold(), name)
    return list(by_folded.values())


def is_blank(label: Any) -> bool:
    """Whether a label is missing: null, or a text without a character."""
    return label is None or (isinstance(label, str) and not label.strip())


def parse_labels(labels: Sequence[Any], grades: Mapping[str, float] | None, is_nli: bool) -> ParsedLabels:
    """
    Parses labels: numbers, truth values, names of grades, or classes of natural language inference (NLI).

    Args:
        labels: raw labels of any type, each different one once or more often.
        grades: names that labels may have, and their values. Case is ignored unless it distinguishes two names.
        is_nli: whether the columns belong to an NLI data set; "-" and -1 then mean no label. They also do if the other
            labels are names of NLI classes. Beside numbers other than 0, 1 and 2, -1 is a number, too.

    Raises:
        ValueError: for numbers of NLI classes if it is unclear which of them is entailment.
    """
    classes = dict(zip(NLI_SCALE.names or (), NLI_SCALE.values, strict=True))
    if grades is None:
        labels = _truth_values_as_numbers(labels)
    readable, comma_problems = _without_decimal_commas(labels, grades or {})
    numbers = [parse_number(label) for label in readable]
    names = [_grade_name(label, *number) for label, number in zip(readable, numbers, strict=True)]
    used = {name for label, name in zip(labels, names, strict=True) if not is_blank(label)} - set(NO_CLASS_NAMES)
    scale = None
    if used and (grades is None or set(grades) == set(classes)) and {name.casefold() for name in used} <= set(classes):
        scale = NLI_SCALE if grades is None else None
        grades, names = grades or classes, [name.casefold() for name in names]  # SICK writes them in capitals
    elif is_nli and used <= {"0", "1", "2"} and "2" in used and not used <= set(grades or ()):
        raise ValueError(
            "labels 0, 1, 2 of premise and hypothesis are ambiguous. If 0 means entailment, as in most data sets, "
            "give `--grade_names 2 1 0` (lowest grade first). If 2 means entailment, give `--grade_names 0 1 2`."
        )
    elif is_nli and used <= {"0", "1"} and "-1" in names and "-1" not in (grades or {}):
        raise ValueError(
            "labels -1, 0, 1 of premise and hypothesis are ambiguous. If -1 means that a pair has no label, remove "
            "such pairs. If it is the lowest grade, give `--grade_names -1 0 1`."
        )
    numbered = {name for name in used if parse_number(name)[1] is None}
    missing = NO_CLASS_NAMES if numbered <= {"0", "1", "2"} else (NO_CLASS,)
    may_be_missing = is_nli or scale is not None
    # "2.0" is the grade called "2". If names of grades are numbers other than their values, 1.5 would be neither.
    values_of_names = {_grade_name(name, *parse_number(name)): value for name, value in (grades or {}).items()}
    folded = {name.casefold(): value for name, value in values_of_names.items()}
    if len(folded) == len(values_of_names):  # no two names differ in case only
        values_of_names, names = folded, [name.casefold() for name in names]
    renumbered = any(parse_number(name) not in ((value, None), NO_NUMBER) for name, value in values_of_names.items())
    values: list[float | None] = []
    problems = {}
    for row, (name, label, (value, problem)) in enumerate(zip(names, labels, numbers, strict=True)):
        if is_blank(label):
            problems[row] = "is empty"
            values.append(None)
        elif name in values_of_names:
            values.append(values_of_names[name])
        elif may_be_missing and name in missing:
            values.append(None)
        else:
            if grades is not None and (problem == NOT_A_NUMBER or (problem is None and renumbered)):
                problem = f"{NOT_ONE_OF} {', '.join(map(repr, grades))}"
            if problem is not None:
                problems[row] = f"is {label!r:.40}, {problem}"
            values.append(value)
    has_decimal_commas = readable is not labels
    return ParsedLabels(values, problems | comma_problems, scale, has_decimal_commas)


def _truth_values_as_numbers(labels: Sequence[Any]) -> Sequence[Any]:
    """The labels with 1 for true and 0 for false if all are truth values, as texts or not; else as they are."""
    names = ["" if is_blank(label) else str(label).strip().casefold() for label in labels]
    if not set(names) - {""} <= TRUTH_VALUES.keys():
        return labels
    return [TRUTH_VALUES.get(name, label) for name, label in zip(names, labels, strict=True)]


def _without_decimal_commas(
    labels: Sequence[Any], grades: Mapping[str, float]
) -> tuple[Sequence[Any], dict[int, str]]:
    """The labels with decimal points in place of commas, and descriptions of labels with ambiguous commas."""
    commas = {
        row: label
        for row, label in enumerate(labels)
        if isinstance(label, str) and "," in label and DECIMAL_COMMA.fullmatch(label) and label.strip() not in grades
    }
    if not commas:
        return labels, {}
    problem = None
    texts = (label for label in labels if isinstance(label, str) and not isinstance(label, NumberText))
    if any("." in label and parse_number(label)[1] is None for label in texts):
        problem = "with a decimal comma, where others have a point"
    elif all(map(THOUSAND_OR_FRACTION.fullmatch, commas.values())):
        problem = "a thousand in some countries and a fraction in others"
    if problem is not None:
        return labels, {row: f"is {label!r:.40}, {problem}" for row, label in commas.items()}
    return [commas[row].replace(",", ".") if row in commas else label for row, label in enumerate(labels)], {}


def _grade_name(label: Any, value: float, problem: str | None) -> str:
    """The name of a label as a grade: 2, "2.0" and "02" are called "2"."""
    if problem is None:
        return f"{value + 0:.0f}" if value.is_integer() else repr(value)
    return label.strip() if isinstance(label, str) else str(label)


def parse_number(label: Any) -> tuple[float, str | None]:
    """The label as a number, and a description of the problem if it is not a finite number."""
    if isinstance(label, bool | bytes) or (isinstance(label, str) and "_" in label):  # Python reads 1_000 as a number
        return NO_NUMBER
    try:
        value = float(label)
    except (TypeError, ValueError):
        return NO_NUMBER
    except OverflowError:
        value = math.inf
    return value, None if math.isfinite(value) else "not a finite number"


def infer_scale(labels: Sequence[float] | np.ndarray) -> LabelScale:
    """
    Guesses the label scale from labels.

    Whole numbers give every number from the lowest to the highest, or every tenth if all are multiples of ten, and so
    on for other steps, see [`_step`]. Fractions that divide 0-1 evenly, such as 0, 0.5 and 1, or 0, 0.33, 0.67 and 1,
    give these fractions, and so they do if one is missing: 0.25, 0.5, 0.75 and 1. Others within 0-1 give 0, 0.2, … 1,
    the six grades of STS-B divided by five. Other fractions give the whole numbers around them. Labels that look like
    percentages, 16 to 97.5 or 10, 30 and 90 for example, give 0, 1, … 100, or 0, 10, … 100.

    Raises:
        ValueError: if the scale would have more than 101 nodes, or only one.
    """
    values = np.unique(np.asarray(labels, dtype=float))
    low, high = values[[0, -1]].tolist()
    if low >= 0 and high <= 1 and not np.isin(values, [0, 1]).all():
        return _even_fractions(values) or UNIT_SCALE
    step = _step(values)
    if _are_percentages(values, step):
        low, high = 0, 100
    if high - low < step * MAX_GUESSED_NODES and max(-low, high) <= MAX_GUESSED_GRADE:
        nodes = range(math.floor(low), math.ceil(high) + 1, step)
        if 2 <= len(nodes) <= MAX_GUESSED_NODES:
            return LabelScale(tuple(float(node) for node in nodes))
    if low == high:
        raise ValueError(
            f"all labels are {low:g}, so their scale cannot be guessed. Give it, the lowest grade first, for example "
            "`--label_values 0 1`."
        )
    raise ValueError(
        f"no scale of grades is apparent from labels between {low:g} and {high:g}. Give the grades, for example "
        f"`--label_values {' '.join(_example_nodes(low, high))}`."
    )


def _example_nodes(low: float, high: float) -> list[str]:
    """About six nodes in even steps, from a round number up to the lowest label to one from the highest on."""
    exponent = math.floor(math.log10(high / 10 - low / 10))  # the range itself may exceed the largest number
    while True:
        for digits in ROUND_STEPS:
            step = digits * 10.0**exponent
            nodes = [f"{step * place:g}" for place in range(math.floor(low / step), math.ceil(high / step) + 1)]
            holds_all = float(nodes[0]) <= low and high <= float(nodes[-1])  # as they are written
            if holds_all and len(set(nodes)) == len(nodes) <= MAX_EXAMPLE_NODES:
                return nodes
        exponent += 1


def _even_fractions(labels: np.ndarray) -> LabelScale | None:
    """
    The scale of different labels that divide 0-1 evenly, up to the rounding of their last decimal; else `None`.

    One of its nodes may be unused, and more from four labels on.
    """
    if not 1 < len(labels) <= MAX_GUESSED_FRACTIONS:
        return None
    decimals = max(-int(Decimal(repr(label)).as_tuple().exponent) for label in labels.tolist())
    for parts in (len(labels) - 1, *USUAL_PARTS):
        # If every node is used, 0.2 stands for 0.25, too.
        rounding = 0.5001 * 10.0**-decimals if decimals > 1 or parts == len(labels) - 1 else 0
        scale = _scale_of_parts(labels, parts, rounding, decimals)
        if scale is not None and len(labels) >= min(parts, FEWEST_FRACTIONS):
            return scale
    return None


def _scale_of_parts(labels: np.ndarray, parts: int, rounding: float, decimals: int) -> LabelScale | None:
    """The ends of equal parts of 0-1 as the labels write them, if different labels are different ends; else `None`."""
    ends = np.arange(parts + 1) / parts
    places = np.rint(labels * parts).astype(int)
    error = np.abs(labels - ends[places]).max()
    if error > max(FRACTION_TOLERANCE, rounding) or len(np.unique(places)) < len(labels):
        return None
    if error > FRACTION_TOLERANCE:
        ends = ends.round(decimals)
        ends[places] = labels
    return LabelScale(tuple(ends.tolist()))


def _step(labels: np.ndarray) -> int:
    """
    The largest step that leads from the lowest of different labels to all others: 20 for 0, 40 and 100.

    It is 1 for fractions, and for labels that span no more than ten: 0, 2 and 4 are probably grades of the scale 0, 1,
    2, 3, 4. Labels of -1 and 1 alone are two grades.
    """
    if labels.tolist() == [-1, 1]:
        return 2
    if not MIN_STEPPED_SPAN < np.ptp(labels) <= 2 * MAX_GUESSED_GRADE or (labels % 1 != 0).any():
        return 1
    return int(np.gcd.reduce((labels - labels.min()).astype(np.int64)))


def _are_percentages(labels: np.ndarray, step: int) -> bool:
    """Whether different labels with this step look like percentages."""
    low, high = labels[[0, -1]].tolist()
    if step == 1:
        return bool(0 <= low and high - low > MIN_STEPPED_SPAN and LOW_PERCENTAGE < high <= 100)
    is_usual = step in PERCENTAGE_STEPS and (labels % step == 0).all()
    return bool(is_usual and 0 <= low and LOW_STEPPED_PERCENTAGE < high <= 100)


def usual_range(labels: Sequence[float] | np.ndarray) -> tuple[float, float]:
    """
    The lowest and the highest label that is not an outlier.

    Outliers are at most 1 % of the labels at one end, or one of ten labels or more, beyond a gap at least half as wide
    as the range of the rest. They may be up to 10 % of the labels if they are one value, which is -1, 9 or the like,
    or lies beyond a gap wider than this range. If all labels are whole numbers, the gap must skip at least one. A
    label that continues the even steps of the rest, such as 99 beyond 0, 33 and 66, is no outlier.
    """
    ordered = np.sort(np.asarray(labels, dtype=float))
    is_code = [CODES.fullmatch(f"{end:g}") is not None for end in ordered[[0, -1]]]
    return -_usual_end(-ordered[::-1], is_code[0]), _usual_end(ordered, is_code[1])


def _usual_end(ordered: np.ndarray, is_code: bool) -> float:
    """The highest of sorted labels that is not an outlier; `is_code` tells that the last may mean "not rated"."""
    few, many = max(1, int(OUTLYING_SHARE * len(ordered))), int(REPEATED_SHARE * len(ordered))
    narrowest = 2 if (ordered % 1 == 0).all() else 0
    for last in range(len(ordered) - many - 1, len(ordered) - 1):
        gap, rest = ordered[last + 1] - ordered[last], ordered[last] - ordered[few]
        is_repeated = ordered[last + 1] == ordered[-1] and rest > 0 and (is_code or gap > rest)
        is_far = gap > 0 and gap >= max(narrowest, rest / 2) and (len(ordered) - 1 - last <= few or is_repeated)
        if is_far and not _are_steps(ordered[: last + 2]):
            return float(ordered[last])
    return float(ordered[-1])


def _are_steps(labels: np.ndarray) -> bool:
    """Whether labels are evenly spaced, with three different ones or more."""
    different = np.unique(labels)
    return len(different) > 2 and are_evenly_spaced(different.tolist())
