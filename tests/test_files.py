"""Outputs never land on an input, and replace a file only if told to."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from transformers import PreTrainedTokenizerBase

import run_sts
from sts_regression.basics.files import alone_in, check_output, is_same_place
from sts_regression.basics.tables import read_record
from sts_regression.data import leakage
from sts_regression.hub.model_card import model_card_of
from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.search import exact as search
from sts_regression.sweep.summary import summarize

ROOT = Path(__file__).resolve().parent.parent
PAIRS = "sentence1,sentence2,label\n" + "".join(f"the cat {i},a dog {i},{i % 3}\n" for i in range(12))

MakeModel = Callable[..., STSRegressionModel]
SaveCheckpoint = Callable[[STSRegressionModel, PreTrainedTokenizerBase, Path], Path]


@pytest.fixture
def checkpoint(
    make_model: MakeModel, save_checkpoint: SaveCheckpoint, tokenizer: PreTrainedTokenizerBase, tmp_path: Path
) -> Path:
    return save_checkpoint(make_model(label_values=[0, 1, 2]), tokenizer, tmp_path / "model")


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.csv"
    path.write_text(PAIRS)
    return path


def predict(checkpoint: Path, pairs: Path, output: Path, *options: str) -> None:
    run_sts.run_stages(
        [
            *(f"--model_name_or_path={checkpoint}", f"--predict_file={pairs}", f"--predict_output={output}"),
            *(f"--output_dir={pairs.parent / 'run'}", "--disable_tqdm=true", "--report_to=none", *options),
        ]
    )


def test_a_new_file_is_accepted(tmp_path: Path) -> None:
    check_output("output_file", tmp_path / "new.csv", [tmp_path / "gone.csv", None], "--overwrite")


@pytest.mark.parametrize("link", ["same", "relative", "symbolic", "hard"])
def test_an_input_is_refused_under_any_of_its_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, link: str
) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text(PAIRS)
    monkeypatch.chdir(tmp_path)
    output = {"same": path, "relative": Path("pairs.csv")}.get(link, tmp_path / "link.csv")
    if link == "symbolic":
        output.symlink_to(path)
    if link == "hard":
        os.link(path, output)
    with pytest.raises(ValueError, match=r"`output_file` .* is one of the files to read"):
        check_output("output_file", output, [None, path], remedy=None)
    assert is_same_place(output, path)


def test_an_input_is_not_what_an_output_is_called_while_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "hits.jsonl.partial"
    path.write_text("mine")
    with pytest.raises(ValueError, match=r"is first written to 'hits\.jsonl\.partial', which is one of the"):
        check_output("output_file", tmp_path / "hits.jsonl", [path], remedy=None)


def test_an_existing_file_is_replaced_only_if_told_to(tmp_path: Path) -> None:
    path = tmp_path / "notes.csv"
    path.write_text("mine")
    with pytest.raises(ValueError, match=r"exists\. Name another file, or replace it with `--overwrite`"):
        check_output("output_file", path, [], "--overwrite")
    check_output("output_file", path, [], None)


@pytest.mark.parametrize(("name", "message"), [("", "is a folder"), ("x" * 300, "cannot be written")])
def test_what_cannot_be_a_file_is_refused(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_output("output_file", tmp_path / name, [], None)


@pytest.mark.parametrize("option", [(), ("--overwrite_output_dir",)])
def test_predictions_do_not_destroy_the_pairs_that_they_are_of(
    checkpoint: Path, pairs: Path, option: tuple[str, ...]
) -> None:
    with pytest.raises(ValueError, match=r"`predict_output` .*pairs\.csv' is one of the files to read"):
        predict(checkpoint, pairs, pairs, *option)
    assert pairs.read_text() == PAIRS


def test_predictions_replace_another_file_only_if_told_to(checkpoint: Path, pairs: Path, tmp_path: Path) -> None:
    other = tmp_path / "thesis.csv"
    other.write_text("mine")
    with pytest.raises(ValueError, match=re.escape("replace it with `--overwrite_output_dir`")):
        predict(checkpoint, pairs, other)
    assert other.read_text() == "mine"
    predict(checkpoint, pairs, other, "--overwrite_output_dir")
    assert other.read_text().startswith("sentence1,sentence2,score,grade,cosine")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--pair_features", "v", "u", "abs_diff"], "`pair_features` is .*trained with"),
        (["--pooling", "cls"], "`pooling` is 'cls', but the checkpoint was trained with 'mean'"),
        (["--loss", "mse"], "`loss` is 'mse', but the checkpoint was trained with 'smooth_k2'"),
        (["--sentence1_prefix", "query: "], "`sentence1_prefix` is 'query: ', but"),
        (["--label_values", "0", "50", "100"], r"`label_values` is \[0\.0, 50\.0, 100\.0\], but .* with \[0\.0, 1"),
        (["--grade_names", "bad", "good"], r"`grade_names` is \['bad', 'good'\], but the .* trained with None"),
    ],
)
def test_a_checkpoint_is_scored_as_it_was_trained(
    checkpoint: Path, pairs: Path, tmp_path: Path, options: list[str], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        predict(checkpoint, pairs, tmp_path / "graded.csv", *options)


@pytest.mark.parametrize("name", ["corpus.txt", "queries.txt"])
def test_hits_do_not_destroy_the_texts_that_are_searched(checkpoint: Path, tmp_path: Path, name: str) -> None:
    for file in ("corpus.txt", "queries.txt"):
        (tmp_path / file).write_text("a cat\n")
    files = [f"--{kind}={tmp_path / kind}.txt" for kind in ("corpus", "queries")]
    with pytest.raises(SystemExit, match="is one of the files to read"):
        search.main([f"--model_name_or_path={checkpoint}", *files, f"--output_file={tmp_path / name}", "--overwrite"])
    assert (tmp_path / name).read_text() == "a cat\n"


def test_counts_of_leaks_do_not_destroy_the_pairs_that_are_compared(pairs: Path, tmp_path: Path) -> None:
    command = [f"--train_file={pairs}", f"--test_file={pairs}"]
    with pytest.raises(SystemExit, match="is one of the files to read"):
        leakage.main([*command, f"--output_file={pairs}", "--overwrite"])
    assert pairs.read_text() == PAIRS
    counts = tmp_path / "counts.json"
    leakage.main([*command, f"--output_file={counts}"])
    with pytest.raises(SystemExit, match="replace it with `--overwrite`"):
        leakage.main([*command, f"--output_file={counts}"])


def files_in(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_hits_do_not_destroy_the_model_that_searches(checkpoint: Path, pairs: Path) -> None:
    before = files_in(checkpoint)
    texts = [f"--{kind}={pairs.parent / 'texts.txt'}" for kind in ("corpus", "queries")]
    (pairs.parent / "texts.txt").write_text("a cat\n")
    for name in ("config.json", "encoder/modules.json"):
        with pytest.raises(SystemExit, match="is one of the files to read"):
            search.main(
                [f"--model_name_or_path={checkpoint}", *texts, f"--output_file={checkpoint / name}", "--overwrite"]
            )
    assert files_in(checkpoint) == before


def test_counts_of_leaks_do_not_destroy_the_sts_tasks(pairs: Path, tmp_path: Path) -> None:
    for name in ("sts/sts12.jsonl", "stsbenchmark/sts-test.csv"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("mine")
        command = [f"--train_file={pairs}", f"--sts_data={tmp_path}", f"--output_file={tmp_path / name}"]
        with pytest.raises(SystemExit, match="is one of the files to read"):
            leakage.main([*command, "--overwrite"])
        assert (tmp_path / name).read_text() == "mine"


def test_predictions_do_not_destroy_the_sts_tasks_but_may_lie_beside_their_model(
    checkpoint: Path, pairs: Path, small_sts_data: Path
) -> None:
    output = small_sts_data / "stsbenchmark" / "sts-test.csv"
    before = files_in(small_sts_data)
    with pytest.raises(ValueError, match="is one of the files to read"):
        predict(checkpoint, pairs, output, "--do_eval", f"--sts_data={small_sts_data}", "--overwrite_output_dir")
    assert files_in(small_sts_data) == before
    for _ in range(2):
        predict(checkpoint, pairs, checkpoint / "graded.csv", "--overwrite_output_dir")


def test_predictions_leave_a_folder_of_others_alone(checkpoint: Path, pairs: Path, tmp_path: Path) -> None:
    notes = tmp_path / "graded.csv.parts" / "notes.md"
    notes.parent.mkdir()
    notes.write_text("mine")
    with pytest.raises(ValueError, match=r"`predict_output` '.*parts' holds files that no run wrote, such as 'notes"):
        predict(checkpoint, pairs, tmp_path / "graded.csv")
    predict(checkpoint, pairs, tmp_path / "graded.csv", "--overwrite_output_dir")
    assert [path.name for path in notes.parent.iterdir()] == ["notes.md"]


@pytest.mark.parametrize(("model", "output"), [(".", "encoder"), ("encoder", ".")])
def test_an_export_does_not_destroy_the_model_that_it_reads(checkpoint: Path, model: str, output: str) -> None:
    pytest.importorskip("onnxruntime")
    from sts_regression.serving import export

    before = files_in(checkpoint)
    with pytest.raises(SystemExit, match=r"`output_dir` .* is the checkpoint, or would replace it"):
        export.main([str(checkpoint / model), f"--output_dir={checkpoint / output}", "--overwrite"])
    assert files_in(checkpoint) == before


def train(model: Path, pairs: Path, folder: Path, *options: str) -> None:
    run_sts.run_stages(
        [
            *(f"--model_name_or_path={model}", f"--train_file={pairs}", f"--validation_file={pairs}"),
            *(f"--output_dir={folder}", "--report_to=none", "--disable_tqdm=true", "--num_train_epochs=1"),
            *("--leak_filter=none", "--bundled_pairs_first=false", *options),
        ]
    )


@pytest.mark.parametrize("name", [".", "encoder", "checkpoint-3"])
def test_training_does_not_destroy_the_model_that_it_starts_from(checkpoint: Path, pairs: Path, name: str) -> None:
    if name == "checkpoint-3":
        shutil.copytree(checkpoint, checkpoint.parent / name)
        shutil.move(checkpoint.parent / name, checkpoint)
    before = files_in(checkpoint)
    with pytest.raises(ValueError, match=r"`output_dir` .* (the model that is read|has a folder 'encoder')"):
        train(checkpoint / name, pairs, checkpoint, "--overwrite_output_dir")
    assert files_in(checkpoint) == before


def test_an_evaluation_does_not_destroy_the_record_of_its_model_or_its_pairs(
    checkpoint: Path, pairs: Path, tmp_path: Path
) -> None:
    command = ["--do_eval", f"--model_name_or_path={checkpoint}", "--report_to=none", "--overwrite_output_dir"]
    with pytest.raises(ValueError, match="is, or holds, the model that is read"):
        run_sts.run_stages([*command, f"--test_file={pairs}", f"--output_dir={checkpoint}"])
    scores = tmp_path / "scored" / "test_scores.parquet"
    scores.parent.mkdir()
    pd.read_csv(pairs).to_parquet(scores)
    before = scores.read_bytes()
    with pytest.raises(ValueError, match=r"`output_dir` .* holds .*test_scores\.parquet, one of the files to read"):
        run_sts.run_stages([*command, f"--test_file={scores}", f"--output_dir={scores.parent}"])
    assert scores.read_bytes() == before


def test_training_replaces_files_of_others_only_if_told_to_and_only_by_its_own(
    tiny_encoder_path: Path, pairs: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "project"
    for name in ("config.json", "report.html", "notes.md", "checkpoint-7/notes.md"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("mine")
    before = files_in(folder)
    for option in ("--resume_from_checkpoint=true", "--do_train"):
        with pytest.raises(ValueError, match=r"`output_dir` .* holds .*`--overwrite_output_dir`"):
            train(tiny_encoder_path, pairs, folder, option)
    assert files_in(folder) == before
    train(tiny_encoder_path, pairs, folder, "--overwrite_output_dir")
    assert {path for path, content in before.items() if path.read_bytes() == content} == {
        *(folder / "notes.md", folder / "checkpoint-7" / "notes.md")
    }
    kept = folder / "encoder" / "notes.md"
    kept.write_text("mine")
    (folder / "encoder" / "config_sentence_transformers.json").write_text("of an earlier model")
    train(tiny_encoder_path, pairs, folder, "--overwrite_output_dir")
    assert kept.read_text() == "mine"
    assert not (folder / "encoder" / "config_sentence_transformers.json").exists()
    train(tiny_encoder_path, pairs, folder, "--overwrite_output_dir", "--encoder_type=cross-encoder", "--loss=mse")
    assert [path.name for path in (folder / "encoder").iterdir()] == ["notes.md"]


def test_a_file_is_not_taken_for_a_folder(tmp_path: Path) -> None:
    (tmp_path / "pairs.csv").touch()
    with pytest.raises(ValueError, match=r"^`output_dir` '.*pairs\.csv' is a file\. Name a folder\.$"):
        with alone_in(tmp_path / "pairs.csv"):
            pytest.fail("it is locked")


def test_one_process_at_a_time_writes_to_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "run"
    code = "import sys, pathlib\nfrom sts_regression.basics.files import alone_in\n"
    code += "try:\n    with alone_in(pathlib.Path(sys.argv[1])): print('free')\n"
    code += "except ValueError as error: print(error)"

    def another(temporary: str) -> str:
        command = [sys.executable, "-c", code, str(folder)]
        return subprocess.run(
            command, cwd=ROOT, env={**os.environ, "TMPDIR": temporary}, capture_output=True, text=True
        ).stdout

    with alone_in(folder):
        message = (
            f"`output_dir` '{folder}': another process is writing there. Wait for it, end it, or give "
            "another `--output_dir`.\n"
        )
        assert another(str(tmp_path)) == message
        with alone_in(tmp_path / "other"):
            (tmp_path / "other" / "model").touch()
    assert not folder.exists()  # nothing was written
    assert {path.name for path in (tmp_path / "other").iterdir()} == {"model"}
    assert another(str(tmp_path)) == "free\n"


@pytest.mark.parametrize("command", ["predict", "evaluate", "train", "export"])
def test_commands_that_write_to_one_place_are_kept_apart(
    checkpoint: Path, pairs: Path, tmp_path: Path, command: str
) -> None:
    output = tmp_path / "output"
    data = {"evaluate": f"--test_file={pairs}", "train": f"--train_file={pairs}"}
    with alone_in(output if command != "predict" else tmp_path / "output.csv.parts"):
        if command == "predict":
            with pytest.raises(ValueError, match=r"`predict_output` '.*parts': another process is writing there"):
                predict(checkpoint, pairs, tmp_path / "output.csv")
        elif command == "export":
            pytest.importorskip("onnxruntime")
            from sts_regression.serving import export

            with pytest.raises(SystemExit, match=r"error: `output_dir` '.*output': another process is writing there"):
                export.main([str(checkpoint), f"--output_dir={output}", "--overwrite"])
        else:
            options = [f"--model_name_or_path={checkpoint}", f"--output_dir={output}", data[command]]
            with pytest.raises(ValueError, match=r"`output_dir` '.*output': another process is writing there"):
                run_sts.run_stages(options)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not valid JSON"),
        (b"\xff{", "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        (b"[1]", "not a mapping"),
    ],
)
def test_a_damaged_record_is_named(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(content)
    expected = rf"^{re.escape(str(path))}: damaged, {reason}"
    with pytest.raises(ValueError, match=expected):
        read_record(path)
    with pytest.raises(ValueError, match=expected):
        model_card_of(tmp_path)
    with pytest.raises(ValueError, match=expected):
        summarize({"cell": [tmp_path]}, ["cell"])


def test_a_record_that_is_no_file_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "run.json")
    with pytest.raises(ValueError, match=r"run\.json: no such file"):
        model_card_of(tmp_path)
