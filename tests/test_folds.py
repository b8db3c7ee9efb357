"""Cross-validation of own pairs: each pair is scored once by a model that was not trained on it."""

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import Dataset
from safetensors.torch import load_file

from sts_regression import PairGrader, conclusion
from sts_regression.command.arguments import parse_stages
from sts_regression.data.columns import PairColumns
from sts_regression.data.splits import load_splits
from sts_regression.data.text_splits import groups_to_resample
from sts_regression.evaluation.measures import PairScores
from sts_regression.evaluation.verdict import Verdict, judge
from sts_regression.grading.grading import fit_grading
from sts_regression.grading.in_checkpoints import for_model
from sts_regression.hub.public_record import public_record
from sts_regression.options.data_arguments import DataArguments
from sts_regression.training.run_folder import INNER_SCORES_FILE

WORDS = ["cat", "dog", "man", "park", "water", "house", "red", "big"]
# First texts of which each stands in two pairs, with different labels.
ROWS = [(f"the {WORDS[i // 2 % 8]} {i // 2}", f"a {WORDS[i * i % 8]} {i}", i % 3) for i in range(48)]
LABELS = [0.0, 1.0, 2.0]
FOLDS = 3

Run = Callable[..., Path]


@pytest.fixture
def run(train_in: Callable[..., Run], pairs_file: str) -> Run:
    """`run(*options)` cross-validates the pairs and returns the folder of the run."""
    return train_in(pairs_file, f"--folds={FOLDS}")


def record_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "run.json").read_text())


def splits_of(pairs: Dataset, fold: int | None = None, folds: int = FOLDS, **options: Any) -> Any:
    return load_splits(DataArguments(folds=folds, **options), PairColumns(), None, given={"train": pairs}, fold=fold)


def as_pairs(rows: list[tuple[str, str, int]]) -> Dataset:
    return Dataset.from_list([{"sentence1": a, "sentence2": b, "label": label} for a, b, label in rows])


def test_each_pair_is_in_one_part_and_no_text_in_two() -> None:
    whole = splits_of(as_pairs(ROWS))
    assert sorted(np.concatenate(whole.fold_rows)) == list(range(len(ROWS)))
    assert (len(whole.pairs["train"]), len(whole.pairs["validation"])) == (48, 48)
    assert whole.sources["validation"] == "3 folds of train pairs"
    for number, rows in enumerate(whole.fold_rows, start=1):
        of_fold = splits_of(as_pairs(ROWS), number)
        assert of_fold.pairs["validation"]["sentence1"][:] == [ROWS[row][0] for row in rows]
        assert len(of_fold.pairs["train"]) == len(ROWS) - len(rows)
        assert not set(of_fold.pairs["train"]["sentence1"]) & set(of_fold.pairs["validation"]["sentence1"])
        assert len(of_fold.put_together().pairs["train"]) == len(ROWS)


def test_a_run_on_few_held_out_pairs_names_cross_validation(
    run: Run, tmp_path: Path, pairs_file: str, caplog: pytest.LogCaptureFixture
) -> None:
    hint = "`--folds 5` cross-validates, and learns grades from all pairs."
    run("--folds=1")
    assert caplog.messages.count(hint) == 1
    run("--folds=1", f"--validation_file={pairs_file}", "--leak_filter=none", output_dir=tmp_path / "own development")
    run(output_dir=tmp_path / "folds")
    assert caplog.messages.count(hint) == 1


def test_training_pairs_may_have_weights_where_a_part_takes_a_whole_set(tmp_path: Path) -> None:
    for name, rows in (("many.csv", ROWS), ("few.csv", [("one text", "two", 0), ("one text", "three", 2)])):
        with (tmp_path / name).open("w", newline="") as file:
            csv.writer(file).writerows([("sentence1", "sentence2", "label"), *rows])
    files = [str(tmp_path / "few.csv"), str(tmp_path / "many.csv")]
    options = DataArguments(folds=FOLDS, train_file=files, train_weights=[3, 1], label_values=LABELS)
    sizes = []
    for fold in range(1, FOLDS + 1):
        splits = load_splits(options, PairColumns(), None, fold=fold)
        sizes.append((len(splits.sets["train"]), len(splits.pairs["train"]) + len(splits.pairs["validation"])))
    assert sorted(sizes) == [(1, 50), (2, 54), (2, 54)]


def test_verdict_and_grades_follow_from_the_scores_of_the_folds(run: Run) -> None:
    folder = run("--keep_start_if_better=false")
    record, labels = record_of(folder), np.array([label for *_, label in ROWS], dtype=float)
    rows = splits_of(as_pairs(ROWS)).fold_rows
    scores = {name: np.empty(48) for name in ("before_cosine", "after_head", "after_cosine")}
    for number, own in enumerate(rows, start=1):
        with np.load(folder / f"fold-{number}" / INNER_SCORES_FILE) as stored:
            assert set(stored) == set(scores)
            for name, values in stored.items():
                scores[name][own] = values
    before, after = PairScores(None, scores["before_cosine"]), PairScores(scores["after_head"], None)
    groups = groups_to_resample([row[0] for row in ROWS], [row[1] for row in ROWS])
    verdict = judge(before, after, labels, groups=groups)
    grading = fit_grading(scores["after_head"], labels, LABELS, groups=groups)
    assert verdict is not None
    assert record["verdict"] == pytest.approx(verdict.to_dict())
    assert record["verdict"]["num_pairs"] == 48
    assert record["grading"] == json.loads(json.dumps(grading.to_dict()))
    config = json.loads((folder / "config.json").read_text())
    assert config["grading"] == json.loads(json.dumps(for_model(grading)))
    results = record["results"]
    assert results["before training"]["validation"]["spearman_cosine"] == pytest.approx(verdict.before)
    assert results["after training"]["validation"]["spearman_head"] == pytest.approx(verdict.after)
    of_folds = [record_of(folder / f"fold-{number}") for number in range(1, FOLDS + 1)]
    for name in ("pearson", "accuracy", "macro_f1", "mae", "quadratic_kappa"):  # of grades learned from other pairs
        assert results["after training"]["validation"][f"{name}_head"] == pytest.approx(grading.report[name])
    assert record["folds"]["count"] == FOLDS
    assert record["folds"]["spearman"] == [
        {
            "before": fold["results"]["before training"]["validation"]["spearman_cosine"],
            "after": fold["results"]["after training"]["validation"]["spearman_head"],
        }
        for fold in of_folds
    ]


def test_folds_leave_no_model_and_the_last_training_has_all_pairs(run: Run, pairs_file: str) -> None:
    folder = run(f"--test_file={pairs_file}", "--leak_filter=none")
    for number in range(1, FOLDS + 1):
        left = {path.name for path in (folder / f"fold-{number}").iterdir()}
        assert left == {"options.json", "run.json", INNER_SCORES_FILE}
        assert set(record_of(folder / f"fold-{number}")["results"]["after training"]) == {"validation"}
    record = record_of(folder)
    assert (record["data"]["train"]["pairs"], record["data"]["validation"]["pairs"]) == (48, 48)
    assert not any("eval_loss" in entry for entry in record["training"]["log_history"])
    assert set(record["results"]["after training"]) == {"validation", "test"}
    assert record["stages"] == []
    card, page = ((folder / name).read_text() for name in ("README.md", "report.html"))
    assert "Development pairs: 48 from `3 folds of pairs.csv`." in card
    said = "Each development pair was scored by a model that was not trained on it, in 3 folds. The model itself was"
    assert said in card.split("## Use")[0]
    assert said in page.split('id="scores"')[0]
    assert "training the folds" in page


@pytest.mark.parametrize("folds", [1, FOLDS])
def test_the_report_has_the_scores_of_the_finished_model(
    run: Run, pairs_file: str, folds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[PairScores] = []

    def keep(*_: Any, after: PairScores, **further: Any) -> str:
        reported.append(after)
        return ""

    monkeypatch.setattr(conclusion, "report_page", keep)
    folder = run(f"--folds={folds}", f"--test_file={pairs_file}", "--leak_filter=none")
    scores = [graded["score"] for graded in PairGrader(folder).grade([row[:2] for row in ROWS])]
    assert reported[0].head == pytest.approx(np.array(scores), abs=1e-5)


def test_an_untouched_encoder_that_is_kept_is_graded_by_its_own_scores(
    run: Run, tiny_encoder_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Verdict, "is_lost", True)
    folder = run("--learning_rate=0.05", "--wise_ft_alpha=1", "--self_distillation=0")
    record, start = record_of(folder), load_file(tiny_encoder_path / "model.safetensors")
    assert record["verdict"]["kept"] == "start"
    trained = load_file(folder / "model.safetensors")
    assert all((trained[f"encoder.{name}"] == value).all() for name, value in start.items())
    before, after = (record["results"][f"{state} training"]["validation"] for state in ("before", "after"))
    assert after["spearman_cosine"] == pytest.approx(before["spearman_cosine"], abs=1e-6)
    assert record["grading"]["num_pairs"] == 48


@pytest.mark.filterwarnings("error:No artists")  # to draw: no step is logged, and nothing is measured
@pytest.mark.parametrize(
    "options",
    [
        ["--encoder_type=cross-encoder"],
        pytest.param(["--loss=cosent"], marks=pytest.mark.slow),
        ["--freeze_encoder", "--head_solver=lbfgs", "--score_function=linear", "--loss=mse"],
        pytest.param(
            ["--save_strategy=no", "--load_best_model_at_end=false", "--interval_level=0"], marks=pytest.mark.slow
        ),
    ],
    ids=" ".join,
)
def test_other_kinds_of_models_are_cross_validated(run: Run, options: list[str]) -> None:
    folder = run(*options)
    record = record_of(folder)
    assert len(record["folds"]["spearman"]) == FOLDS
    assert (record["grading"] is None) == bool({"--loss=cosent", "--interval_level=0"} & set(options))
    assert (folder / "README.md").is_file()


def test_a_killed_command_goes_on_after_the_folds_that_are_done(
    run: Run, tmp_path: Path, killed_training: Callable[[Run, int], list[str]]
) -> None:
    whole = run(output_dir=tmp_path / "whole")
    trained = killed_training(run, FOLDS)
    with pytest.raises(ValueError, match=r"/run' already holds a run"):
        run()
    folder = run("--resume_from_checkpoint=true")
    assert trained == ["fold-1", "fold-2", "fold-3", "fold-3", "run"]
    expected, weights = load_file(whole / "model.safetensors"), load_file(folder / "model.safetensors")
    assert all((weights[name] == value).all() for name, value in expected.items())
    assert record_of(folder)["verdict"] == record_of(whole)["verdict"]
    run("--resume_from_checkpoint=true")
    assert len(trained) == 5
    with pytest.raises(ValueError, match="other options: `folds` 3, now 4"):
        run("--resume_from_checkpoint=true", "--folds=4")


def test_folds_of_other_pairs_are_not_taken_over(run: Run, pairs_file: str) -> None:
    run()
    with pytest.raises(ValueError, match=r"/run' already holds a run"):
        run()
    Path(pairs_file).write_text(Path(pairs_file).read_text().replace("cat", "dog"))
    with pytest.raises(ValueError, match=r"/run' holds a run that began with other training pairs and development"):
        run("--resume_from_checkpoint=true")


def test_pairs_at_hand_are_cross_validated(tiny_encoder_path: Path) -> None:
    options: dict[str, Any] = {"num_train_epochs": 1, "disable_tqdm": True, "folds": 2}
    grader = PairGrader(tiny_encoder_path).fit(ROWS, **options)
    assert grader.folder is not None
    assert record_of(grader.folder)["verdict"]["num_pairs"] == 48
    assert (grader.model.config.grading or {})["num_pairs"] == 48
    with pytest.raises(ValueError, match=r"`folds` scores the training pairs .* there are validation pairs"):
        PairGrader(tiny_encoder_path).fit(ROWS, eval_pairs=ROWS, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--folds=0"], "`folds` must lie between 1 and 20, but is 0."),
        (["--folds=21"], "`folds` must lie between 1 and 20, but is 21."),
        (["--validation_file=b.csv"], "`validation_file` is an option of development pairs. Leave one of them out."),
        (["--validation_split_percentage=20"], "but `validation_split_percentage` is an option of development pairs."),
        (["--dev_leak_filter=exact"], "but `dev_leak_filter` is an option of development pairs."),
        (["--model_soup=2"], "`folds`: `model_soup` trains several times, too. Leave one of them out."),
        (["--do_eval"], "`folds`: nothing is trained here. Leave it out."),
        (["--save_strategy=best"], "`folds`: `save_strategy` best needs development pairs. Name another one."),
        (["--lr_scheduler_type=reduce_lr_on_plateau"], "`lr_scheduler_type` reduce_lr_on_plateau follows development"),
        (["--resume_from_checkpoint=a"], "`folds`: `resume_from_checkpoint` would give all runs one checkpoint."),
    ],
)
def test_what_cannot_be_cross_validated_is_refused(options: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        parse_stages(["--train_file=a.csv", "--folds=5", "--load_best_model_at_end=false", *options])


def test_stages_in_a_row_are_not_cross_validated(tmp_path: Path) -> None:
    recipe = tmp_path / "two.yaml"
    recipe.write_text("train_file: a.csv\nstages: [{}, {folds: 2}]\n")
    with pytest.raises(ValueError, match="`folds`: a recipe with `stages` trains several times in a row"):
        parse_stages([str(recipe)])


def test_a_trial_run_divides_the_first_pairs() -> None:
    whole, of_fold = (splits_of(as_pairs(ROWS), fold, max_train_samples=30, max_eval_samples=3) for fold in (None, 2))
    assert (len(whole.pairs["train"]), len(whole.pairs["validation"])) == (30, 30)
    assert sorted(np.concatenate(whole.fold_rows)) == list(range(30))
    assert len(of_fold.pairs["train"]) + len(of_fold.pairs["validation"]) == 30


def test_folds_of_a_data_set_keep_its_name_in_public() -> None:
    parts = {"source": "5 folds of owner/pairs (train)", "label_scale": None, "pairs": 3, "unlabelled": 0}
    data = {"validation": {"source": parts["source"], "pairs": 3, "sha256": "", "parts": [parts]}}
    public = public_record({"arguments": {"dataset_name": ["owner/pairs"]}, "data": data})
    assert public["data"]["validation"]["parts"][0]["hub_dataset"] == "owner/pairs"


def test_parts_without_labels_that_differ_are_refused() -> None:
    rows = [(f"text {i}", f"other {i}", int(i < 3)) for i in range(20)]
    with pytest.raises(ValueError, match=r"`folds` is 10, but then all labels in a fold .* are equal. Lower it"):
        splits_of(as_pairs(rows), folds=10)


def test_all_folds_together_are_the_development_pairs_that_may_be_few(
    train_in: Callable[..., Callable[..., Path]], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for number, is_few in ((22, False), (18, True)):
        path = tmp_path / f"{number}.csv"
        rows = [f"the cat {row},a dog {row},{row % 2}" for row in range(number)]
        path.write_text("\n".join(["sentence1,sentence2,label", *rows]))
        train_in(str(path), "--folds=2", "--refit=false")(output_dir=tmp_path / f"run-{number}")
        assert ("few development pairs (18)" in caplog.text) is is_few
        assert caplog.text.count("few development pairs") == is_few
