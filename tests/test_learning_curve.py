"""The learning curve: the gain expected of twice as many pairs, by models trained on a quarter and on half of them."""

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

from sts_regression import PairGrader
from sts_regression.command.arguments import parse_stages
from sts_regression.data.columns import PairColumns
from sts_regression.data.splits import Splits, load_splits
from sts_regression.evaluation.measures import PairScores
from sts_regression.evaluation.report_charts import learning_curve_chart
from sts_regression.evaluation.verdict import LearningCurve, extrapolate
from sts_regression.hub.public_record import public_record
from sts_regression.options.data_arguments import DataArguments
from sts_regression.training.run_folder import INNER_SCORES_FILE

WORDS = ["cat", "dog", "man", "park", "water", "house", "red", "big"]
ROWS = [(f"the {WORDS[i // 2 % 8]} {i // 2}", f"a {WORDS[i * i % 8]} {i}", i % 3) for i in range(60)]
LABELS = [0.0, 1.0, 2.0]
NOTHING = PairScores(None, None)

Run = Callable[..., Path]


@pytest.fixture
def run(train_in: Callable[..., Run], pairs_file: str) -> Run:
    """`run(*options)` draws the learning curve of the pairs and returns the folder of the run."""
    return train_in(pairs_file, "--learning_curve=true")


def record_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "run.json").read_text())


def as_pairs(rows: list[tuple[str, str, int]]) -> Dataset:
    return Dataset.from_list([{"sentence1": a, "sentence2": b, "label": label} for a, b, label in rows])


def splits_of(rows: list[tuple[str, str, int]], share: float | None = None, **options: Any) -> Splits:
    given = {"train": as_pairs(rows), "test": as_pairs(ROWS[:3])}
    return load_splits(
        DataArguments(leak_filter="none", **options), PairColumns(), None, given=given, share=share, seed=7
    )


def test_a_number_of_steps_is_refused(run: Run) -> None:
    with pytest.raises(
        ValueError, match=r"`learning_curve`: `max_steps` uses as many pairs in each of its runs\. Give"
    ):
        run("--max_steps=2")


def test_a_quarter_lies_within_the_half_and_both_have_the_same_development_pairs() -> None:
    quarter, half, whole = (splits_of(ROWS, share) for share in (0.25, 0.5, None))
    lines = [set(splits.pairs["train"]["line"]) for splits in (quarter, half, whole)]
    assert [len(own) for own in lines] == [12, 24, 48]
    assert lines[0] < lines[1] < lines[2]
    assert sorted(lines[1]) != sorted(lines[2])[:24]  # drawn, not the first ones
    for splits in (quarter, half):
        assert splits.pairs["validation"][:] == whole.pairs["validation"][:]
        assert (splits.scored, whole.scored) == (["validation"], ["validation", "test"])
        assert len(splits.put_together().pairs["train"]) == 48
        assert [len(numbers) for numbers in splits.set_of_pair.values()] == [len(own) for own in splits.pairs.values()]


def test_a_pair_that_a_weight_repeats_is_drawn_as_one(pairs_file: str, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    with other.open("w", newline="") as file:
        csv.writer(file).writerows([("sentence1", "sentence2", "label"), *(("b " + a, b, c) for a, b, c in ROWS)])
    options = DataArguments(train_file=[pairs_file, str(other)], train_weights=[3, 1], validation_file=[str(other)])
    half = load_splits(options, PairColumns(), None, share=0.5)
    places = list(zip(half.set_of_pair["train"].tolist(), half.pairs["train"]["line"], strict=True))
    assert len(set(places)) == 60
    assert {(number, places.count((number, line))) for number, line in places} == {(0, 3), (1, 1)}


def test_the_curve_follows_from_the_scores_of_three_models(run: Run, pairs_file: str) -> None:
    folder = run(f"--test_file={pairs_file}", "--leak_filter=none", "--keep_start_if_better=false")
    record, curve = record_of(folder), record_of(folder)["learning_curve"]
    inner = [record_of(folder / name) for name in ("quarter", "half")]
    assert [each["data"]["train"]["pairs"] for each in (*inner, record)] == [12, 24, 48]
    assert [point["pairs"] for point in curve["points"]] == [0, 12, 24, 48]
    expected = [record["results"]["before training"]["validation"]["spearman_cosine"]]
    expected += [each["results"]["after training"]["validation"]["spearman_head"] for each in (*inner, record)]
    assert [point["spearman"] for point in curve["points"]] == pytest.approx(expected)
    assert curve["gain_of_doubling"] == pytest.approx((expected[3] - expected[1]) / 2)
    assert curve["low"] <= curve["gain_of_doubling"] <= curve["high"]
    assert curve["seconds"] == sum(each["seconds"] for each in inner)
    assert {each["data"]["validation"]["sha256"] for each in inner} == {record["data"]["validation"]["sha256"]}
    for name, each in zip(("quarter", "half"), inner, strict=True):
        assert {path.name for path in (folder / name).iterdir()} == {"options.json", "run.json", INNER_SCORES_FILE}
        assert set(each["results"]["after training"]) == {"validation"}
        assert "learning_curve" not in each
    assert record["stages"] == []
    assert public_record(record)["learning_curve"] == curve
    page = (folder / "report.html").read_text()
    assert str(LearningCurve(**curve)).replace(" -", " −").replace("'", "&#39;") in page
    assert "<figcaption>Spearman&#39;s correlation by number of training pairs</figcaption>" in page
    assert "training the quarter and the half" in page


def test_the_model_is_that_of_a_run_without_a_curve(run: Run, tmp_path: Path) -> None:
    folder = run()
    plain = run("--learning_curve=false", "--refit=false", output_dir=tmp_path / "plain")
    expected, weights = load_file(plain / "model.safetensors"), load_file(folder / "model.safetensors")
    assert all((weights[name] == value).all() for name, value in expected.items())
    assert record_of(folder)["verdict"] == record_of(plain)["verdict"]
    assert "learning_curve" not in record_of(plain)
    page = (plain / "report.html").read_text()
    assert "<code>--learning_curve true</code> estimates the gain from twice as many pairs." in page
    assert "by number of training pairs" not in page


@pytest.mark.parametrize(
    ("options", "sizes"),
    [
        (["--encoder_type=cross-encoder"], [12, 24, 48]),
        (["--loss=cosent"], [0, 12, 24, 48]),
        (["--freeze_encoder", "--head_solver=lbfgs", "--score_function=linear", "--loss=mse"], [0, 12, 24, 48]),
    ],
    ids=["cross-encoder", "cosent", "lbfgs"],
)
def test_other_kinds_of_models_have_a_curve(run: Run, options: list[str], sizes: list[int]) -> None:
    folder = run(*options)
    assert [point["pairs"] for point in record_of(folder)["learning_curve"]["points"]] == sizes
    page = (folder / "report.html").read_text()
    assert ("The horizontal dashed line is the untouched encoder." in page) == (sizes[0] == 0)


def test_a_killed_command_goes_on_after_the_shares_that_are_done(
    run: Run, tmp_path: Path, killed_training: Callable[[Run, int], list[str]]
) -> None:
    whole = run(output_dir=tmp_path / "whole")
    trained = killed_training(run, 2)
    with pytest.raises(ValueError, match=r"/run' already holds a run"):
        run()
    folder = run("--resume_from_checkpoint=true")
    assert trained == ["quarter", "half", "half", "run"]
    found, expected = (record_of(path)["learning_curve"] for path in (folder, whole))
    assert {**found, "seconds": 0} == {**expected, "seconds": 0}
    run("--resume_from_checkpoint=true")
    assert len(trained) == 4


def test_shares_of_other_pairs_are_not_taken_over(run: Run, pairs_file: str) -> None:
    run()
    Path(pairs_file).write_text(Path(pairs_file).read_text().replace("cat", "dog"))
    with pytest.raises(ValueError, match=r"/run' holds a run that began with other training pairs and development"):
        run("--resume_from_checkpoint=true")


def test_pairs_at_hand_have_a_curve(tiny_encoder_path: Path) -> None:
    grader = PairGrader(tiny_encoder_path).fit(ROWS, num_train_epochs=1, disable_tqdm=True, learning_curve=True)
    assert grader.folder is not None
    assert [point["pairs"] for point in record_of(grader.folder)["learning_curve"]["points"]] == [0, 12, 24, 48]


def test_the_gain_is_the_slope_by_doublings() -> None:
    gold = np.arange(5.0)
    ranks = {100: [0, 3, 2, 1, 4], 200: [1, 0, 2, 4, 3], 400: [0, 1, 2, 4, 3]}  # 1 - sum of squared differences / 20
    trained = {size: PairScores(np.array(own, dtype=float), -gold) for size, own in ranks.items()}
    curve = extrapolate(trained, PairScores(None, gold), gold, seconds=3.5)
    expected = {0: 1, 100: 0.6, 200: 0.8, 400: 0.9}
    assert {point["pairs"]: pytest.approx(point["spearman"]) for point in curve.points} == expected
    assert curve.gain_of_doubling == pytest.approx(0.15)
    assert curve.low < 0.15 < curve.high
    assert curve.seconds == 3.5


def test_corpora_are_averaged_and_numbers_need_be_no_doublings() -> None:
    gold = np.tile(np.arange(4.0), 2)
    swapped = np.r_[0.0, 1, 2, 3, 3, 2, 1, 0]
    trained = {10: PairScores(None, swapped), 30: PairScores(None, gold), 40: PairScores(None, gold)}
    curve = extrapolate(trained, NOTHING, gold, np.repeat([0, 1], 4))
    assert [point["spearman"] for point in curve.points] == pytest.approx([0, 1, 1])
    slope, _ = np.polyfit(np.log2([10, 30, 40]), [0, 1, 1], 1)
    assert curve.gain_of_doubling == pytest.approx(slope)


def test_models_that_rank_alike_gain_exactly_nothing() -> None:
    gold = np.arange(7.0) % 3
    noisy = gold + np.sin(np.arange(7))
    trained = {size: PairScores(factor * noisy, None) for size, factor in ((11, 1), (23, 2), (48, 3))}
    curve = extrapolate(trained, NOTHING, gold)
    assert (curve.gain_of_doubling, curve.low, curve.high) == (pytest.approx(0, abs=1e-15), 0, 0)


def made_up(gain: float, low: float, high: float) -> LearningCurve:
    points = [{"pairs": 0, "spearman": 0.6}, {"pairs": 100, "spearman": 0.7}]
    return LearningCurve(
        [*points, {"pairs": 200, "spearman": 0.74}, {"pairs": 400, "spearman": 0.75}], gain, low, high, 1.0
    )


def test_the_words_say_what_the_development_pairs_can_tell() -> None:
    source = (
        "A line through runs on a quarter, half and all of the pairs gives this estimate. Its interval covers the "
        "choice of development pairs only, not seeds."
    )
    assert str(made_up(0.025, 0.0049, 0.045)) == (
        "Twice as many training pairs would change Spearman's correlation by about +2.5 points (95 % interval +0.5 to "
        f"+4.5). {source}"
    )
    assert str(made_up(-0.0001, -0.01, 0.0)) == (
        "Twice as many training pairs would change Spearman's correlation by about +0.0 points (95 % interval -1.0 to "
        f"+0.0). {source} The interval includes 0: there are too few development pairs to tell whether more training "
        "pairs would help."
    )
    assert str(made_up(0.0004, -0.002, 0.003)).endswith(
        f"{source} More training pairs like these would change little."
    )


def test_the_chart_is_logarithmic_and_goes_on_to_twice_as_many_pairs() -> None:
    chart = learning_curve_chart(made_up(0.025, 0.005, 0.045))
    assert [text for _, text in chart.x.ticks] == ["100", "200", "400", "800"]
    places = [place for place, _ in chart.x.placed_ticks]
    assert np.diff(places) == pytest.approx([places[1] - places[0]] * 3, abs=0.11)
    points = [(place, chart.y.place(value)) for place, value in zip(places, (70, 74, 75), strict=False)]
    twice = (places[3], chart.y.place(77.5))
    assert chart.lines == [("trained", points), ("expected", [twice])]
    assert chart.errors == [(places[3], chart.y.place(75.5), chart.y.place(79.5))]
    assert chart.guides == [(points[-1], twice), ((46, chart.y.place(60)), (392, chart.y.place(60)))]
    assert chart.description.endswith(": 70.00 at 100, 74.00 at 200, 75.00 at 400; 77.50 expected at 800")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--folds=5"], "`learning_curve` compares models on the same development pairs, and `folds` holds none out."),
        (["--model_soup=2"], "`learning_curve`: `model_soup` trains several times, too. Leave one of them out."),
        (["--do_eval"], "`learning_curve`: nothing is trained here. Leave it out."),
        (
            ["--resume_from_checkpoint=a"],
            "`learning_curve`: `resume_from_checkpoint` would give all runs one checkpoint. Give `true`.",
        ),
    ],
)
def test_what_has_no_curve_is_refused(options: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        parse_stages(["--train_file=a.csv", "--learning_curve", *options])


def test_stages_in_a_row_have_no_curve(tmp_path: Path) -> None:
    recipe = tmp_path / "two.yaml"
    recipe.write_text("train_file: a.csv\nstages: [{}, {learning_curve: true}]\n")
    with pytest.raises(ValueError, match="`learning_curve`: a recipe with `stages` trains several times in a row"):
        parse_stages([str(recipe)])


def test_too_few_pairs_are_refused() -> None:
    with pytest.raises(
        ValueError, match=r"`learning_curve` needs at least 40 training pairs, but there are 38\. Leave"
    ):
        splits_of(ROWS[:48], 0.25)
    rows = [(first, second, 2 * (i == 0)) for i, (first, second, _) in enumerate(ROWS)]
    splits = load_splits(
        DataArguments(label_values=LABELS),
        PairColumns(),
        None,
        given={"train": as_pairs(rows), "validation": as_pairs(ROWS)},
    )
    seed = next(seed for seed in range(9) if np.random.default_rng(seed).permutation(60)[:15].all())
    message = f"`learning_curve`: all labels are equal in 15 of the 60 training pairs, chosen with seed {seed}"
    with pytest.raises(ValueError, match=message):
        splits.with_share(0.25, seed)


def test_schedules_may_follow_the_development_pairs() -> None:
    options = ["--lr_scheduler_type=reduce_lr_on_plateau", "--save_strategy=best"]
    stages = parse_stages(["--train_file=a.csv", "--learning_curve", *options])
    assert [stage.share for stage in stages] == [0.25, 0.5, None]
    assert [stage.folder.name for stage in stages[:2]] == ["quarter", "half"]
