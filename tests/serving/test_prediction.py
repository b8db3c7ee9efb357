"""Predictions for files: the model's numbers in the order of the pairs, shared out, interrupted, continued."""

import contextlib
import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from transformers import PreTrainedTokenizerBase

import run_sts
from sts_regression.data.columns import PairColumns
from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.serving import prediction
from sts_regression.serving.pair_file import check_pair_file
from sts_regression.serving.prediction import write_predictions

ROOT = Path(run_sts.__file__).resolve().parent
WORDS = ("cat", "dog", "man", "park", "water", "house", "red", "big")
NUM_PAIRS = 11
NUM_PAIRS_TO_KILL, CHUNK_SIZE_TO_KILL = 3000, 50
TIMEOUT = 300  # seconds

MakeModel = Callable[..., STSRegressionModel]
Predict = Callable[..., Path]


def write_pairs(path: Path, num_pairs: int = NUM_PAIRS) -> Path:
    """Pairs of different lengths, some of them twice."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["sentence1", "sentence2"])
        for i in range(num_pairs):
            first = [WORDS[(i * k + k) % 8] for k in range(1, 2 + i % 9)]
            writer.writerow([" ".join(first), f"the {WORDS[i % 8]}, a {WORDS[i * i % 7]}"])
    return path


def read_table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def one_process(**changes: Any) -> Any:
    """The part of accelerate's Accelerator that predictions use, for a single process."""
    alone = {"process_index": 0, "num_processes": 1, "is_main_process": True, "mixed_precision": "no"}
    return SimpleNamespace(**{**alone, "autocast": contextlib.nullcontext, **changes})


@pytest.fixture
def predict(make_model: MakeModel, tokenizer: PreTrainedTokenizerBase, tmp_path: Path) -> Predict:
    """`predict(pairs_file, name, model=None, …)` writes predictions of a tiny model and returns their file."""

    def run(
        pairs: Path,
        name: str = "graded.csv",
        model: STSRegressionModel | None = None,
        chunk_size: int = 4,
        overwrite: bool = False,
        accelerator: Any = None,
        backend: str = "torch",
    ) -> Path:
        path = tmp_path / "new" / name
        write_predictions(
            *(check_pair_file(pairs), model or make_model(), tokenizer, accelerator or one_process(), path),
            *(chunk_size, overwrite),
            backend=backend,
        )
        return path

    return run


@pytest.fixture
def scored_pairs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of pairs of each chunk that is scored."""
    sizes: list[int] = []
    original = prediction.score_pairs

    def count(*arguments: Any) -> Any:
        sizes.append(len(arguments[-1]))
        return original(*arguments)

    monkeypatch.setattr(prediction, "score_pairs", count)
    return sizes


def interrupt_after(monkeypatch: pytest.MonkeyPatch, num_chunks: int) -> None:
    """Ends predictions, as an interruption does, when so many chunks are scored."""
    chunks = iter(range(num_chunks))
    original = prediction.score_pairs

    def score(*arguments: Any) -> Any:
        if next(chunks, None) is None:
            sys.exit("interrupted")
        return original(*arguments)

    monkeypatch.setattr(prediction, "score_pairs", score)


@pytest.fixture
def interrupted(predict: Predict, tmp_path: Path) -> Path:
    """The folder of the parts of predictions that were interrupted when two of three parts were there."""
    pairs = write_pairs(tmp_path / "pairs.csv")
    with pytest.MonkeyPatch.context() as patched:
        interrupt_after(patched, 2)
        with pytest.raises(SystemExit, match="interrupted"):
            predict(pairs)
    return tmp_path / "new" / "graded.csv.parts"


@pytest.mark.parametrize("name", ["graded.csv", "graded.jsonl"])
@pytest.mark.parametrize("encoder_type", ["bi-encoder", "cross-encoder"])
def test_predictions_are_what_the_model_says_of_each_pair(
    make_model: MakeModel,
    tokenizer: PreTrainedTokenizerBase,
    predict: Predict,
    tmp_path: Path,
    encoder_type: str,
    name: str,
) -> None:
    model = make_model(encoder_type=encoder_type, label_values=[-0.1, 0, 0.1], label_names=["low", "mid", "high"])
    pairs = write_pairs(tmp_path / "pairs.csv")
    path = predict(pairs, name, model)
    rows: list[Any] = read_table(path) if name.endswith(".csv") else list(map(json.loads, path.open()))
    assert [(row["sentence1"], row["sentence2"]) for row in rows] == [tuple(row.values()) for row in read_table(pairs)]
    for row in rows:
        if encoder_type == "cross-encoder":
            assert set(row) == {"sentence1", "sentence2", "score", "grade", "unreliable"}
            inputs = tokenizer(row["sentence1"], row["sentence2"], return_tensors="pt")
        else:
            both = tokenizer([row["sentence1"], row["sentence2"]], padding=True, return_tensors="pt")
            inputs = {key: tensor[None] for key, tensor in both.items()}
        with torch.no_grad():
            output = model(**inputs)
        assert float(row["score"]) == pytest.approx(output.scores.item(), abs=2e-6)
        assert (
            row["grade"] == {-0.1: "low", 0: "mid", 0.1: "high"}[round(model.predict_labels(output.scores).item(), 1)]
        )
        if encoder_type == "bi-encoder":
            u, v = output.embeddings[0]
            cosine = torch.cosine_similarity(u, v, dim=-1)
            assert float(row["cosine"]) == pytest.approx(cosine.item(), abs=2e-6)
    assert [child.name for child in path.parent.iterdir()] == [name]


def test_the_form_of_tables_and_json_lines(
    make_model: MakeModel, predict: Predict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = {"head": np.array([0.26, 1.9], dtype=np.float32), "cosine": np.array([0.25, 0.75], dtype=np.float32)}
    monkeypatch.setattr(prediction, "model_scorer", lambda *_, **__: lambda first, second: dict(scores))
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text('{"sentence1": "a", "sentence2": "b"}\n{"sentence1": "c, d", "sentence2": "é"}\n')
    model = make_model(label_values=[0, 1, 2])
    assert predict(pairs, "graded.csv", model).read_bytes().decode() == (
        'sentence1,sentence2,score,grade,cosine,unreliable\na,b,0.26,0,0.25,\n"c, d",é,1.9,2,0.75,\n'
    )
    del scores["cosine"]
    assert predict(pairs, "graded.jsonl", model).read_bytes().decode() == (
        '{"sentence1": "a", "sentence2": "b", "score": 0.26, "grade": 0, "unreliable": ""}\n'
        '{"sentence1": "c, d", "sentence2": "é", "score": 1.9, "grade": 2, "unreliable": ""}\n'
    )


def test_an_interrupted_command_goes_on_with_the_parts_that_are_missing(
    interrupted: Path, predict: Predict, scored_pairs: list[int], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert not (tmp_path / "new" / "graded.csv").exists()
    (interrupted / "part-000002.partial").write_text("half a p")
    (interrupted / "part-000000").unlink()
    caplog.set_level("INFO")
    graded = predict(tmp_path / "pairs.csv")
    assert scored_pairs == [4, 3]
    assert f"1 of 3 parts are in {interrupted} already" in caplog.messages
    assert graded.read_bytes() == predict(tmp_path / "pairs.csv", "whole.csv").read_bytes()
    assert {path.name for path in graded.parent.iterdir()} == {"graded.csv", "whole.csv"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pairs": True}, "with other pairs. Repeat"),
        ({"chunk_size": 5}, "with other `predict_chunk_size`. Repeat"),
        ({"model": {"pooling": "cls"}}, "with other model. Repeat"),
        ({"accelerator": one_process(mixed_precision="bf16")}, "with other mixed precision. Repeat"),
        ({"backend": "onnx-int8"}, "with other `backend`. Repeat"),
    ],
    ids=["pairs", "chunk size", "model", "precision", "backend"],
)
def test_parts_of_other_predictions_are_kept_unless_they_may_be_replaced(
    interrupted: Path,
    predict: Predict,
    make_model: MakeModel,
    scored_pairs: list[int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: dict[str, Any],
    message: str,
) -> None:
    monkeypatch.setattr(prediction, "on_backend", lambda model, *_: model)
    before = {path: path.read_bytes() for path in interrupted.iterdir()}
    pairs = write_pairs(tmp_path / "pairs.csv", NUM_PAIRS - 1 if change.pop("pairs", False) else NUM_PAIRS)
    if "model" in change:
        change = {"model": make_model(**change["model"])}
    with pytest.raises(ValueError, match=re.escape(message)):
        predict(pairs, **change)
    assert {path: path.read_bytes() for path in interrupted.iterdir()} == before
    predict(pairs, overwrite=True, **change)
    assert sum(scored_pairs) == len(read_table(pairs))


def test_parts_of_unknown_origin_are_not_taken_over(
    interrupted: Path, predict: Predict, scored_pairs: list[int], tmp_path: Path
) -> None:
    (interrupted / "manifest.json").unlink()
    predict(tmp_path / "pairs.csv")
    assert scored_pairs == [4, 4, 3]


def test_a_folder_that_processes_do_not_share_is_refused(
    predict: Predict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prediction, "broadcast_object_list", lambda objects: objects.__setitem__(0, [0, 1, 2]))
    second = one_process(process_index=1, num_processes=2, is_main_process=False)
    with pytest.raises(ValueError, match=r"process 1 does not see '.*graded\.csv\.parts'.* all machines share"):
        predict(write_pairs(tmp_path / "pairs.csv"), accelerator=second)


@pytest.fixture
def checkpoint(make_model: MakeModel, tokenizer: PreTrainedTokenizerBase, tmp_path: Path) -> Path:
    folder = tmp_path / "checkpoint"
    make_model().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def options(checkpoint: Path, pairs: Path, output: Path, chunk_size: int) -> list[str]:
    return [
        *(f"--model_name_or_path={checkpoint}", f"--predict_file={pairs}", f"--predict_output={output}"),
        *(f"--predict_chunk_size={chunk_size}", f"--output_dir={output.parent / 'unused'}", "--cpu_threads=1"),
        *("--disable_tqdm=true", "--report_to=none"),
    ]


def test_a_bad_line_is_told_before_anything_is_written(checkpoint: Path, tmp_path: Path) -> None:
    pairs, output = write_pairs(tmp_path / "pairs.csv"), tmp_path / "graded.csv"
    pairs.write_text(pairs.read_text() + "a,\n")
    output.write_text("old")
    with pytest.raises(ValueError, match=r"pairs\.csv: 1 bad value \(line 13: `sentence2` is empty\)"):
        run_sts.run_stages([*options(checkpoint, pairs, output, chunk_size=2), "--overwrite_output_dir"])
    assert output.read_text() == "old"
    assert not (tmp_path / "graded.csv.parts").exists()


def test_a_killed_command_is_continued(checkpoint: Path, scored_pairs: list[int], tmp_path: Path) -> None:
    pairs, output = write_pairs(tmp_path / "pairs.csv", NUM_PAIRS_TO_KILL), tmp_path / "graded.csv"
    command = options(checkpoint, pairs, output, CHUNK_SIZE_TO_KILL)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen([sys.executable, "run_sts.py", *command], env=environment)
    first = tmp_path / "graded.csv.parts" / "part-000000"
    end = time.monotonic() + TIMEOUT
    while not first.is_file() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    there = [path for path in first.parent.glob("part-*") if path.suffix == ""]
    assert there
    assert not output.exists()
    run_sts.run_stages(command)
    assert len(scored_pairs) == NUM_PAIRS_TO_KILL // CHUNK_SIZE_TO_KILL - len(there)
    whole = tmp_path / "whole.csv"
    run_sts.run_stages(options(checkpoint, pairs, whole, CHUNK_SIZE_TO_KILL))
    assert output.read_bytes() == whole.read_bytes()
    assert not first.parent.exists()


def test_a_training_that_was_interrupted_while_it_predicted_is_resumed(
    tiny_encoder_path: Path, scored_pairs: list[int], tmp_path: Path
) -> None:
    pairs, run = write_pairs(tmp_path / "pairs.csv"), tmp_path / "run"
    lines = pairs.read_text().splitlines()
    labels = ["label", *(str(i % 6) for i in range(NUM_PAIRS))]
    pairs.write_text("".join(f"{line},{label}\n" for line, label in zip(lines, labels, strict=True)))
    command = options(tiny_encoder_path, pairs, run / "predictions.csv", chunk_size=4)
    command += [f"--train_file={pairs}", f"--validation_file={pairs}", "--num_train_epochs=2", f"--output_dir={run}"]
    with pytest.MonkeyPatch.context() as patched:
        interrupt_after(patched, 2)
        with pytest.raises(SystemExit, match="interrupted"):
            run_sts.run_stages(command)
    scored_pairs.clear()
    run_sts.run_stages([*command, "--resume_from_checkpoint=true"])
    assert scored_pairs == [3]
    assert len(read_table(run / "predictions.csv")) == NUM_PAIRS
    assert (run / "run.json").is_file()


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_the_other_columns_of_the_file_are_kept(predict: Predict, tmp_path: Path, suffix: str) -> None:
    pairs = tmp_path / f"pairs.{suffix}"
    frame = pd.DataFrame({"id": ["x", "y"], "sentence1": ["a", "b"], "score": [0.5, 2.0], "sentence2": ["c", "d"]})
    if suffix == "csv":
        frame.to_csv(pairs, index=False)
    elif suffix == "jsonl":
        frame.to_json(pairs, orient="records", lines=True)
    else:
        frame.assign(day=pd.Timestamp("2026-01-02"), missing=float("nan")).to_parquet(pairs)
    rows = read_table(predict(pairs))
    names = ["sentence1", "sentence2", "score", "grade", "cosine", "unreliable", "id", "input_score"]
    assert list(rows[0])[:8] == names
    assert [(row["id"], float(row["input_score"])) for row in rows] == [("x", 0.5), ("y", 2.0)]
    lines = [json.loads(line) for line in predict(pairs, "graded.jsonl").read_text().splitlines()]
    assert [line["id"] for line in lines] == ["x", "y"]
    if suffix == "parquet":
        assert (lines[0]["day"], lines[0]["missing"]) == ("2026-01-02 00:00:00", None)


def test_the_sentences_keep_the_names_of_their_columns(
    make_model: MakeModel, tokenizer: PreTrainedTokenizerBase, tmp_path: Path
) -> None:
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("id,Frage,score,sentence1\n7,a,c,x\n8,b,d,y\n")
    for name in ("graded.csv", "graded.jsonl"):
        checked = check_pair_file(pairs, PairColumns("Frage", "score"))
        write_predictions(checked, make_model(), tokenizer, one_process(), tmp_path / name, chunk_size=1)
    rows = read_table(tmp_path / "graded.csv")
    names = ["Frage", "input_score", "score", "grade", "cosine", "unreliable", "id", "sentence1"]
    assert list(rows[0]) == names
    kept = [("a", "c", "7", "x"), ("b", "d", "8", "y")]
    assert [(row["Frage"], row["input_score"], row["id"], row["sentence1"]) for row in rows] == kept
    lines = [json.loads(line) for line in (tmp_path / "graded.jsonl").read_text().splitlines()]
    assert [(line["Frage"], line["input_score"], line["id"], line["sentence1"]) for line in lines] == kept


def test_no_column_is_lost_if_rows_differ_or_a_name_is_taken(predict: Predict, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.jsonl"
    given = [
        {"sentence1": "a", "sentence2": "b", "input_score": 4.0, "score": 2.0},
        {"sentence1": "c", "sentence2": "d", "comment": "unsure"},
    ]
    pairs.write_text("".join(json.dumps(row) + "\n" for row in given))
    rows = read_table(predict(pairs))
    assert [row["comment"] for row in rows] == ["", "unsure"]
    assert [(row["input_score"], row["input_input_score"]) for row in rows] == [("4.0", "2.0"), ("", "")]


@pytest.mark.slow
@pytest.mark.parametrize("num_processes", [2, 3])
def test_several_processes_write_what_one_writes(
    checkpoint: Path, tmp_path: Path, launch: Callable[..., subprocess.CompletedProcess[str]], num_processes: int
) -> None:
    # One launch for two files: one with more chunks than processes, one with less.
    commands = {}
    for name, num_pairs in (("many", 50), ("few", 1)):
        pairs = write_pairs(tmp_path / f"{name}-pairs.csv", num_pairs)
        commands[name] = options(checkpoint, pairs, tmp_path / f"{name}.csv", chunk_size=4)
        run_sts.run_stages([*commands[name], f"--predict_output={tmp_path / f'{name}-alone.csv'}"])
    program = tmp_path / "program.py"
    program.write_text(
        "import atexit, os, torch, run_sts\n"
        "line = 'group at exit: {}\\n'\n"  # in a single write, since other processes write there, too
        "atexit.register(lambda: os.write(1, line.format(torch.distributed.is_initialized()).encode()))\n"
        f"for command in {list(commands.values())}:\n    run_sts.main(command)\n"
    )
    finished = launch(program, num_processes=num_processes)
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.count("predictions: ") == len(commands)
    assert finished.stdout.count("group at exit: False") == num_processes
    for name in commands:
        assert (tmp_path / f"{name}.csv").read_bytes() == (tmp_path / f"{name}-alone.csv").read_bytes()
        assert not (tmp_path / f"{name}.csv.parts").exists()


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[int] = []
    original = prediction.score_pairs

    def score(*arguments: Any) -> Any:
        held.append(psutil.Process().memory_info().rss)
        return original(*arguments)

    monkeypatch.setattr(prediction, "score_pairs", score)
    sentences = [f"{WORDS[i % 8]} {'the ' * 125}" for i in range(60_000)]
    table = pa.table({"sentence1": sentences, "sentence2": sentences[::-1]})
    peaks = []
    for num_pairs in (1_000, 60_000):
        pairs = tmp_path / f"{num_pairs}.parquet"
        pq.write_table(table.slice(0, num_pairs), pairs, use_dictionary=False)
        run_sts.run_stages(options(checkpoint, pairs, tmp_path / f"{num_pairs}.csv", chunk_size=500))
        peaks.append(max(held))
    assert len(held) == 122
    size = (tmp_path / "60000.csv").stat().st_size
    assert peaks[1] - peaks[0] < size / 2, (peaks, size)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_line_breaks_and_missing_numbers_are_read_back(predict: Predict, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / "pairs.jsonl"
    rows = [
        {"sentence1": "a cat\rsits", "sentence2": "a dog\nsits", "id": 1, "more": {"p": float("nan"), "q": [1.0]}},
        {"sentence1": "a man", "sentence2": "a\r\nhouse", "id": 2, "more": None},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    predicted = predict(path, f"graded{suffix}")
    with predicted.open(newline="") as file:
        found = list(csv.DictReader(file)) if suffix == ".csv" else list(map(json.loads, file))
    assert [row["sentence1"] for row in found] == [row["sentence1"] for row in rows]
    assert [row["sentence2"] for row in found] == [row["sentence2"] for row in rows]
    assert str(found[0]["more"]) == "{'p': None, 'q': [1.0]}"


def test_half_a_character_in_a_further_column_is_told_at_once(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text('{"sentence1": "a", "sentence2": "b", "note": "cut \\ud83d"}\n')
    with pytest.raises(ValueError, match="a further column of pair 1 holds half of a character"):
        check_pair_file(path)
