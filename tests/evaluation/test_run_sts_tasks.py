"""The command with `--sts_data`: the seven tasks for encoders, checkpoints and sentence-transformers models."""

import csv
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from scipy import stats
from transformers import AutoModel, AutoTokenizer

import run_sts
from sts_regression.data import sts_tasks
from sts_regression.data.pairs import read_pairs
from sts_regression.data.sts_tasks import TASK_NAMES, load_sts_tasks
from sts_regression.evaluation.sts_evaluation import read_scores
from sts_regression.hub.public_record import public_record
from sts_regression.models.encoding import score_with_embeddings

REPORT = {"sts_tasks.json", "sts_tasks.csv", "sts_tasks.md", "sts_tasks.png", "sts_scores.parquet", "run.json"}

Run = Callable[..., dict[str, Any]]


@pytest.fixture
def run(small_sts_data: Path, tiny_encoder_path: Path, tmp_path: Path) -> Run:
    """`run(*options)` runs the command with the small tasks and returns its record; `model` is the tiny encoder."""

    def run(*options: str, model: Path = tiny_encoder_path, output: str = "run") -> dict[str, Any]:
        common = [f"--sts_data={small_sts_data}", f"--output_dir={tmp_path / output}", "--disable_tqdm=true"]
        run_sts.run_stages([f"--model_name_or_path={model}", "--report_to=none", *common, *options])
        return json.loads((tmp_path / output / "run.json").read_text())

    return run


def train(run: Run, data: Path, *options: str, more: Sequence[Path] = ()) -> dict[str, Any]:
    files = [data / "stsbenchmark" / "sts-train.csv", *more]
    validation = f"--validation_file={data / 'sick' / 'SICK_trial.txt'}"
    return run("--train_file", *map(str, files), validation, "--num_train_epochs=1", *options)


def test_an_encoder_has_the_scores_of_transformers_and_scipy_alone(
    run: Run, small_sts_data: Path, tiny_encoder_path: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    record = run("--do_eval")
    assert {path.name for path in (tmp_path / "run").iterdir()} == REPORT
    measures = record["sts_tasks"]
    assert list(measures["tasks"]) == list(TASK_NAMES)
    assert set(measures["average"]) == {"cosine", "dot"}  # there is no trained head
    assert f"{100 * measures['average']['cosine']['all']['spearman']:.2f}" in "\n".join(caplog.messages)

    encoder, tokenizer = AutoModel.from_pretrained(tiny_encoder_path), AutoTokenizer.from_pretrained(tiny_encoder_path)

    def encode(sentences: Sequence[str]) -> torch.Tensor:
        with torch.no_grad():
            hidden = [encoder(**tokenizer(text, return_tensors="pt")).last_hidden_state for text in sentences]
        return torch.cat([states.mean(dim=1) for states in hidden])

    for task in load_sts_tasks(small_sts_data):
        pairs = task.pairs[:]
        cosine = score_with_embeddings(encode, pairs["sentence1"], pairs["sentence2"])["cosine"]
        expected = stats.pearsonr(cosine, pairs["label"]).statistic
        assert measures["tasks"][task.name]["cosine"]["all"]["pearson"] == pytest.approx(expected, abs=1e-4)
        assert record["data"][task.name]["pairs"] == 12
        assert len(record["data"][task.name]["sha256"]) == 64


def test_a_training_leaves_out_pairs_of_the_tasks_and_ends_with_these(
    run: Run, small_sts_data: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    leaked = load_sts_tasks(small_sts_data)[0].pairs[0]
    rows = [("sentence1", "sentence2", "label"), (leaked["sentence2"].upper(), leaked["sentence1"], 3), ("x", "y", 1)]
    with (tmp_path / "more.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    record = train(run, small_sts_data, more=[tmp_path / "more.csv"])
    assert set(record["sts_tasks"]["average"]) == {"cosine", "dot", "head"}
    assert record["data"]["train"]["pairs"] == 13
    counts = record["leakage"]["train"]
    assert [count["found"] for count in counts.values()] == [0, 1]
    leaks = counts[str(tmp_path / "more.csv")]
    assert (leaks["leak_filter"], leaks["removed"], leaks["by_test_set"]["STS12"]) == ("normalized", 1, 1)
    assert "training pairs that are test pairs, left out" in "\n".join(caplog.messages)


def test_a_checkpoint_keeps_the_scores_it_was_trained_to(run: Run, small_sts_data: Path, tmp_path: Path) -> None:
    trained = train(run, small_sts_data)["sts_tasks"]
    loaded = run("--do_eval", model=tmp_path / "run", output="evaluation")["sts_tasks"]
    assert set(loaded["average"]) == {"cosine", "dot", "head"}
    for score in ("cosine", "head"):
        expected = trained["average"][score]["all"]
        assert loaded["average"][score]["all"]["pearson"] == pytest.approx(expected["pearson"], abs=1e-5)
    scores = [read_scores(tmp_path / name)["gold_score"] for name in ("run", "evaluation")]
    assert list(scores[0]) == list(scores[1])


def test_a_cross_encoder_has_the_head_alone(run: Run, small_sts_data: Path) -> None:
    record = train(run, small_sts_data, "--encoder_type=cross-encoder")
    assert set(record["sts_tasks"]["average"]) == {"head"}


def test_a_loss_without_a_head_leaves_the_cosine_and_the_dot_product(
    run: Run, small_sts_data: Path, tmp_path: Path
) -> None:
    trained = train(run, small_sts_data, "--loss=cosent")
    loaded = run("--do_eval", model=tmp_path / "run", output="evaluation")
    for record in (trained, loaded):
        assert set(record["sts_tasks"]["average"]) == {"cosine", "dot"}


def test_sick_may_be_scored_whole(run: Run) -> None:
    record = run("--do_eval", "--sick_split=all")
    assert record["sts_tasks"]["tasks"]["SICK-R"]["pairs"] == 36
    assert len(record["data"]["SICK-R"]["parts"]) == 3


def test_the_record_says_which_version_of_stsb_was_scored(
    run: Run, small_sts_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sts_tasks, "STSB_VERSION_2_PAIRS", 12)
    record = run("--do_eval", "--stsb_version=2")
    assert record["arguments"]["stsb_version"] == 2
    source = f"{small_sts_data / 'stsbenchmark' / 'sts-test.csv'} (version 2)"
    assert record["data"]["STS-B"]["source"] == source
    assert public_record(record)["data"]["STS-B"]["source"] == "sts-test.csv (version 2)"
    assert record["sts_tasks"]["tasks"]["STS-B"]["pairs"] == 12


def test_pairs_of_ones_own_are_scored_beside_the_tasks(run: Run, small_sts_data: Path) -> None:
    test_file = small_sts_data / "sick" / "SICK_trial.txt"
    record = run("--do_eval", f"--test_file={test_file}")
    assert record["results"]["as loaded"]["test"]["spearman_cosine"] is not None
    assert record["data"]["test"]["pairs"] == len(read_pairs(test_file).pairs)


def test_training_files_are_found_in_the_folder_of_the_tasks(run: Run) -> None:
    record = run(
        *("--train_file", "stsbenchmark/sts-train.csv", "sick/SICK_train.txt"),
        *("--validation_file", "stsbenchmark/sts-dev.csv", "sick/SICK_trial.txt"),
        *("--leak_filter=exact", "--dev_leak_filter=exact", "--num_train_epochs=1"),
    )
    assert [part["label_scale"] for part in record["data"]["train"]["parts"]] == [[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5]]
    assert record["model"]["config"]["label_values"] == [0, 1, 2, 3, 4, 5]
    filters = [counts["leak_filter"] for sets in record["leakage"].values() for counts in sets.values()]
    assert filters == ["exact"] * 4


def test_a_sentence_transformers_model_that_ours_cannot_be_is_scored_by_its_library(
    run: Run, small_sts_data: Path, tiny_encoder_path: Path, tmp_path: Path
) -> None:
    library = pytest.importorskip("sentence_transformers", reason="the sentence-transformers extra is not installed")
    from sentence_transformers.sentence_transformer.modules import Dense, Pooling, Transformer

    torch.manual_seed(0)
    modules = [Transformer(str(tiny_encoder_path)), Pooling(32), Dense(32, 8)]
    model = library.SentenceTransformer(modules=modules, device="cpu")
    model.save(str(tmp_path / "dense"))
    record = run("--do_eval", model=tmp_path / "dense")
    first = load_sts_tasks(small_sts_data)[0].pairs[0]
    u, v = model.encode([first["sentence1"], first["sentence2"]], convert_to_tensor=True)
    expected = torch.cosine_similarity(u, v, dim=0).item()
    assert read_scores(tmp_path / "run")[0]["cosine"] == pytest.approx(expected, abs=1e-5)
    assert record["model"] == {"base_model": "dense", "modules": ["a module Dense"]}
    assert {path.name for path in (tmp_path / "run").iterdir()} == REPORT


def test_a_wrong_folder_is_said_before_anything_is_loaded(tiny_encoder_path: Path, tmp_path: Path) -> None:
    options = ["--do_eval", f"--sts_data={tmp_path}", f"--output_dir={tmp_path / 'run'}"]
    with pytest.raises(ValueError, match=r"`sts_data`: .* holds neither"):
        run_sts.run_stages([f"--model_name_or_path={tiny_encoder_path}", *options])
    assert not (tmp_path / "run").exists()


def test_mixed_precision_holds_for_the_tasks(run: Run, tmp_path: Path) -> None:
    single, mixed = (run("--do_eval", *options, output=options[0]) for options in (["--bf16=false"], ["--bf16=true"]))
    scores = [read_scores(tmp_path / name)["cosine"][:] for name in ("--bf16=false", "--bf16=true")]
    assert scores[0] != scores[1]
    assert scores[1] == pytest.approx(scores[0], abs=0.02)
    assert set(mixed["sts_tasks"]["tasks"]) == set(single["sts_tasks"]["tasks"])
