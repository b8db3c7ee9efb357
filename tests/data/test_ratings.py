"""Several raters of the same pairs: means as labels, the agreement of the raters, and the noise ceiling."""

import json
import logging
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import Dataset

import run_sts
from sts_regression.data.columns import PairColumns
from sts_regression.data.data_report import rating_lines, report_findings
from sts_regression.data.pairs import given_pairs, read_pairs
from sts_regression.data.ratings import Agreement, measure_agreement
from sts_regression.data.splits import Splits, load_splits
from sts_regression.options.data_arguments import DataArguments
from sts_regression.training.run_record import describe_pairs

RATERS = ["rater1", "rater2", "rater3"]
NAN = math.nan
HEADER = "sentence1,sentence2,rater1,rater2,rater3\n"


def write(folder: Path, lines: str, name: str = "rated.csv") -> str:
    path = folder / name
    path.write_text(HEADER + lines, encoding="utf-8")
    return str(path)


def load(train_file: str, **options: Any) -> Splits:
    return load_splits(DataArguments(train_file=[train_file], **options), PairColumns(label=RATERS), None)


def test_the_label_is_the_mean_of_the_ratings_that_are_there(tmp_path: Path) -> None:
    found = read_pairs(write(tmp_path, "a,b,0,1,2\nc,d, ,2,3\ne,f,,,\ng,h,4,,\n"), PairColumns(label=RATERS))
    assert found.pairs["label"] == [1.0, 2.5, 4.0]
    assert (found.pairs["line"], found.num_unlabelled, found.raters) == ([2, 3, 5], 1, tuple(RATERS))
    assert found.pairs["ratings"] == [[0, 1, 2], [None, 2, 3], [4, None, None]]


def test_of_one_name_that_a_file_has_labels_are_read_as_before(tmp_path: Path) -> None:
    found = read_pairs(write(tmp_path, "a,b,0,1,2\nc,d,3,2,3\n"), PairColumns(label=["absent", "rater2"]))
    assert (found.pairs["label"], found.raters) == ([1.0, 2.0], ())
    assert "ratings" not in found.pairs.column_names


def test_missing_ratings_of_data_at_hand_are_none_or_nan() -> None:
    columns = {"sentence1": ["a", "c"], "sentence2": ["b", "d"], "rater1": [1.0, NAN], "rater2": [None, 3.0]}
    found = given_pairs("pairs", Dataset.from_dict(columns), PairColumns(label=RATERS))
    assert found.pairs["label"] == [1.0, 3.0]


def test_a_mean_of_equal_ratings_is_that_rating(tmp_path: Path) -> None:
    found = read_pairs(write(tmp_path, "a,b,0.1,0.1,0.1\nc,d,0.7,0.7,0.7\n"), PairColumns(label=RATERS))
    assert found.pairs["label"] == [0.1, 0.7]


@pytest.mark.parametrize(
    ("lines", "columns", "message"),
    [
        ("a,b,0,x,2\n", PairColumns(label=RATERS), r"line 2: `rater2` is 'x', not a number"),
        ("a,b,0,nan,2\n", PairColumns(label=RATERS), r"line 2: `rater2` is 'nan', not a finite number"),
        ("a,b,neutral,1,2\n", PairColumns(label=RATERS), r"line 2: `rater1` is 'neutral', not a number"),
        ('a,b,"0,5",1.5,2\n', PairColumns(label=RATERS), r"`rater1` is '0,5', with a decimal comma, where others"),
        ("a,b,,,\n", PairColumns(label=RATERS), r"holds no pairs"),
        ("a,b,1,2,3\n", PairColumns(label=["rater1", "sentence1"]), r"must be different columns"),
    ],
)
def test_bad_ratings_are_named_by_line_and_column(
    tmp_path: Path, lines: str, columns: PairColumns, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        read_pairs(write(tmp_path, lines), columns)


def test_marks_of_missing_ratings_are_to_be_left_blank(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"remove these lines\. Leave missing ratings blank\.$"):
        read_pairs(write(tmp_path, "a,b,0,-,2\nc,d,1,1,n/a\n"), PairColumns(label=RATERS))
    with pytest.raises(ValueError, match=r"Found: '-'\. Leave missing ratings blank\.$"):
        read_pairs(write(tmp_path, "a,b,-,-,2\n"), PairColumns(label=RATERS))
    with pytest.raises(ValueError, match=r"remove these lines\.$"):
        read_pairs(write(tmp_path, "a,,1,1,2\n"), PairColumns(label=RATERS))


@pytest.mark.parametrize(("number", "told"), [(1, "1 pair without a label is"), (2, "2 pairs without a label are")])
def test_pairs_that_nobody_rated_are_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, number: int, told: str
) -> None:
    path = write(tmp_path, "a,b,0,1,2\n" + "c,d,,,\n" * number)
    with caplog.at_level("INFO"):
        assert read_pairs(path, PairColumns(label=RATERS)).num_unlabelled == number
    assert caplog.messages == [f"{path}: {told} left out"]


def test_named_grades_of_several_raters_are_averaged(tmp_path: Path) -> None:
    path = write(tmp_path, "a,b,low,high,high\nc,d,mid,,mid\ne,f,low,low,low\n")
    grades = {"low": 0.0, "mid": 1.0, "high": 2.0}
    assert read_pairs(path, PairColumns(label=RATERS), grades).pairs["label"] == [4 / 3, 1.0, 0.0]
    nli = write(tmp_path, "a,b,neutral,entailment,-\nc,d,contradiction,-,-1\n", "nli.csv")
    assert read_pairs(nli, PairColumns(label=RATERS)).pairs["label"] == [1.5, 0.0]


def test_the_scale_is_guessed_from_ratings_and_not_from_their_means(tmp_path: Path) -> None:
    lines = "".join(f"a{i},b{i},{i % 2},{(i + 1) % 2 if i % 3 else i % 2},{i % 2}\n" for i in range(60))
    splits = load(write(tmp_path, lines))
    assert splits.scale is not None
    assert splits.scale.values == (0.0, 1.0)
    assert set(splits.pairs["train"]["label"]) == {0, 1 / 3, 2 / 3, 1}


def test_a_rating_outside_the_scale_is_refused_where_its_mean_lies_on_it(tmp_path: Path) -> None:
    path = write(tmp_path, "a,b,0,1,9\n" + "c,d,0,1,2\n" * 60)
    with pytest.raises(ValueError, match=r"1 of 183 labels lie outside the scale 0 to 5 \(9 in line 2\)"):
        load(path, label_values=[0, 1, 2, 3, 4, 5])


# How far raters agree


def test_alpha_is_that_of_krippendorffs_example() -> None:
    ratings = np.array(
        [
            [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
            [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
            [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
            [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
        ]
    ).T
    agreement = measure_agreement(ratings)
    assert agreement is not None
    assert (agreement.raters, agreement.pairs) == (4, 11)
    assert agreement.krippendorff_alpha == pytest.approx(0.849, abs=5e-4)


def test_agreement_of_two_raters_by_hand() -> None:
    # Two neighbours swapped: 1 - 6·2 / (4·15). Within pairs Σ 2·m/(m−1)·Σ(x−mean)² = 4·(½ + ½) over 8 ratings, and
    # between all ratings 2·Σ(x−mean)²/7 = 2·10/7.
    agreement = measure_agreement(np.array([[0, 0], [1, 2], [2, 1], [3, 3]], dtype=float))
    assert agreement is not None
    assert agreement.spearman == pytest.approx(0.8)
    assert agreement.krippendorff_alpha == pytest.approx(1 - (4 / 8) / (20 / 7))
    assert agreement.ceiling_lower == pytest.approx(0.8)
    assert agreement.ceiling_upper == pytest.approx(math.sqrt(2 * 0.8 / 1.8))


def test_each_rater_is_held_against_the_mean_of_the_others() -> None:
    ratings = np.array([[0, 0, 0], [1, 1, 2], [2, 2, 1], [3, 3, 3]], dtype=float)
    agreement = measure_agreement(ratings)
    assert agreement is not None
    assert agreement.spearman == pytest.approx((1 + 0.8 + 0.8) / 3)
    # The first two against means 0, 1.5, 1.5, 3, where ranks 2 and 3 are tied; the third against 0, 1, 2, 3.
    assert agreement.ceiling_lower == pytest.approx((2 * math.sqrt(0.9) + 0.8) / 3)
    single = (1 + 0.8 + 0.8) / 3
    assert agreement.ceiling_upper == pytest.approx(math.sqrt(3 * single / (1 + 2 * single)))


def test_the_ceiling_holds_a_model_that_knows_the_truth() -> None:
    generator = np.random.default_rng(0)
    truth = generator.normal(size=4000)
    agreement = measure_agreement(truth[:, None] + generator.normal(size=(4000, 3)))
    assert agreement is not None
    # The mean of three ratings has the reliability 1 / (1 + 1/3), Pearson's ceiling √0.75; Spearman's is a bit lower.
    assert agreement.ceiling_upper == pytest.approx(math.sqrt(0.75), abs=0.02)
    assert agreement.ceiling_lower is not None
    assert agreement.ceiling_upper is not None
    assert agreement.ceiling_lower < agreement.ceiling_upper


def test_what_is_undefined_is_left_out() -> None:
    assert measure_agreement(np.array([[1, NAN], [NAN, 2]])) is None
    assert measure_agreement(np.ones((2, 2))) == Agreement(2, 2, None, None, None, None)
    opposed = measure_agreement(np.array([[0.0, 1.0], [1.0, 0.0]]))
    assert opposed is not None
    assert (opposed.spearman, opposed.ceiling_lower) == pytest.approx((-1, -1))
    assert opposed.krippendorff_alpha == pytest.approx(-0.5)
    assert opposed.ceiling_upper is None


# The printed sentences


def rated_file(folder: Path) -> str:
    generator = np.random.default_rng(1)
    truth = generator.integers(0, 6, 80)
    ratings = np.clip(truth[:, None] + generator.integers(-1, 2, (80, 3)), 0, 5)
    return write(folder, "".join(f"a{i},b{i},{','.join(map(str, row))}\n" for i, row in enumerate(ratings)))


def test_the_report_says_who_rated_and_what_can_be_reached(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = rated_file(tmp_path)
    splits = load(path)
    train, held_out = rating_lines(splits)
    agreement = measure_agreement(np.array(splits.sets["train"][0].pairs["ratings"], dtype=float))
    assert agreement is not None
    assert train.startswith(f"{path}: labels are means of 3 raters (`rater1`, `rater2`, `rater3`)")
    assert f"Spearman {agreement.spearman:.2f}" in train
    assert f"Krippendorff's alpha for interval data {agreement.krippendorff_alpha:.2f}" in train
    assert f"between {agreement.ceiling_lower:.2f} and {agreement.ceiling_upper:.2f}" in train
    assert held_out.startswith(f"20 % of {path}: labels are means")
    caplog.set_level(logging.INFO)
    report_findings([], True, [train])  # no finding: `strict` has nothing against raters
    assert caplog.messages[-1] == f"\nData report\n- {train}\n"


def test_a_single_rating_of_each_pair_measures_no_agreement(tmp_path: Path) -> None:
    lines = "".join(f"a{i},b{i},{i % 3},,\n" for i in range(60))
    assert rating_lines(load(write(tmp_path, lines)))[0].endswith("No pair has two ratings, so agreement is unknown.")


def test_the_record_has_the_agreement_of_each_set(tmp_path: Path) -> None:
    splits = load(rated_file(tmp_path))
    [part] = describe_pairs(splits.pairs["train"], splits.sets["train"])["parts"]
    assert set(part["agreement"]) == {
        *("raters", "pairs", "spearman", "krippendorff_alpha", "ceiling_lower", "ceiling_upper"),
    }
    assert (part["agreement"]["raters"], part["agreement"]["pairs"]) == (3, len(splits.pairs["train"]))


def test_a_rater_on_another_scale_is_a_finding(tmp_path: Path) -> None:
    lines = "".join(f"a{i},b{i},{i % 6 * 20},{i % 6},{i % 6 * 20}\n" for i in range(60))
    found = read_pairs(write(tmp_path, lines), PairColumns(label=RATERS))
    assert found.notes == (
        "the ratings of `rater2` lie between 0 and 5, those of all raters between 0 and 100. Are they on one scale?",
    )


def test_a_run_records_raters_and_queries_and_names_them_in_its_card(tiny_encoder_path: Path, tmp_path: Path) -> None:
    generator = np.random.default_rng(2)
    files = {}
    for split in ("train", "validation"):
        lines = [
            f"{split} {i // 6},the {split} {i},{','.join(map(str, generator.integers(0, 3, 3)))}\n" for i in range(60)
        ]
        files[split] = write(tmp_path, "".join(lines), f"{split}.csv")
    run = tmp_path / "run"
    run_sts.run_stages(
        [
            *(f"--model_name_or_path={tiny_encoder_path}", f"--output_dir={run}", "--label_column", *RATERS),
            *(f"--{split}_file={path}" for split, path in files.items()),
            *("--do_train", "--max_steps=2", "--report_to=none", "--disable_tqdm=true", "--cpu_threads=1"),
        ]
    )
    record = json.loads((run / "run.json").read_bytes())
    assert record["data"]["train"]["parts"][0]["agreement"]["raters"] == 3
    assert record["data"]["train"]["parts"][0]["label_scale"] == [0, 1, 2]
    measures = record["results"]["after training"]["validation"]
    assert 0 < measures["ndcg@10_head"] <= 1
    assert f"| `ndcg@10_cosine` | {measures['ndcg@10_cosine']:.4f} |" in (run / "README.md").read_text()
