"""A model with 8-bit weights in ONNX Runtime scores nearly like torch, in every command that offers it."""

import csv
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import CONFIG_MAPPING, PreTrainedTokenizerBase

import run_sts
from sts_regression import grader
from sts_regression.grader import PairGrader
from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.models import onnx_graphs
from sts_regression.models.encoding import model_scorer
from sts_regression.models.onnx_graphs import check_backend, on_backend
from sts_regression.search import exact as search

needs_onnx = pytest.mark.skipif(
    any(find_spec(name) is None for name in onnx_graphs.ONNX_PACKAGES),
    reason="needs the extra onnx",
)
MakeModel = Callable[..., STSRegressionModel]
SaveCheckpoint = Callable[[STSRegressionModel, PreTrainedTokenizerBase, Path], Path]

INT8 = "onnx-int8"
FIRST = ["the cat", "a red house in the park", "water", "the big dog and the man", "a man"]
SECOND = ["a dog in the park", "the house", "the man", "a big red dog", "the water and the cat"]
# Encoders that count segments, positions and attention in their own ways.
FAMILIES: dict[str, dict[str, Any]] = {
    "bert": {},
    "roberta": {"type_vocab_size": 1, "pad_token_id": 0},
    "modernbert": {"local_attention": 8, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2},
}


@pytest.fixture
def checkpoint(
    make_model: MakeModel, tokenizer: PreTrainedTokenizerBase, save_checkpoint: SaveCheckpoint, tmp_path: Path
) -> Path:
    return save_checkpoint(make_model(head_is_trained=True), tokenizer, tmp_path / "checkpoint")


def assert_near_but_not_equal(found: Any, expected: Any) -> None:
    """8-bit weights change a score a little: a graph with other weights changes it more, no conversion not at all."""
    found, expected = torch.as_tensor(found), torch.as_tensor(expected)
    assert 0 < abs(found - expected).max() < 0.02 * abs(expected).max()


@needs_onnx
@pytest.mark.parametrize(("family", "encoding"), [("bert", "auto"), ("roberta", "padded"), ("modernbert", "auto")])
def test_scores_stay_near(
    family: str, encoding: str, make_model: MakeModel, tokenizer: PreTrainedTokenizerBase
) -> None:
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    sizes |= {"vocab_size": len(tokenizer), "max_position_embeddings": 130}
    model = make_model(
        CONFIG_MAPPING[family](**{**sizes, **FAMILIES[family]}), encoding=encoding, head_is_trained=True
    )
    expected = model_scorer(model, tokenizer)(FIRST, SECOND)
    converted = on_backend(model, tokenizer, INT8)
    found = model_scorer(converted, tokenizer)(FIRST, SECOND)
    for name, scores in expected.items():
        assert_near_but_not_equal(found[name], scores)
    assert converted.head is model.head
    assert model_scorer(model, tokenizer)(FIRST, SECOND)["cosine"].tolist() == expected["cosine"].tolist()


@needs_onnx
def test_a_cross_encoder_scores_pairs(make_model: MakeModel, tokenizer: PreTrainedTokenizerBase) -> None:
    model = make_model(encoder_type="cross-encoder", head_is_trained=True)
    scores = [model_scorer(on_backend(model, tokenizer, name), tokenizer)(FIRST, SECOND) for name in ("torch", INT8)]
    assert_near_but_not_equal(scores[1]["head"], scores[0]["head"])


def test_torch_is_the_model_itself(make_model: MakeModel, tokenizer: PreTrainedTokenizerBase) -> None:
    model = make_model()
    assert on_backend(model, tokenizer, "torch") is model


@needs_onnx
def test_a_conversion_that_changes_the_encoder_is_refused(
    make_model: MakeModel, tokenizer: PreTrainedTokenizerBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnx_graphs, "ONNX_TOLERANCE", 0.0)
    with pytest.raises(ValueError, match="differs from torch"):
        on_backend(make_model(), tokenizer, INT8)


@needs_onnx
def test_an_encoder_that_torch_cannot_convert_is_named_in_one_line(
    make_model: MakeModel, tokenizer: PreTrainedTokenizerBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("unknown operator\nmany lines")

    monkeypatch.setattr(torch.onnx, "export", fail)
    with pytest.raises(
        ValueError, match=r"cannot convert this encoder to ONNX \(unknown operator\)\. Run it in torch"
    ):
        on_backend(make_model(), tokenizer, INT8)


def test_what_cannot_run_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="must be one of torch, onnx-int8, but is 'openvino'"):
        check_backend("openvino", torch.device("cpu"))
    monkeypatch.setattr(onnx_graphs, "ONNX_PACKAGES", ())
    with pytest.raises(ValueError, match="needs a CPU, but the model is on cuda"):
        check_backend(INT8, torch.device("cuda"))
    monkeypatch.setattr(onnx_graphs, "ONNX_PACKAGES", ("no_such_package",))
    with pytest.raises(ValueError, match=r"no_such_package.*pip install"):
        check_backend(INT8, torch.device("cpu"))
    check_backend("torch", torch.device("cuda"))


@needs_onnx
def test_predictions_use_it(checkpoint: Path, tmp_path: Path) -> None:
    pairs = tmp_path / "new.csv"
    with pairs.open("w", newline="") as file:
        csv.writer(file).writerows([("sentence1", "sentence2"), *zip(FIRST, SECOND, strict=True)])
    scores = {}
    for backend in ("torch", INT8):
        output = tmp_path / f"{backend}.csv"
        run_sts.main(
            [
                *("--model_name_or_path", str(checkpoint), "--predict_file", str(pairs), "--backend", backend),
                *("--predict_output", str(output), "--output_dir", str(tmp_path / "run"), "--use_cpu"),
            ]
        )
        with output.open(newline="") as file:
            scores[backend] = [float(row["score"]) for row in csv.DictReader(file)]
    assert_near_but_not_equal(scores[INT8], scores["torch"])


def test_a_backend_without_new_pairs_is_refused(checkpoint: Path) -> None:
    with pytest.raises(SystemExit, match="`backend` has no effect without `--predict_file`"):
        run_sts.main(["--model_name_or_path", str(checkpoint), "--backend", INT8, "--do_eval"])


def test_search_and_pair_grader_use_it(checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backends = []
    for module in (search, grader):

        def convert(model: STSRegressionModel, tokenizer: PreTrainedTokenizerBase, backend: str) -> STSRegressionModel:
            backends.append(backend)
            return model

        monkeypatch.setattr(module, "on_backend", convert)
    monkeypatch.setattr(grader, "check_backend", lambda *_: None)
    for name, texts in (("queries", FIRST[:1]), ("corpus", SECOND[:1])):
        (tmp_path / f"{name}.txt").write_text("\n".join(texts) + "\n")
    files = [f"--{name}={tmp_path / name}.txt" for name in ("queries", "corpus")]
    files.append(f"--output_file={tmp_path / 'hits.jsonl'}")
    search.main([f"--model_name_or_path={checkpoint}", *files, f"--backend={INT8}"])
    assert backends == [INT8]
    of_python = PairGrader(checkpoint, backend=INT8)
    assert backends == [INT8]  # nothing was scored yet
    of_python.grade([(FIRST[0], SECOND[0])])
    of_python.encode(FIRST)
    assert backends == [INT8, INT8]
