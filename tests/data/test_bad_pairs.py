"""Pairs with which something is wrong: each file ends in one clear error, or in a sentence of the data report."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from transformers import PreTrainedTokenizerBase

from sts_regression.command.arguments import parse_stages
from sts_regression.configuration_sts_regression import STSRegressionConfig
from sts_regression.data.columns import PairColumns
from sts_regression.data.data_report import data_findings, report_findings
from sts_regression.data.labels import usual_range
from sts_regression.data.pairs import read_pairs
from sts_regression.preparation import Inputs, read_inputs

Row = tuple[str, str, object]
Read = Callable[..., Inputs]

WORDS = ("cat", "dog", "man", "park", "water", "big", "red")


def rows(labels: Sequence[object], mark: str = "the") -> list[Row]:
    """Pairs of different texts with these labels."""
    return [(f"{mark} {WORDS[i % 7]} {i}", f"a {WORDS[i % 5]} {i}", label) for i, label in enumerate(labels)]


def grades(number: int, count: int = 3) -> list[int]:
    return [i % count for i in range(number)]


@pytest.fixture
def read(tiny_encoder_path: Path, tmp_path: Path) -> Read:
    def read_files(train: Sequence[Row], validation: Sequence[Row] | None = None, *options: str) -> Inputs:
        files = {"train": train} | ({} if validation is None else {"validation": validation})
        words = [f"--model_name_or_path={tiny_encoder_path}", f"--output_dir={tmp_path / 'run'}", "--do_train"]
        for split, pairs in files.items():
            path = tmp_path / f"{split}.csv"
            lines = [",".join(map(str, row)) for row in [("sentence1", "sentence2", "label"), *pairs]]
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
            words.append(f"--{split}_file={path}")
        return read_inputs(parse_stages([*words, *options])[0])  # the first training reports on the pairs

    return read_files


@pytest.mark.parametrize(
    ("train", "validation", "message"),
    [
        pytest.param(rows([1]), None, r"train\.csv: holds one pair, so there is nothing to rank", id="one pair"),
        pytest.param(
            *(rows(grades(9)), None, r"train\.csv: 9 pairs are too few to hold out 5 of them.*`--validation_file`"),
            id="nine pairs",
        ),
        pytest.param(rows([2] * 50), None, r"train\.csv: all 50 labels are 2, so there", id="one grade"),
        pytest.param(
            rows(grades(50)),
            rows([2] * 9, "one"),
            r"validation\.csv: all 9 labels are 2, so there",
            id="one dev grade",
        ),
        pytest.param(
            [("the cat", "the cat", i % 3) for i in range(50)],
            *(None, r"train\.csv: in every pair, both texts are equal.*`--sentence2_column`"),
            id="one text",
        ),
        pytest.param(
            [(f"the cat {i}", f"the cat {i}", i % 3) for i in range(50)],
            *(None, r"train\.csv: in every pair, both texts are equal"),
            id="equal within pairs",
        ),
        pytest.param(
            [("the cat", "a dog", i % 3) for i in range(50)],
            *(None, r"train\.csv: all 50 pairs have the same two texts"),
            id="one pair over and over",
        ),
        pytest.param(
            rows([*grades(500), -999]),
            None,
            r"train\.csv: no scale of grades is apparent from labels between -999 and 2\. Give the grades, .* "
            r"1 of 501 labels \(-999 in line 502\) lies far from all others, which lie between 0 and 2\.",
            id="code",
        ),
        pytest.param(rows(["", *grades(50)]), None, r"line 2: `label` is empty", id="blank"),
    ],
)
def test_pairs_that_cannot_be_trained_on_are_one_error(
    read: Read, train: list[Row], validation: list[Row] | None, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        read(train, validation)


DEVELOPMENT = rows(grades(40), "one")
OUTLIER = (
    "train.csv: the label scale 0 to 7 is guessed, and 1 of 3,001 labels (7 in line 3002) lies far from all others, "
    "which lie between 0 and 2. Correct or remove such pairs, or give the scale with "
    "`--label_values`."
)
NARROW = (
    "validation.csv: labels 0 to 3 are read on the label scale 0 1 2 3 4 5, but the training labels extend further. "
    "`--label_ranges validation.csv=0:3` names another scale, `--label_ranges validation.csv=0:5` this one."
)
NOT_RATED = (
    "train.csv: the label scale -1 to 2 is guessed, and 4 of 94 labels (-1 in line 92, -1 in line 93, -1 in line 94) "
    'may mean "not rated". Correct or remove such pairs, or give the scale with `--label_values`.'
)
NAMES = ("low", "medium", "high")


@pytest.mark.parametrize(
    ("train", "validation", "options", "expected"),
    [
        pytest.param(
            rows([*grades(3000), 7]),
            None,
            [],
            [OUTLIER, "1 of the grades has a single training pair (7 in line 3002)."],
            id="an outlier",
        ),
        pytest.param(
            *(rows([*grades(3000), *[7] * 20]), None, ["--label_values", *map(str, range(8))], []),
            id="an outlier that is meant",
        ),
        pytest.param(
            rows([*grades(400), -9, 40, 40]),
            None,
            [],
            [
                "train.csv: the label scale -9 to 40 is guessed, and 3 of 403 labels (-9 in line 402, 40 in line 403, "
                "40 in line 404) lie far from all others, which lie between 0 and 2. Correct or remove such pairs, or "
                "give the scale with `--label_values`."
            ],
            id="outliers at both ends",
        ),
        pytest.param(rows([*grades(90), *[-1] * 4]), DEVELOPMENT, [], [NOT_RATED], id="a code below the lowest grade"),
        pytest.param(
            *(rows([*grades(90), *[-1] * 4]), DEVELOPMENT, ["--label_values", "-1", "0", "1", "2"], []),
            id="a lowest grade that is meant",
        ),
        pytest.param(rows([*grades(90), *[-1] * 40]), None, [], [], id="a lowest grade that is usual"),
        pytest.param(
            *(rows(grades(600, 6)), rows([round(3 * grade / 5) for grade in grades(60, 6)], "one"), [], [NARROW]),
            id="development pairs on a narrower scale",
        ),
        pytest.param(
            rows(grades(600, 6)),
            rows(grades(20, 2), "one"),
            ["--label_values", *map(str, range(6))],
            [NARROW.replace("0 to 3", "0 to 1").replace("0:3", "0:1")],
            id="development pairs with two grades of six",
        ),
        pytest.param(
            *(rows(grades(600, 6)), rows(grades(60, 4), "one"), ["--label_ranges", "validation.csv=0:5"], []),
            id="a scale of development pairs that is stated",
        ),
        pytest.param(
            rows([0, 0, *(1 + grade for grade in grades(600, 5))]),
            *(rows([(1 + grade) / 5 for grade in grades(60, 5)], "one"), [], []),
            id="development pairs that are mapped from another scale",
        ),
        pytest.param(
            *(rows([*grades(590, 5), *[5] * 10]), rows(grades(60, 5), "one"), [], []),
            id="a rare grade that is missing",
        ),
        pytest.param(
            rows([i % 51 / 10 for i in range(510)]),
            rows([i % 46 / 10 for i in range(230)], "one"),
            [],
            [],
            id="labels that nearly reach the end",
        ),
        pytest.param(
            rows([NAMES[grade] for grade in grades(60)]),
            rows([NAMES[grade] for grade in grades(60, 2)], "one"),
            ["--grade_names", *NAMES],
            [],
            id="named grades",
        ),
        pytest.param(rows(grades(10)), DEVELOPMENT, [], [], id="ten pairs"),
        pytest.param(
            rows([*grades(60, 2), 2]),
            DEVELOPMENT,
            [],
            ["1 of the grades has a single training pair (2 in line 62)."],
            id="a grade with one example",
        ),
        pytest.param(
            rows([*(round(grade / 3, 4) for grade in grades(60, 3)), 1]),
            rows([0, 1] * 20, "one"),
            [],
            ["1 of the grades has a single training pair (1 in line 62)."],
            id="a grade in thirds with one example",
        ),
        pytest.param(
            rows([0] * 540 + grades(60)),
            DEVELOPMENT,
            [],
            ["560 of 600 training pairs have the label 0. Judge the model by correlations, not by accuracy."],
            id="90 % of one grade",
        ),
        pytest.param(
            rows([NAMES[0]] * 540 + [NAMES[grade] for grade in grades(60)]),
            rows([NAMES[grade] for grade in grades(40)], "one"),
            ["--grade_names", *NAMES],
            ["560 of 600 training pairs have the label 'low'. Judge the model by correlations, not by accuracy."],
            id="90 % of one named grade",
        ),
    ],
)
def test_pairs_that_look_odd_are_trained_on_and_told(
    read: Read,
    tokenizer: PreTrainedTokenizerBase,
    tmp_path: Path,
    train: list[Row],
    validation: list[Row] | None,
    options: list[str],
    expected: list[str],
) -> None:
    inputs = read(train, validation, *options)
    found = data_findings(inputs.splits.put_together(), tokenizer, STSRegressionConfig())
    found = [finding.replace(f"{tmp_path}/", "") for finding in found]
    assert found == expected
    if expected:
        with pytest.raises(ValueError, match=f"`strict`: the data report has {len(found)} finding"):
            report_findings(found, strict=True)


def test_a_loss_that_takes_every_pair_for_a_positive_has_no_grades_to_miss(
    read: Read, tokenizer: PreTrainedTokenizerBase
) -> None:
    inputs = read(rows(grades(60)), rows(grades(40), "one"), "--loss=info_nce")
    assert data_findings(inputs.splits, tokenizer, STSRegressionConfig(loss_type="info_nce")) == []


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([*grades(1000), 7], (0, 2)),
        ([*grades(1000), 3], (0, 3)),  # a grade of its own
        ([*grades(99), 7], (0, 2)),
        ([*grades(90), 7, 7], (0, 2)),  # more than 1 %, but one value far off
        ([*grades(90), 7, 8], (0, 8)),
        ([*grades(80, 5), 45], (0, 4)),  # one label is more than 1 %
        ([*grades(9), 45], (0, 2)),
        ([*grades(8), 45], (0, 45)),  # few labels show no range
        *(([*grades(300, 5), *[code] * 9], (0, 4)) for code in (99, 9, -9, -99, 999)),
        ([*[1 + grade for grade in grades(300, 5)], *[-1] * 9], (1, 5)),
        ([*grades(300, 5), *[7] * 9], (0, 7)),  # perhaps a rare grade
        ([*grades(300, 5), *[99] * 60], (0, 99)),  # more than 10 %
        ([0] * 95 + [3] * 5, (0, 3)),  # two grades
        ([*grades(1000, 101)], (0, 100)),
        ([*grades(1000, 61), 100], (0, 60)),
        ([*grades(1000, 61), 80], (0, 80)),  # a gap of less than half of the rest
        ([i / 1000 for i in range(1000)] + [1.6], (0, 0.999)),
        ([0] * 995 + [3] * 5, (0, 0)),
        ([*[33 * grade for grade in grades(91)], *[99] * 9], (0, 99)),  # the next step
        ([*[1 + 2 * grade for grade in grades(91)], *[-1] * 9], (-1, 5)),
        ([*[33 * grade for grade in grades(991)], 99, 132], (0, 132)),
        ([*[20 * grade for grade in grades(91)], *[99] * 9], (0, 40)),
        ([5, 5.5], (5, 5.5)),
    ],
)
def test_the_usual_range_leaves_out_a_few_labels_beyond_a_gap(
    labels: list[float], expected: tuple[float, float]
) -> None:
    assert usual_range(labels) == expected


def test_odd_labels_and_columns_are_shown_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    rows = [{"sentence1": "a", "sentence2": "b", "label": "low\u2028er"}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(ValueError, match=r"Found: 'low\\u2028er'\.") as refusal:
        read_pairs(path)
    assert len(str(refusal.value).splitlines()) == 1
    path.write_text(json.dumps({"x\u2028y": "a text", "z": "another text", "w": 1}) + "\n")
    with pytest.raises(ValueError, match=r"--sentence1_column 'x\\u2028y'") as refusal:
        read_pairs(path)
    assert len(str(refusal.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("labels", "hint"),
    [
        (["80%", "100 %", "0%"], "Remove the percent signs."),
        (
            ["relevant", "irrelevant", ""],
            "list them in your order: `--grade_names LOWEST … HIGHEST`. Found: 'relevant', 'irr",
        ),
    ],
)
def test_the_hint_at_labels_that_are_not_numbers(tmp_path: Path, labels: list[str], hint: str) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("sentence1,sentence2,label\n" + "".join(f"a{i},b{i},{label}\n" for i, label in enumerate(labels)))
    with pytest.raises(ValueError, match=re.escape(hint)):
        read_pairs(path)


def test_a_rater_that_a_file_lacks_is_named(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("sentence1,sentence2,rater1,rater2\na,b,1,3\nc,d,0,2\n")
    found = read_pairs(path, PairColumns(label=["rater1", "rater2", "ratr3"]))
    note = "has no column 'ratr3' of `--label_column`; labels are read from 'rater1', 'rater2'."
    assert any(note in shown for shown in found.notes)


def test_json_lines_may_lack_a_column_in_the_first_row(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    rows = [{"sentence1": "a", "sentence2": "b", "r1": 1}, {"sentence1": "c", "sentence2": "d", "r1": 0, "r2": 4}]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert read_pairs(path, PairColumns(label=["r1", "r2"])).pairs["label"][:] == [1.0, 2.0]


def test_minus_one_may_be_a_grade_of_premise_and_hypothesis(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("premise,hypothesis,label\na,b,-1\nc,d,0\ne,f,1\n")
    with pytest.raises(ValueError, match="labels -1, 0, 1 of premise and hypothesis are ambiguous"):
        read_pairs(path)
    assert read_pairs(path, grades={"-1": 0.0, "0": 1.0, "1": 2.0}).pairs["label"][:] == [0.0, 1.0, 2.0]
