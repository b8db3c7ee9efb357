"""Scoring in batches as Ray Data hands them over, and the documented job on one machine."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from transformers import PreTrainedTokenizerBase

import run_sts
from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.models.loading import ModelSource, find_model
from sts_regression.serving import ray_scoring
from sts_regression.serving.ray_scoring import RayScorer

ROOT = Path(run_sts.__file__).resolve().parent
PAIRS = {
    "sentence1": ["the cat", "a red house in the big park", "water", "the cat", "a man"] * 5,
    "sentence2": ["a dog", "the big house", "the man and the dog in the park", "a cat", "a man"] * 5,
    "number": list(range(25)),
}

MakeCheckpoint = Callable[..., Path]


@pytest.fixture
def make_checkpoint(
    make_model: Callable[..., STSRegressionModel], tokenizer: PreTrainedTokenizerBase, tmp_path: Path
) -> MakeCheckpoint:
    def make(**options: object) -> Path:
        folder = tmp_path / "outputs" / "pairs-smooth_k2"
        make_model(**options).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        return folder

    return make


def predictions(checkpoint: Path, folder: Path, *options: str) -> dict[str, list[str | float]]:
    """The predictions of `--do_predict`, by column."""
    pairs, output = folder / "pairs.parquet", folder / "graded.jsonl"
    pq.write_table(pa.table(PAIRS), pairs)
    run_sts.run_stages(
        [
            *("--model_name_or_path", str(checkpoint), "--predict_file", str(pairs), "--predict_output", str(output)),
            *("--output_dir", str(folder / "unused"), "--report_to=none", "--disable_tqdm=true"),
            *options,
        ]
    )
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    return {column: [row[column] for row in rows] for column in rows[0]}


@pytest.mark.parametrize("encoder_type", ["bi-encoder", "cross-encoder"])
def test_a_batch_has_the_scores_of_the_command(
    make_checkpoint: MakeCheckpoint, tmp_path: Path, encoder_type: str
) -> None:
    checkpoint = make_checkpoint(encoder_type=encoder_type, label_values=[0, 1], label_names=["no", "yes"])
    expected = predictions(checkpoint, tmp_path)
    batch = {name: np.array(values) for name, values in PAIRS.items()}
    scored = RayScorer(str(checkpoint))(batch)
    assert set(scored) == {*expected, "number"}
    assert {name: values.tolist() for name, values in scored.items()} == {**expected, "number": PAIRS["number"]}


def test_mixed_precision_is_that_of_the_command(make_checkpoint: MakeCheckpoint, tmp_path: Path) -> None:
    checkpoint = make_checkpoint()
    batch = {name: np.array(values) for name, values in PAIRS.items()}
    scores = RayScorer(str(checkpoint), bf16=True)(batch)["score"].tolist()
    assert scores == predictions(checkpoint, tmp_path, "--bf16")["score"]
    assert scores != predictions(checkpoint, tmp_path, "--overwrite_output_dir")["score"]


def test_columns_may_have_other_names(make_checkpoint: MakeCheckpoint) -> None:
    checkpoint = str(make_checkpoint())
    batch = {"query": np.array(["the cat"], dtype=object), "document": np.array(["a dog"], dtype=object)}
    scorer = RayScorer(checkpoint, sentence1_column="query", sentence2_column="document")
    expected = RayScorer(checkpoint)({"sentence1": batch["query"], "sentence2": batch["document"]})
    assert scorer(batch)["score"] == expected["score"]
    with pytest.raises(ValueError, match=r"no column 'sentence1' among \['query', 'document'\]"):
        RayScorer(checkpoint)(batch)


def test_columns_of_the_batch_are_kept(make_checkpoint: MakeCheckpoint) -> None:
    batch = {"sentence1": np.array(["the cat"]), "sentence2": np.array(["a dog"]), "score": np.array([0.5])}
    scored = RayScorer(str(make_checkpoint()))(batch)
    assert scored["input_score"] == [0.5]
    assert scored["score"] != [0.5]


def test_empty_batches_come_back_and_empty_sentences_are_refused(make_checkpoint: MakeCheckpoint) -> None:
    scorer = RayScorer(str(make_checkpoint(encoder_type="cross-encoder")))
    assert scorer({}) == {}
    assert list(scorer({"sentence1": np.array([]), "sentence2": np.array([])})) == ["sentence1", "sentence2"]
    batch = {"sentence1": np.array(["a", "b"]), "sentence2": np.array(["c", None], dtype=object)}
    with pytest.raises(ValueError, match="a value of the column 'sentence2' is empty"):
        scorer(batch)


def test_an_encoder_without_a_head_is_refused(tiny_encoder_path: Path) -> None:
    with pytest.raises(ValueError, match="has no trained head"):
        RayScorer(str(tiny_encoder_path))


def test_code_of_an_encoder_runs_only_if_it_is_trusted(
    make_checkpoint: MakeCheckpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint, allowed = str(make_checkpoint()), []

    def find(name: str, revision: str, trust_remote_code: bool) -> ModelSource:
        allowed.append(trust_remote_code)
        return find_model(name, revision)

    monkeypatch.setattr(ray_scoring, "find_model", find)
    RayScorer(checkpoint)
    RayScorer(checkpoint, trust_remote_code=True)
    assert allowed == [False, True]


@pytest.mark.slow
def test_the_documented_job_runs_on_one_machine(
    make_checkpoint: MakeCheckpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray = pytest.importorskip("ray", reason="the ray extra is not installed")
    pytest.importorskip("ray.data", reason="the ray extra is not installed")
    expected = predictions(make_checkpoint(), tmp_path)
    document = (ROOT / "docs" / "scale_out.md").read_text(encoding="utf-8")
    [job] = re.findall(r"(?s)```python\n(.*?)```", document)
    here = job.replace("/shared", str(tmp_path)).replace("size=4", "size=1").replace("num_gpus=1", "num_gpus=0")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))  # for the actors
    monkeypatch.setenv("RAY_worker_niceness", "0")
    ray.init(num_cpus=3, include_dashboard=False)
    try:
        exec(here, {})
    finally:
        ray.shutdown()
    scored = pq.read_table(tmp_path / "graded").sort_by("number").to_pydict()
    assert set(scored) == {*expected, "number"}
    for column in ("score", "cosine"):
        assert scored[column] == pytest.approx(expected[column], abs=2e-6)
    assert scored["grade"] == expected["grade"]
