"""Configurations that ask for more than the weights beside them hold."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModel, PreTrainedTokenizerBase

from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.models import weight_limits
from sts_regression.models.encoding import sentence_transformers_scorer
from sts_regression.models.loading import find_model, load_model
from sts_regression.models.weight_limits import within_weights

MAX_GROWTH = 512 * 2**20
MILLION, BILLION = 10**6, 10**9

MakeModel = Callable[..., STSRegressionModel]
SaveCheckpoint = Callable[[STSRegressionModel, PreTrainedTokenizerBase, Path], Path]


@pytest.fixture
def encoder_copy(tiny_encoder_path: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_encoder_path, tmp_path / "encoder"))


def change_config(folder: Path, **entries: Any) -> None:
    path = folder / "config.json"
    config = json.loads(path.read_text())
    nested = config.get("encoder_config", config)
    nested.update(entries)
    path.write_text(json.dumps(config))


def check_is_refused(load: Callable[[], Any], message: str) -> None:
    process = psutil.Process()
    before = process.memory_info().rss
    with pytest.raises(ValueError, match=message):
        load()
    assert process.memory_info().rss - before < MAX_GROWTH


HOSTILE: list[tuple[dict[str, int], str]] = [
    ({"num_hidden_layers": MILLION}, r"its config\.json asks for `num_hidden_layers` 1,000,000, more than 65,536"),
    ({"num_labels": BILLION}, r"its config\.json asks for `num_labels` 1,000,000,000, more than 65,536"),
    ({"num_hidden_layers": 60_000}, r"asks for [\d,]+ weights in 4,097 tensors or more, and its weights are model"),
    (
        {"vocab_size": BILLION},
        r"asks for 32,000,000,000 weights in \d tensors or more, .*model\.safetensors of [\d,]+",
    ),
    ({"max_position_embeddings": BILLION}, r"asks for 32,\d\d\d,\d\d\d,\d\d\d weights in \d tensors or more"),
    ({"intermediate_size": BILLION}, r"asks for 32,\d\d\d,\d\d\d,\d\d\d weights in \d\d tensors or more"),
    ({"hidden_size": MILLION}, r"asks for [\d,]{11,} weights in \d tensors or more"),
]


@pytest.mark.parametrize(("entries", "message"), HOSTILE, ids=[str(entries) for entries, _ in HOSTILE])
def test_an_encoder_asks_for_no_more_than_its_weights(
    encoder_copy: Path, entries: dict[str, int], message: str
) -> None:
    change_config(encoder_copy, **entries)
    expected = rf"^`model_name_or_path`: .*{re.escape(str(encoder_copy))}.*{message}"
    check_is_refused(lambda: load_model(find_model(str(encoder_copy)), {}), expected)


@pytest.mark.parametrize(("entries", "message"), HOSTILE, ids=[str(entries) for entries, _ in HOSTILE])
def test_a_checkpoint_asks_for_no_more_than_its_weights(
    make_model: MakeModel,
    save_checkpoint: SaveCheckpoint,
    tokenizer: PreTrainedTokenizerBase,
    tmp_path: Path,
    entries: dict[str, int],
    message: str,
) -> None:
    folder = save_checkpoint(make_model(), tokenizer, tmp_path / "checkpoint")
    change_config(folder, **entries)
    check_is_refused(lambda: load_model(find_model(str(folder)), {}), message)


@pytest.mark.parametrize("form", ["pickle", "parts"])
def test_weights_of_any_form_are_a_limit(encoder_copy: Path, form: str) -> None:
    weights = load_file(encoder_copy / "model.safetensors")
    (encoder_copy / "model.safetensors").unlink()
    if form == "pickle":
        torch.save(weights, encoder_copy / "pytorch_model.bin")
    else:
        parts = {f"part-{i}.safetensors": {name: weights[name]} for i, name in enumerate(weights)}
        for part, content in parts.items():
            save_file(content, encoder_copy / part, metadata={"format": "pt"})
        index = {"metadata": {}, "weight_map": {name: part for part, held in parts.items() for name in held}}
        (encoder_copy / "model.safetensors.index.json").write_text(json.dumps(index))
    assert load_model(find_model(str(encoder_copy)), {})[0].num_parameters() > 10_000
    change_config(encoder_copy, vocab_size=BILLION)
    check_is_refused(lambda: load_model(find_model(str(encoder_copy)), {}), r"asks for 32,000,000,000 weights")


@pytest.mark.parametrize("content", [b"", b"\xff" * 100, (2**40).to_bytes(8, "little") + b"{}"])
def test_damaged_weights_are_named(encoder_copy: Path, content: bytes) -> None:
    (encoder_copy / "model.safetensors").write_bytes(content)
    with pytest.raises(
        ValueError, match=r"^`model_name_or_path`: .*: model\.safetensors is damaged \(.*\)\. Fetch or"
    ):
        load_model(find_model(str(encoder_copy)), {})


def test_a_model_of_the_other_library_asks_for_no_more_either(encoder_copy: Path) -> None:
    pytest.importorskip("sentence_transformers", reason="the sentence-transformers extra is not installed")
    entry = {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}
    (encoder_copy / "modules.json").write_text(json.dumps([entry]))
    change_config(encoder_copy, vocab_size=BILLION)
    message = r"^`model_name_or_path`: .*asks for 32,000,000,000 weights"
    check_is_refused(lambda: sentence_transformers_scorer(str(encoder_copy), torch.device("cpu")), message)


def test_a_model_is_built_from_its_own_weights_without_slack(
    tiny_encoder_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tensors = load_file(tiny_encoder_path / "model.safetensors")
    monkeypatch.setattr(weight_limits, "WEIGHTS_SLACK", 1)
    monkeypatch.setattr(weight_limits, "SMALL_MODEL_WEIGHTS", 0)
    monkeypatch.setattr(weight_limits, "SMALL_MODEL_TENSORS", len(tensors))
    load_model(find_model(str(tiny_encoder_path)), {})
    monkeypatch.setattr(weight_limits, "SMALL_MODEL_TENSORS", 0)
    with within_weights(str(tiny_encoder_path)):
        AutoModel.from_pretrained(tiny_encoder_path, add_pooling_layer=False)
    with within_weights(str(tiny_encoder_path)), pytest.raises(ValueError, match=rf"in {len(tensors) + 1} tensors"):
        AutoModel.from_pretrained(tiny_encoder_path, add_pooling_layer=True)  # two tensors that are not there


def test_the_limit_ends_with_the_loading(tiny_encoder_path: Path) -> None:
    load_model(find_model(str(tiny_encoder_path)), {})
    with torch.device("meta"):
        assert torch.nn.Embedding(BILLION, 32).weight.numel() == 32 * BILLION
