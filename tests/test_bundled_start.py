"""Few own pairs are trained on after the bundled pairs; the verdict still compares with the untouched encoder."""

import copy
import csv
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from filelock import FileLock
from safetensors.torch import load_file

import run_sts
from sts_regression import bundled_start as module
from sts_regression import conclusion
from sts_regression.basics import stopping
from sts_regression.command import stages
from sts_regression.command.arguments import parse_stages
from sts_regression.command.default_recipe import OWN_PAIRS_RECIPES
from sts_regression.configuration_sts_regression import STSRegressionConfig
from sts_regression.evaluation.verdict import Verdict
from sts_regression.models.loading import find_model, load_model
from sts_regression.quickstart import BUNDLED_FOLDER
from sts_regression.training.trainer import STSTrainer
from sts_regression.training.training_arguments import STSTrainingArguments

WORDS = ["cat", "dog", "man", "park", "water", "house", "red", "big"]
ROWS = [(f"the {WORDS[i % 8]} {i}", f"a {WORDS[i * i % 8]} {i}", i % 3) for i in range(40)]

Run = Callable[..., Path]


WITH_BUNDLED_START = stages._after_bundled_pairs  # imported before the fixture of all tests leaves it out


@pytest.fixture(autouse=True)
def bundled_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shortens the trainings on bundled pairs, instead of leaving them out as in other tests."""
    monkeypatch.setattr(stages, "_after_bundled_pairs", WITH_BUNDLED_START)
    monkeypatch.setattr(module, "TRAININGS", 2)
    monkeypatch.setitem(module.SETTINGS, "max_steps", 2)


@pytest.fixture
def run(train_in: Callable[..., Run], pairs_file: str) -> Run:
    """`run(*options)` trains on bundled pairs, then on own ones, and returns the folder of the run."""
    options = ("--label_values", "0", "1", "2", "--keep_start_if_better=false", "--refit=false")
    return train_in(pairs_file, *options, "--bundled_pairs_first=true")


@pytest.fixture
def trainings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The folder of each training, filled as they begin."""
    begun: list[str] = []
    train = STSTrainer.train

    def noting(trainer: STSTrainer, *args: Any, **kwargs: Any) -> Any:
        begun.append(Path(trainer.args.output_dir or "").name)
        return train(trainer, *args, **kwargs)

    monkeypatch.setattr(STSTrainer, "train", noting)
    return begun


def record_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "run.json").read_text())


def encoder_of(folder: Path) -> dict[str, torch.Tensor]:
    weights = load_file(folder / "model.safetensors")
    return {name.removeprefix("encoder."): value for name, value in weights.items() if name.startswith("encoder.")}


def are_equal(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return all(value.equal(other[name]) for name, value in one.items())


def test_training_starts_from_the_mean_of_trainings_on_bundled_pairs(
    run: Run, tmp_path: Path, tiny_encoder_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left: list[dict[str, torch.Tensor]] = []
    trained: list[dict[str, torch.Tensor]] = []
    mean_of = module.mean_of

    def mean(states: Any) -> dict[str, torch.Tensor]:
        trained.extend({name: value.cpu().clone() for name, value in state.items()} for state in states)
        return mean_of(copy.deepcopy(state) for state in trained)

    monkeypatch.setattr(module, "mean_of", mean)
    monkeypatch.setattr(
        conclusion, "drop_weights", lambda folder: left.append(load_file(folder / "weights.safetensors"))
    )
    folder = run("--learning_rate=1e-30", "--head_learning_rate=1e-30")
    assert len(trained) == 2
    untouched = load_file(tiny_encoder_path / "model.safetensors")
    assert not are_equal(trained[0], trained[1])
    assert not any(are_equal(state, untouched) for state in trained)
    [start] = left
    for name, value in start.items():
        torch.testing.assert_close(value, (trained[0][name] + trained[1][name]) / 2)
    assert are_equal(start, encoder_of(folder))  # the rate is too low to change it


def test_several_processes_share_a_step(
    tiny_encoder_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["--train_file=a.csv", f"--model_name_or_path={tiny_encoder_path}", f"--output_dir={tmp_path}"]
    stage = parse_stages([*words, "--bundled_pairs_first=false"])[-1]
    for processes, pairs in ((1, 16), (8, 2), (32, 1)):
        monkeypatch.setattr(STSTrainingArguments, "world_size", processes)
        assert module._training_args(stage, 0).per_device_train_batch_size == pairs


def test_options_of_the_own_pairs_do_not_concern_the_bundled_ones(tiny_encoder_path: Path, tmp_path: Path) -> None:
    """The bundled pairs are one file, whose scores need no map."""
    files = []
    for name, top in (("one.csv", 2), ("other.csv", 4)):
        rows = [f"{name} {one},{f'{name} {one}' if label == 2 else two},{label * top / 2}" for one, two, label in ROWS]
        (tmp_path / name).write_text("\n".join(["sentence1,sentence2,label", *rows]))
        files.append(str(tmp_path / name))
    options = ["--label_ranges", "other.csv=0:4", "--label_values", "0", "1", "2", "--bundled_pairs_first=true"]
    options += ["--refit=false", "--max_steps=2", "--report_to=none", f"--embedding_cache={tmp_path / 'embeddings'}"]
    options += [
        f"--model_name_or_path={tiny_encoder_path}",
        f"--output_dir={tmp_path / 'run'}",
        "--source_scales=true",
    ]
    run_sts.run_stages(["--train_file", *files, *options])
    assert "bundled_pairs" in record_of(tmp_path / "run")


def test_the_next_run_with_the_same_encoder_does_not_train_on_bundled_pairs_again(
    run: Run, tmp_path: Path, trainings: list[str]
) -> None:
    first, second = run(), run("--seed=7", output_dir=tmp_path / "second")
    assert trainings.count("bundled") == 2
    records = [record_of(folder)["bundled_pairs"] for folder in (first, second)]
    assert records[0]["verdict"]["before"] == pytest.approx(records[1]["verdict"]["before"])
    assert [record["is_stored"] for record in records] == [False, True]
    [stored] = (tmp_path / "embeddings").glob("bundled-*.safetensors")
    whole = stored.read_bytes()
    for number, option in enumerate(["--sentence1_prefix=query: ", "--max_seq_length=4"], start=2):
        run(option, output_dir=tmp_path / str(number))
        assert trainings.count("bundled") == 2 * number
    stored.write_bytes(whole[:100])
    run(output_dir=tmp_path / "again")
    assert trainings.count("bundled") == 8
    assert stored.read_bytes() == whole


def test_a_command_waits_for_another_that_trains_on_the_bundled_pairs(
    run: Run, tmp_path: Path, trainings: list[str]
) -> None:
    run()
    [stored] = (tmp_path / "embeddings").glob("bundled-*.safetensors")
    aside = stored.rename(tmp_path / "aside")
    is_held = threading.Event()

    def train_meanwhile() -> None:
        with FileLock(f"{stored}.lock"):
            is_held.set()
            time.sleep(3)
            aside.rename(stored)

    other = threading.Thread(target=train_meanwhile)
    other.start()
    is_held.wait()
    assert record_of(run(output_dir=tmp_path / "second"))["bundled_pairs"]["is_stored"]
    other.join()
    assert trainings.count("bundled") == 2


def test_weights_that_were_trained_in_another_precision_are_not_taken(tmp_path: Path) -> None:
    model, tokenizer = load_model(find_model(None), {})
    digests = {
        module._digest(model, tokenizer, STSTrainingArguments(output_dir=str(tmp_path), **options))
        for options in ({"precision": "float32"}, {"precision": "bfloat16"}, {"bf16": True})
    }
    assert len(digests) == 3


def test_all_members_of_a_soup_start_from_the_bundled_pairs(run: Run, tmp_path: Path) -> None:
    folder = run("--model_soup=2", "--learning_rate=1e-30", "--head_learning_rate=1e-30")
    [stored] = (tmp_path / "embeddings").glob("bundled-*.safetensors")
    assert are_equal(load_file(stored), encoder_of(folder))
    assert not (folder / "bundled" / "weights.safetensors").exists()


def test_the_verdict_compares_with_the_untouched_encoder(run: Run, tmp_path: Path) -> None:
    folder, plain = run(), run("--bundled_pairs_first=false", output_dir=tmp_path / "plain")
    record, other = record_of(folder), record_of(plain)
    assert record["results"]["before training"] == other["results"]["before training"]
    assert record["verdict"]["before"] == other["verdict"]["before"]
    assert record["results"]["after training"] != other["results"]["after training"]
    assert record["bundled_pairs"]["pairs"] == 1500
    assert record["bundled_pairs"]["verdict"]["num_pairs"] == len(ROWS)
    assert "bundled_pairs" not in other
    assert not (folder / "bundled" / "weights.safetensors").exists()


def test_an_encoder_that_ranks_own_pairs_worse_is_no_start(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    plain = run("--bundled_pairs_first=false", output_dir=tmp_path / "plain")
    monkeypatch.setattr(module, "_helps", lambda verdict: False)
    folder = run()
    assert are_equal(encoder_of(folder), encoder_of(plain))
    assert record_of(folder)["bundled_pairs"]["verdict"]["kept"] == "start"
    assert "starts from the untouched encoder" in caplog.text
    assert "bundled" not in (folder / "README.md").read_text().partition("## Limits")[2]


@pytest.mark.parametrize(
    ("after", "ranks", "start"), [(0.601, "better", "it"), (0.6, "no better", "the untouched encoder")]
)
def test_training_starts_from_the_encoder_that_ranks_own_pairs_better(after: float, ranks: str, start: str) -> None:
    verdict = Verdict(0.6, after, -0.1, 0.1, 0.01, num_pairs=40)
    said = module._in_words(verdict, 40)
    assert said == (
        f"After training on the bundled pairs, the encoder ranks your 40 training pairs {ranks} (Spearman's "
        f"correlation 60.00 before, {100 * after:.2f} after), so training on your pairs starts from {start}."
    )
    assert "ranks 40 of your training pairs" in module._in_words(verdict, 2000)


def test_pairs_that_share_a_text_with_bundled_ones_do_not_come_after_them(
    train_in: Callable[..., Run], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with (BUNDLED_FOLDER / "train.csv").open(encoding="utf-8", newline="") as file:
        text = next(csv.DictReader(file))["sentence2"]
    path = tmp_path / "known.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("sentence1", "sentence2", "label"), *ROWS, (text.upper(), "a red cat", 2)])
    run = train_in(str(path), "--keep_start_if_better=false", "--refit=false")
    folder, plain = run("--bundled_pairs_first=true"), run(output_dir=tmp_path / "plain")
    assert "Your pairs share texts with the bundled ones" in caplog.text
    assert are_equal(encoder_of(folder), encoder_of(plain))
    assert "bundled_pairs" not in record_of(folder)


def test_a_run_that_loses_ends_with_the_untouched_encoder(
    run: Run, tiny_encoder_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "judge", lambda *_, **__: Verdict(0.1, 0.2, 0.0, 0.2, 0.05, len(ROWS)))
    monkeypatch.setattr(Verdict, "is_lost", property(lambda verdict: verdict.before != 0.1))
    folder = run("--keep_start_if_better=true", "--learning_rate=0.05")
    assert are_equal(encoder_of(folder), load_file(tiny_encoder_path / "model.safetensors"))
    results = record_of(folder)["results"]
    before, after = (results[f"{state} training"]["validation"]["spearman_cosine"] for state in ("before", "after"))
    assert after == pytest.approx(before, abs=1e-6)


SLOW = pytest.mark.slow


@pytest.mark.parametrize("number", [pytest.param(2, marks=SLOW), 3, pytest.param(4, marks=SLOW)])
def test_a_killed_command_goes_on_to_the_same_weights(
    run: Run, tmp_path: Path, killed_training: Callable[[Run, int], list[str]], number: int
) -> None:
    whole = run("--refit", f"--embedding_cache={tmp_path / 'other'}", output_dir=tmp_path / "whole")
    trained = killed_training(lambda: run("--refit"), number)
    if number > 2:
        with pytest.raises(ValueError, match=r"`output_dir` '.*/run' already holds a run"):
            run("--refit")
    with pytest.raises(ValueError, match=r"`output_dir` '.*/run' holds a run with other options: `seed`"):
        run("--refit", "--resume_from_checkpoint=true", "--seed=7")
    folder = run("--refit", "--resume_from_checkpoint=true")
    of_start = 2 if number > 2 else 4  # a training that was killed within the start begins anew
    assert trained.count("bundled") == of_start
    assert are_equal(encoder_of(folder), encoder_of(whole))
    assert run("--refit", "--resume_from_checkpoint=true") == folder  # is finished
    assert trained.count("bundled") == of_start


@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
@pytest.mark.parametrize(
    ("owner", "name", "number"),
    [
        pytest.param(module, "read_inputs", 1, marks=SLOW),
        (STSTrainer, "training_step", 3),  # of the trainings on bundled pairs
        pytest.param(module, "judge", 1, marks=SLOW),
        pytest.param(STSTrainer, "score", 1, marks=SLOW),
        (STSTrainer, "score", 2),
        pytest.param(conclusion, "present", 1, marks=SLOW),
    ],
)
def test_ctrl_c_at_any_moment_says_how_to_resume(
    run: Run,
    tmp_path: Path,
    listening: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    owner: Any,
    name: str,
    number: int,
) -> None:
    whole = run("--refit", f"--embedding_cache={tmp_path / 'other'}", output_dir=tmp_path / "whole")
    calls, function = [], getattr(owner, name)

    def interrupted(*args: Any, **kwargs: Any) -> Any:
        calls.append(name)
        if len(calls) == number:
            os.kill(os.getpid(), signal.SIGINT)
        return function(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, interrupted)
        with pytest.raises(SystemExit, match=str(128 + signal.SIGINT)):
            run("--refit")
    said = capsys.readouterr().err
    assert said.splitlines()[-1] == f"stopped by SIGINT.{stopping.AGAIN}"
    assert "writing a checkpoint" not in said
    monkeypatch.setattr(stopping, "_requests", stopping._Requests())
    folder = run("--refit", "--resume_from_checkpoint=true")
    assert are_equal(encoder_of(folder), encoder_of(whole))
    assert {path.name for path in folder.rglob("*")} == {path.name for path in whole.rglob("*")}


def test_each_kind_of_run_on_own_pairs_starts_from_it() -> None:
    words = ["--train_file=a.csv", "--output_dir=outputs/run", "--bundled_pairs_first"]
    for option, (folders, about) in {
        "--refit": (["first", "run"], [", without the held-out pairs", ", on all pairs"]),
        "--folds=2": (["fold-1", "fold-2", "run"], [", without fold 1", ", without fold 2", ", on all pairs"]),
        "--learning_curve": (
            ["quarter", "half", "run"],
            [", on 25 % of the pairs", ", on 50 % of the pairs", ", on all pairs"],
        ),
        "--model_soup=2": (["member-1", "member-2", "run"], ["", "", ""]),
    }.items():
        first, *others = parse_stages([*words, "--refit=false", option])
        assert first.folder == Path("outputs/run/bundled")
        assert [stage.folder.name for stage in others] == folders
        assert [stage.about for stage in (first, *others)] == [", on bundled pairs", *about]
        assert {stage.start for stage in others} == {first.folder}
        assert (first.repeats_pairs, *(stage.repeats_pairs for stage in others)) == (False, *[True] * len(others))
        assert [stage.repeats_training for stage in (first, *others)] == [False, False] + [True] * (len(others) - 1)


def test_few_own_pairs_are_trained_on_after_the_bundled_ones(tmp_path: Path) -> None:
    few, many = OWN_PAIRS_RECIPES.values()
    assert "bundled_pairs_first: true" in few.read_text()
    assert "bundled_pairs_first:" not in many.read_text()
    words = ["--train_file=a.csv", "--model_name_or_path", str(tmp_path)]
    STSRegressionConfig(score_function="cosine", head_is_trained=True).save_pretrained(tmp_path)
    assert not any(stage.is_bundled for stage in parse_stages(words))  # was trained on graded pairs before
    STSRegressionConfig(score_function="cosine", head_is_trained=False).save_pretrained(tmp_path)
    assert [stage.is_bundled for stage in parse_stages(words)] == [True, False, False]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--encoder_type=cross-encoder"], "a cross-encoder has no cosine to train"),
        (["--freeze_encoder"], "`freeze_encoder` keeps the encoder as it is"),
        (["--do_train=false", "--do_eval", "--test_file=a.csv"], "nothing is trained here"),
    ],
)
def test_options_that_it_does_not_go_with_are_refused(options: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=f"`bundled_pairs_first`: {message}"):
        parse_stages(["--train_file=a.csv", "--bundled_pairs_first", *options])


def test_the_card_names_the_bundled_pairs(run: Run) -> None:
    assert "trained on 1,500 English pairs that come with sts-regression" in (run() / "README.md").read_text()


def test_label_scale_and_data_report_are_told_once_in_each_run(
    pairs_file: str, train_in: Callable[..., Run], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Path(pairs_file).open("a", newline="") as file:
        csv.writer(file).writerow((*ROWS[0][:2], 2))
    run = train_in(pairs_file, "--keep_start_if_better=false", "--refit", "--bundled_pairs_first=true")
    for number in (1, 2):
        run(output_dir=tmp_path / str(number))
        assert caplog.text.count("label scale 0 1 2, guessed") == number
        assert caplog.text.count("1 training pair occurs with different labels") == number
        assert caplog.text.count("few development pairs (8)") == number
    assert "among the training pairs" not in caplog.text  # the pairs that the first training holds out
    said = caplog.text.partition("Stage 1 of 3, on bundled pairs\n")
    assert "1 training pair occurs with different labels" in said[0]
    assert ["without the held-out pairs\n" in said[2], "on all pairs\n" in said[2]] == [True, True]


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ([*ROWS, ("a", "b", "")], [], r"line 42: `label` is empty"),
        ([*ROWS, (*ROWS[0][:2], 2)], ["--strict"], "occurs with different labels"),
        (
            ROWS,
            ["--strict", "--validation_file={file}"],
            r"`strict`: .* 40 development pairs occur among the training pairs",
        ),
        ([(f"the cat {i}", f"a dog {i}", int(i == 0)) for i in range(40)], ["--folds=2"], "all labels in a fold of"),
    ],
)
def test_what_is_wrong_with_the_pairs_is_said_before_the_first_stage(
    train_in: Callable[..., Run],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    rows: list[tuple[Any, ...]],
    options: list[str],
    message: str,
) -> None:
    path = tmp_path / "pairs.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("sentence1", "sentence2", "label"), *rows])
    run = train_in(str(path), "--bundled_pairs_first=true", *(option.format(file=path) for option in options))
    with pytest.raises(ValueError, match=message):
        run()
    assert "Stage" not in caplog.text
    assert not (tmp_path / "run").exists()
