"""The data report before training has one line per finding; `--strict` makes findings errors."""

import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from transformers import PreTrainedTokenizerBase

import run_sts
from sts_regression.configuration_sts_regression import STSRegressionConfig
from sts_regression.data import data_report
from sts_regression.data.columns import PairColumns
from sts_regression.data.data_report import data_findings, development_findings, report_findings, reversal_findings
from sts_regression.data.leakage import pair_keys
from sts_regression.data.pairs import read_pairs
from sts_regression.data.splits import Splits, load_splits
from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.options.data_arguments import DataArguments
from sts_regression.pipeline_sts_regression import unreliable_pairs

Row = tuple[str, str, object]

GOOD = [(f"the cat {i}", f"a dog {i}", i % 3) for i in range(40)]
OTHER = [(f"the man {i}", f"a park {i}", i % 3) for i in range(40)]


def write(path: Path, rows: Sequence[Row], header: Sequence[str] = ("sentence1", "sentence2", "label")) -> str:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
    return str(path)


def load(train_file: str, **options: Any) -> Splits:
    arguments = DataArguments(train_file=[train_file], label_values=[0, 1, 2], **options)
    return load_splits(arguments, PairColumns(), None)


@pytest.fixture
def findings(
    tokenizer: PreTrainedTokenizerBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., list[str]]:
    """`findings(train, validation=OTHER, max_length=…)`: the report on two files of pairs, without their folder."""

    def find(train: Sequence[Row], validation: Sequence[Row] = OTHER, max_length: int = 20) -> list[str]:
        files = [write(tmp_path / f"{name}.csv", rows) for name, rows in (("train", train), ("dev", validation))]
        splits = load(files[0], validation_file=[files[1]])
        monkeypatch.setattr(tokenizer, "model_max_length", max_length)
        found = data_findings(splits, tokenizer, STSRegressionConfig())
        return [finding.replace(f"{tmp_path}/", "") for finding in found]

    return find


def test_nothing_is_found_in_sound_pairs(findings: Callable[..., list[str]]) -> None:
    assert findings(GOOD) == []


def test_development_pairs_that_are_training_pairs_are_counted(findings: Callable[..., list[str]]) -> None:
    swapped = [("A dog 3!", "The cat 3", 1), ("a dog 4", "the cat 4", 0)]
    expected = "2 development pairs occur among the training pairs, so development scores are too high."
    assert findings(GOOD, [*OTHER, *swapped]) == [expected]


def test_repeated_and_contradictory_pairs_are_named_by_line(findings: Callable[..., list[str]]) -> None:
    repeated = [*GOOD, GOOD[0], ("a dog 1", "the cat 1", 2)]
    assert findings(repeated) == [
        "2 training pairs occur more than once, in one order or both (for example, lines 2, 42).",
        "1 training pair occurs with different labels (for example, 1 in line 3, 2 in line 43), 1 apart on average.",
    ]


def test_repeated_and_contradictory_test_pairs_are_named_by_line(
    tokenizer: PreTrainedTokenizerBase, tmp_path: Path
) -> None:
    tested: list[Row] = [(f"the water {i}", f"a house {i}", i % 3) for i in range(9)]
    tested += [tested[0], ("a house 1", "the water 1", 2)]
    files: dict[str, Sequence[Row]] = {"train": GOOD, "dev": OTHER, "test": tested}
    paths = [write(tmp_path / f"{name}.csv", rows) for name, rows in files.items()]
    splits = load(paths[0], validation_file=[paths[1]], test_file=[paths[2]])
    assert data_findings(splits, tokenizer, STSRegressionConfig()) == [
        "2 test pairs occur more than once, in one order or both (for example, lines 2, 11).",
        "1 test pair occurs with different labels (for example, 1 in line 3, 2 in line 12), 1 apart on average.",
    ]


def test_a_weight_of_two_repeats_no_pair(tokenizer: PreTrainedTokenizerBase, tmp_path: Path) -> None:
    files = [write(tmp_path / f"{name}.csv", rows) for name, rows in (("train", GOOD), ("dev", OTHER))]
    splits = load(files[0], validation_file=[files[1]], train_weights=[2.0])
    assert data_findings(splits, tokenizer, STSRegressionConfig()) == []


def test_two_development_pairs_are_few() -> None:
    assert development_findings(2) == ["few development pairs (2), so scores and verdict are unreliable."]
    assert development_findings(20) == []


def test_texts_that_the_model_cannot_read_are_counted(findings: Callable[..., list[str]]) -> None:
    unreadable = [("☃", "☄", 0), ("the cat " * 20, "a dog", 1), ("\u200b", "water", 2), ("a cat ☃", "a cat ☄", 2)]
    assert findings([*GOOD, *unreadable]) == [
        "train.csv: 1 of 44 pairs has a text that is truncated at 20 tokens (line 43).",
        "train.csv: 3 of 44 pairs have a text, or a difference between the texts, that is unknown to the tokenizer "
        "(lines 42, 44, 45).",
    ]


@pytest.mark.parametrize(
    ("spearman", "num_pairs", "found"),
    [
        (-0.45, 300, True),
        (-0.45, 10, False),
        (-0.15, 300, False),
        (-0.3, 30, False),
        (0.8, 300, False),
        (None, 9, False),
    ],
)
def test_labels_that_run_against_the_encoder_look_reversed(
    spearman: float | None, num_pairs: int, found: bool
) -> None:
    said = reversal_findings(spearman, num_pairs)
    assert bool(said) is found
    assert not found or "correlate at -0.45. Do high labels mean dissimilar texts?" in said[0]


def test_findings_are_printed_or_refused(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    report_findings(["one.", "two."], strict=False)
    assert caplog.messages == ["\nData report\n- one.\n- two.\n"]
    with pytest.raises(ValueError, match=r"`strict`: the data report has 2 findings\. one\. two\."):
        report_findings(["one.", "two."], strict=True)
    report_findings([], strict=True)
    assert len(caplog.messages) == 1


def test_the_command_stops_at_reversed_labels_if_it_is_to_be_strict(tiny_encoder_path: Path, tmp_path: Path) -> None:
    equal = [(f"the cat {i}", f"the cat {i}", 0) for i in range(30)]
    different = [(f"red water {i}", f"a big man and a dog {i}", 5) for i in range(30)]
    train = write(tmp_path / "train.csv", [*equal, *different])
    validation = write(tmp_path / "dev.csv", [(f"{a} too", f"{b} too", label) for a, b, label in equal + different])
    command = [
        *(f"--model_name_or_path={tiny_encoder_path}", f"--train_file={train}", f"--validation_file={validation}"),
        *("--label_values", "0", "1", "2", "3", "4", "5", f"--output_dir={tmp_path / 'run'}", "--report_to=none"),
        *("--strict", "--disable_tqdm=true", "--cpu_threads=1"),
    ]
    with pytest.raises(ValueError, match="Do high labels mean dissimilar texts"):
        run_sts.run_stages(command)
    assert not list((tmp_path / "run").glob("*.safetensors"))


def test_pairs_that_the_model_was_trained_on_are_not_new_to_it(
    tiny_encoder_path: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    train, other = (write(tmp_path / f"{name}.csv", rows) for name, rows in (("train", GOOD), ("other", OTHER)))
    copied = write(tmp_path / "copied.csv", GOOD)
    common = ["--report_to=none", "--disable_tqdm=true", "--cpu_threads=1", "--bundled_pairs_first=false"]
    folder = str(tmp_path / "run")
    started = [f"--model_name_or_path={tiny_encoder_path}", f"--train_file={train}", f"--output_dir={folder}"]
    run_sts.run_stages([*common, *started, "--max_steps=1"])
    for number, (options, path) in enumerate(
        [
            (["--do_eval", f"--test_file={copied}"], copied),
            (["--do_eval", f"--test_file={other}"], None),
            ([f"--train_file={train}", "--max_steps=1"], train),
            ([f"--train_file={train}", f"--validation_file={other}", "--max_steps=1"], None),
        ]
    ):
        caplog.clear()
        with caplog.at_level("INFO"):
            again = [f"--model_name_or_path={folder}", f"--output_dir={tmp_path / str(number)}", *options]
            run_sts.run_stages([*common, *again])
        said = [] if path is None else [f"- {path}: run was trained on this file, so its scores are too high."]
        assert [line for line in caplog.text.splitlines() if "was trained on this file" in line] == said


# Which label is read


def test_another_column_that_could_hold_the_labels_is_named(tmp_path: Path) -> None:
    rows: Any = [("a", "b", 1, 0.2), ("c", "d", 2, 0.3)]
    path = write(tmp_path / "two.csv", rows, ["sentence1", "sentence2", "label", "score"])
    note = "labels are read from `label`, not from `score`; `--label_column` names another."
    assert read_pairs(path).notes == (note,)
    assert read_pairs(path, PairColumns(label="score")).notes == ()


@pytest.mark.parametrize("more", [{"cosine": 0.2, "unreliable": ""}, {"unreliable": ""}, {"cosine": 0.2}])
def test_the_corrected_grade_of_predictions_is_read_and_not_their_score(tmp_path: Path, more: dict[str, Any]) -> None:
    rows: Any = [("a", "b", 0.9, 2, *more.values()), ("c", "d", 2.1, 0, *more.values())]
    header = ["sentence1", "sentence2", "score", "grade", *more]
    read = read_pairs(write(tmp_path / "graded.csv", rows, header))
    assert read.pairs["label"] == [2, 0]
    assert read.notes == ("labels are read from `grade`, not from `score`; `--label_column` names another.",)


@pytest.mark.parametrize(("header", "labels"), [("label", [5, 1]), ("input_score", [5, 1]), ("remark", [2, 0])])
def test_the_labels_of_pairs_that_were_graded_go_before_the_predictions(
    tmp_path: Path, header: str, labels: list[float]
) -> None:
    rows: Any = [("a", "b", 0.9, 2, "", 5), ("c", "d", 2.1, 0, "", 1)]  # of a cross-encoder: no cosine
    columns = ["sentence1", "sentence2", "score", "grade", "unreliable", header]
    assert read_pairs(write(tmp_path / "graded.csv", rows, columns)).pairs["label"] == labels


def test_numbers_from_one_on_beside_names_are_doubted(tmp_path: Path) -> None:
    path = write(tmp_path / "stars.csv", [(f"a {i}", "b", 1 + i % 4) for i in range(20)])
    grades = {"bad": 0.0, "poor": 1.0, "ok": 2.0, "good": 3.0, "great": 4.0}
    note = "labels are numbers from 1 on, and grades are counted from 0 on: 1 is 'poor'. If 1 is 'bad', give "
    assert read_pairs(path, grades=grades).notes == (note + "`--label_values 1 2 3 4 5`.",)
    assert read_pairs(path, grades={name: value + 1 for name, value in grades.items()}).notes == ()
    named = write(tmp_path / "named.csv", [(f"a {i}", "b", ("POOR", "Ok")[i % 2]) for i in range(20)])
    assert read_pairs(named, grades=grades).notes == ()
    assert read_pairs(path).notes == ()


@pytest.mark.parametrize("is_stated", [False, True])
def test_a_stated_range_leaves_no_doubt_on_counting(tmp_path: Path, is_stated: bool) -> None:
    path = write(tmp_path / "stars.csv", [(f"a {i}", "b", 1 + i % 3) for i in range(20)])
    stated: Any = {"label_ranges": ["stars.csv=1:3"]} if is_stated else {}
    data_args = DataArguments(train_file=[str(path)], grade_names=["bad", "ok", "good", "great"], **stated)
    [part] = load_splits(data_args, PairColumns(), None).sets["train"]
    assert bool(part.notes) is not is_stated


# Quotes in tab-separated files


def test_a_tab_separated_file_of_pandas_is_read_with_its_quotes(tmp_path: Path) -> None:
    path = tmp_path / "pandas.tsv"
    path.write_text('sentence1\tsentence2\tlabel\n"He said ""no""."\tplain\t1\nb\t"""quoted"""\t2\n', encoding="utf-8")
    assert read_pairs(path).pairs["sentence1"] == ['He said "no".', "b"]
    assert read_pairs(path).pairs["sentence2"] == ["plain", '"quoted"']


@pytest.mark.parametrize("text", ["two\nlines", "a\ttab", 'He said "no",\nand left'])
def test_quoted_tabs_and_line_breaks_of_a_tab_separated_file_are_read(tmp_path: Path, text: str) -> None:
    path = tmp_path / "pandas.tsv"
    frame = pd.DataFrame({"sentence1": ["a", text], "sentence2": ["c", "d"], "label": [1, 2]})
    frame.to_csv(path, sep="\t", index=False)
    assert list(read_pairs(path).pairs["sentence1"]) == ["a", text]


@pytest.mark.parametrize("line", ['"Yes," he said\tno\t1', '"I am here."\tno\t1', 'a ""b\tno\t1', '"""a" b\tno\t1'])
def test_marks_in_a_corpus_stay_characters(tmp_path: Path, line: str) -> None:
    path = tmp_path / "corpus.tsv"
    path.write_text(f"sentence1\tsentence2\tlabel\n{line}\nc\td\t2\n", encoding="utf-8")
    assert read_pairs(path).pairs["sentence1"][0] == line.split("\t")[0]


# Predictions that say little


@pytest.mark.parametrize("options", [{}, {"encoder_type": "cross-encoder"}, {"sentence1_prefix": "query: "}])
def test_pairs_that_cannot_be_read_are_marked(
    tokenizer: PreTrainedTokenizerBase, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    monkeypatch.setattr(tokenizer, "model_max_length", 20)
    long, pairs = "the cat " * 20, [("☃", "☄"), ("a cat", "a dog")]
    pairs += [(long, "a dog"), ("a dog", long), (long + "☃ " * 60, "☃"), ("cat ☃ dog", "a")]
    pairs += [("the cat ☃", "the cat ☄"), ("the cat ☃", "The  cat ☃"), ("the cat ☃", "a cat ☄")]
    first, second = zip(*pairs, strict=True)
    problems = unreliable_pairs(first, second, tokenizer, STSRegressionConfig(**options))
    assert problems == [
        *("unknown", "", "truncated", "truncated", "truncated, unknown", ""),
        *("unknown", "", ""),  # only unknown tokens set two texts apart; one text, written in two ways; two texts
    ]


def test_predictions_and_pipeline_say_which_scores_are_unreliable(
    make_model: Callable[..., STSRegressionModel],
    save_checkpoint: Callable[..., Path],
    tokenizer: PreTrainedTokenizerBase,
    tmp_path: Path,
) -> None:
    from transformers import pipeline

    checkpoint = save_checkpoint(make_model(), tokenizer, tmp_path / "model")
    rows: Any = [("a cat ☃", "a cat ☄"), ("a cat", "a dog")]
    pairs = write(tmp_path / "pairs.csv", rows, ["sentence1", "sentence2"])
    output = tmp_path / "graded.csv"
    run_sts.run_stages(
        [
            *(f"--model_name_or_path={checkpoint}", f"--predict_file={pairs}", f"--predict_output={output}"),
            *(f"--output_dir={tmp_path / 'run'}", "--report_to=none", "--disable_tqdm=true", "--cpu_threads=1"),
        ]
    )
    with output.open(newline="", encoding="utf-8") as file:
        written = list(csv.DictReader(file))
    assert [row["unreliable"] for row in written] == ["unknown", ""]
    assert float(written[0]["cosine"]) == 1
    task: Any = "semantic-textual-similarity"
    grade: Any = pipeline(task, model=str(checkpoint), trust_remote_code=True)
    assert [grade(pair)["unreliable"] for pair in rows] == ["unknown", ""]
    assert [result["unreliable"] for result in grade(rows, batch_size=2)] == ["unknown", ""]


def test_grades_are_called_by_their_names(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    rows = [(f"a {i}", f"b {i}", ["low", "high"][i % 2]) for i in range(40)] + [("b 0", "a 0", "high")]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("sentence1", "sentence2", "label"), *rows])
    options = DataArguments(train_file=[str(path)], validation_file=[str(path)], grade_names=["low", "high"])
    splits = load_splits(options, PairColumns(), None, seed=1)
    pairs = splits.pairs["validation"]
    found = list(
        data_report._repetition_findings(
            pairs, pair_keys(pairs["sentence1"][:], pairs["sentence2"][:]), "development", splits.scale
        )
    )
    assert found[1] == (
        "1 development pair occurs with different labels (for example, 'low' in line 2, 'high' in line 42), 1 apart "
        "on average."
    )
