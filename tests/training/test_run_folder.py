"""The folder of a run: when it may be used, and the remains of a run that is replaced."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from sts_regression.evaluation.sts_evaluation import write_test_scores
from sts_regression.training.run_folder import (
    begin_run,
    check_output_dir,
    check_same_inputs,
    check_same_options,
    checkpoint_to_resume,
    files_trained_on,
    is_finished,
)
from sts_regression.training.training_arguments import STSTrainingArguments

OPTIONS = {"loss": "mse", "num_train_epochs": 2.0}
RESUMING = {"resume_from_checkpoint": "true"}


def arguments(folder: Path, **options: object) -> STSTrainingArguments:
    return STSTrainingArguments(output_dir=str(folder), do_train=True, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["model.safetensors", "checkpoint-5/trainer_state.json"])
def test_a_folder_that_holds_a_run_is_protected(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).touch()
    with pytest.raises(ValueError, match=r"already holds a run.*`--overwrite_output_dir`.*`--resume_from_checkpoint"):
        check_output_dir(arguments(tmp_path), OPTIONS)
    with pytest.raises(ValueError, match=r"holds weights, but no options\.json"):
        check_output_dir(arguments(tmp_path, **RESUMING), OPTIONS)
    check_output_dir(arguments(tmp_path, overwrite_output_dir=True), OPTIONS)
    own = make_checkpoint(tmp_path, "checkpoint-9")
    for named in ("true", str(own)):
        with pytest.raises(ValueError, match="`overwrite_output_dir` deletes the checkpoint"):
            check_output_dir(arguments(tmp_path, overwrite_output_dir=True, resume_from_checkpoint=named), OPTIONS)
    whole = make_checkpoint(tmp_path / "other")
    begin_run(arguments(tmp_path / "other"), OPTIONS)
    check_output_dir(arguments(tmp_path, overwrite_output_dir=True, resume_from_checkpoint=str(whole)), OPTIONS)
    with pytest.raises(ValueError, match="already holds a run"):
        check_output_dir(arguments(tmp_path, resume_from_checkpoint=str(whole)), OPTIONS)
    begin_run(arguments(tmp_path), OPTIONS)
    check_output_dir(arguments(tmp_path, **RESUMING), OPTIONS)


def make_checkpoint(run: Path, name: str = "checkpoint-5") -> Path:
    """A whole checkpoint of a run."""
    whole = run / name
    whole.mkdir(parents=True)
    (whole / "trainer_state.json").touch()
    return whole


def test_a_named_checkpoint_is_continued_with_its_model_and_pairs(tmp_path: Path) -> None:
    whole, new = make_checkpoint(tmp_path / "run"), tmp_path / "new"
    begin_run(arguments(tmp_path / "run"), OPTIONS)
    named = {"resume_from_checkpoint": str(whole)}
    check_output_dir(arguments(new, **named), {**OPTIONS, "num_train_epochs": 9.0})
    with pytest.raises(ValueError, match="other options: `learning_rate` the default, now"):
        check_output_dir(arguments(new, **named), {**OPTIONS, "learning_rate": 0.5})  # would be ignored
    batches = {**OPTIONS, "per_device_train_batch_size": 4}
    for overwriting in (False, True):
        with pytest.raises(ValueError, match="other options: `per_device_train_batch_size` the default, now 4"):
            check_output_dir(arguments(new, overwrite_output_dir=overwriting, **named), batches)
    message = (
        r"belongs to a run with other options: `loss` 'mse', now 'l1'; `train_file` the default, now 'other\.csv'"
    )
    with pytest.raises(ValueError, match=message):
        check_output_dir(arguments(new, **named), {**OPTIONS, "loss": "l1", "train_file": "other.csv"})
    with pytest.raises(ValueError, match=r"`output_dir` .* other options: `num_train_epochs` 2\.0, now 9\.0"):
        check_output_dir(arguments(tmp_path / "run", **named), {**OPTIONS, "num_train_epochs": 9.0})
    check_output_dir(arguments(tmp_path / "run", **named), OPTIONS)


def test_other_random_pairs_of_many_are_told_from_other_files(tmp_path: Path) -> None:
    whole = make_checkpoint(tmp_path / "run")
    begin_run(arguments(tmp_path / "run"), {**OPTIONS, "max_steps": 2}, {"train": "two", "files": {"a.csv": "same"}})
    longer = arguments(tmp_path / "new", resume_from_checkpoint=str(whole), max_steps=4)
    with pytest.raises(ValueError, match="`max_steps` 4 uses other random pairs of the many that there are than 2"):
        check_same_inputs(longer, {"train": "four", "files": {"a.csv": "same"}})
    with pytest.raises(ValueError, match="began with other training pairs"):
        check_same_inputs(longer, {"train": "four", "files": {"a.csv": "other"}})
    check_same_inputs(longer, {"train": "two", "files": {"a.csv": "same"}})


def test_a_checkpoint_away_from_its_run_is_not_continued(tmp_path: Path) -> None:
    copied = make_checkpoint(tmp_path / "copy")
    with pytest.raises(ValueError, match=r"lies in a folder without options\.json.*`--model_name_or_path`"):
        check_output_dir(arguments(tmp_path / "new", resume_from_checkpoint=str(copied)), OPTIONS)


@pytest.mark.parametrize(("path", "sts_data"), [("a.csv", None), ("FOLDER/a.csv", "FOLDER")])
def test_only_the_files_of_training_pairs_were_trained_on(tmp_path: Path, path: str, sts_data: str | None) -> None:
    assert files_trained_on(tmp_path) == set()
    options = {"train_file": ["a.csv"], "validation_file": ["data.csv"], "sts_data": sts_data}
    begin_run(arguments(tmp_path), options, {"files": {path: "trained", "data.csv": "scored"}})
    assert files_trained_on(tmp_path) == {"trained"}


def test_a_folder_is_free_if_it_holds_nothing_but_logs_and_runs(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    check_output_dir(arguments(folder), OPTIONS)
    check_output_dir(arguments(folder, **RESUMING), OPTIONS)
    (folder / "stage-2").mkdir(parents=True)
    for name in ("log.txt", "train.log", ".lock"):
        (folder / name).touch()
    begin_run(arguments(folder / "stage-1"), OPTIONS)
    check_output_dir(arguments(folder), OPTIONS)
    check_output_dir(arguments(folder, **RESUMING), OPTIONS)
    with pytest.raises(ValueError, match=r"is a file\. Name a folder"):
        check_output_dir(arguments(folder / "log.txt", overwrite_output_dir=True), OPTIONS)


@pytest.mark.parametrize("name", ["config.json", "report.html", "run.json", "options.json", "data/pairs.csv"])
@pytest.mark.parametrize("content", ["mine", '{"theme": "dark"}'])
def test_a_folder_with_files_of_others_is_not_written_to(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(content)
    named = re.escape(name)
    message = rf"`output_dir` .* holds files that no run wrote, such as '{named}'\. .*`--overwrite_output_dir`"
    for training in (True, False):
        args = STSTrainingArguments(output_dir=str(tmp_path), do_train=training, do_eval=True)
        with pytest.raises(ValueError, match=message):
            check_output_dir(args, OPTIONS)
        check_output_dir(arguments(tmp_path, overwrite_output_dir=True), OPTIONS)
    check_output_dir(STSTrainingArguments(output_dir=str(tmp_path)), OPTIONS)  # predicts: its file is checked
    with pytest.raises(ValueError, match=r"holds|damaged"):
        check_output_dir(arguments(tmp_path, **RESUMING), OPTIONS)


def test_the_pairs_of_a_run_may_lie_in_its_folder(tmp_path: Path) -> None:
    for name in ("pairs.csv", "other.csv"):
        (tmp_path / name).touch()
    with pytest.raises(ValueError, match=r"holds files that no run wrote, such as 'other\.csv'"):
        check_output_dir(arguments(tmp_path), OPTIONS, inputs=[tmp_path / "pairs.csv"])
    (tmp_path / "other.csv").unlink()
    check_output_dir(arguments(tmp_path), OPTIONS, inputs=[tmp_path / "pairs.csv"])


def test_an_evaluation_that_was_interrupted_may_be_repeated(tmp_path: Path) -> None:
    one = np.ones(1)
    write_test_scores(one, one, one, one, {"cosine": one}, tmp_path)
    check_output_dir(STSTrainingArguments(output_dir=str(tmp_path), do_eval=True), OPTIONS)
    (tmp_path / "test_scores.parquet").write_text("mine")
    with pytest.raises(ValueError, match="holds files that no run wrote"):
        check_output_dir(STSTrainingArguments(output_dir=str(tmp_path), do_eval=True), OPTIONS)


def test_a_run_is_resumed_with_its_options(tmp_path: Path) -> None:
    begin_run(arguments(tmp_path), {**OPTIONS, "disable_tqdm": True})
    check_same_options(tmp_path, {**OPTIONS, "cpu_threads": 4, "push_to_hub": True, "license": "mit"})
    message = "other options: `loss` 'mse', now the default; `seed` the default, now 3. Give the same ones"
    with pytest.raises(ValueError, match=re.escape(message)):
        check_same_options(tmp_path, {"num_train_epochs": 2.0, "seed": 3})


def test_a_run_of_an_earlier_version_may_record_the_form_of_its_recipe(tmp_path: Path) -> None:
    begin_run(arguments(tmp_path), {**OPTIONS, "follow": "code"})
    check_same_options(tmp_path, OPTIONS)


def test_a_run_may_have_been_moved(tmp_path: Path) -> None:
    before, after = ({"output_dir": name, "model_name_or_path": f"{name}/stage-1"} for name in ("here", "there"))
    begin_run(arguments(tmp_path), before)
    check_same_options(tmp_path, after)
    with pytest.raises(ValueError, match="other options: `model_name_or_path` 'stage-1', now 'here/stage-1'"):
        check_same_options(tmp_path, {**before, "output_dir": "there"})


def test_a_training_that_begins_has_no_record(tmp_path: Path) -> None:
    (tmp_path / "run.json").touch()  # else half a model would be taken for the one that was recorded
    begin_run(arguments(tmp_path), OPTIONS)
    assert not (tmp_path / "run.json").exists()


def test_an_interrupted_run_continues_from_its_last_whole_checkpoint(tmp_path: Path) -> None:
    for step, files in (
        (5, ["trainer_state.json"]),
        (20, ["trainer_state.json", "incomplete"]),
        (30, ["model.safetensors"]),
    ):
        (tmp_path / f"checkpoint-{step}").mkdir()
        for name in files:
            (tmp_path / f"checkpoint-{step}" / name).touch()
    args = arguments(tmp_path, **RESUMING)
    assert checkpoint_to_resume(args) == str(tmp_path / "checkpoint-5")
    begin_run(args, OPTIONS)
    assert [path.name for path in tmp_path.glob("checkpoint-*")] == ["checkpoint-5"]


@pytest.mark.parametrize("files", [[], ["model.safetensors"], ["trainer_state.json", "incomplete"]])
def test_half_a_checkpoint_is_not_continued_from_by_its_name_either(tmp_path: Path, files: list[str]) -> None:
    half = tmp_path / "checkpoint-5"
    half.mkdir()
    for name in files:
        (half / name).touch()
    with pytest.raises(ValueError, match=r"`resume_from_checkpoint` '.*checkpoint-5' holds no complete checkpoint"):
        check_output_dir(arguments(tmp_path, resume_from_checkpoint=str(half)), OPTIONS)


@pytest.mark.parametrize("content", ["", "{", "[]", '"options"'])
def test_damaged_options_are_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "options.json").write_text(content)
    with pytest.raises(ValueError, match=r"options\.json: damaged, not .*Run the command that wrote it again"):
        check_output_dir(arguments(tmp_path, **RESUMING), OPTIONS)


def test_an_evaluation_is_known_by_its_record(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps({"arguments": {"do_eval": True}}))
    check_same_options(tmp_path, {"do_eval": True})
    with pytest.raises(ValueError, match="`sts_data` the default, now 'data'"):
        check_same_options(tmp_path, {"do_eval": True, "sts_data": "data"})


@pytest.mark.parametrize(
    ("files", "options", "finished"),
    [
        (["run.json", "README.md", "model.safetensors"], RESUMING, True),
        (["run.json", "README.md", "model.safetensors"], {}, False),
        (["run.json", "README.md", "model.safetensors"], {"resume_from_checkpoint": "some/checkpoint-5"}, False),
        (["run.json", "README.md", "model.safetensors"], {**RESUMING, "do_train": False}, False),
        (["run.json", "README.md", "checkpoint-5"], RESUMING, False),
        (["run.json", "model.safetensors"], RESUMING, False),
        (["README.md", "model.safetensors"], RESUMING, False),
    ],
)
def test_a_finished_training_has_weights_a_record_and_a_card(
    tmp_path: Path, files: list[str], options: dict[str, object], finished: bool
) -> None:
    for name in files:
        (tmp_path / name).touch()
    args = STSTrainingArguments(output_dir=str(tmp_path), **{"do_train": True, **options})  # type: ignore[arg-type]
    assert is_finished(args) is finished


def test_only_checkpoints_of_trainer_and_the_record_go_with_a_run_that_is_replaced(tmp_path: Path) -> None:
    for folder in ("checkpoint-5", "checkpoint-notes", "other"):
        (tmp_path / folder).mkdir()
    results = (
        "run.json",
        "report.html",
        "test_scores.parquet",
        "sts_scores.parquet",
        "sts_tasks.png",
        "sts_tasks.csv",
    )
    for name in (*results, "model.safetensors", "checkpoint-5/trainer_state.json"):
        (tmp_path / name).touch()
    (tmp_path / "README.md").write_text("---\ntags:\n- sts-regression\n---\n")
    begin_run(arguments(tmp_path), OPTIONS)
    assert (tmp_path / "sts_tasks.png").exists()
    assert (tmp_path / "report.html").exists()
    begin_run(arguments(tmp_path, overwrite_output_dir=True), OPTIONS)
    left = ["checkpoint-notes", "model.safetensors", "options.json", "other"]
    assert sorted(path.name for path in tmp_path.iterdir()) == left
    (tmp_path / "README.md").write_text("# My project\n")
    begin_run(arguments(tmp_path, overwrite_output_dir=True), OPTIONS)
    assert (tmp_path / "README.md").exists()
