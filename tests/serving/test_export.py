"""Exported graphs score like the model, on batches of any size and length; the encoder's folder embeds like it."""

import json
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from tokenizers import Tokenizer
from transformers import CONFIG_MAPPING, AutoModel, AutoTokenizer, PretrainedConfig, PreTrainedTokenizerBase

from sts_regression.configuration_sts_regression import STSRegressionConfig
from sts_regression.encoder_sts_regression import mean_pooling
from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.models import onnx_graphs
from sts_regression.models.encoding import encode_sentences, score_with_cross_encoder
from sts_regression.models.onnx_graphs import EncoderGraph, GraphSession, check_onnx_is_installed, largest_difference
from sts_regression.models.sentence_transformers_files import read_modules
from sts_regression.serving import export as export_module
from sts_regression.serving.export import export, main

for package in onnx_graphs.ONNX_PACKAGES:
    pytest.importorskip(package)

WORDS = ["cat", "dog", "man", "park", "water", "house", "red", "big"]
SENTENCES = ["the cat", "a red house in the park", "water", "the big dog and the man", "a man"]
PAIRS = [(f"the {WORDS[i % 8]} {WORDS[i % 5]}", f"a {WORDS[i * i % 8]}", i % 6) for i in range(24)]
# As in the tests of checkpoints: encoders that mask, count positions and attend in their own ways.
FAMILIES: dict[str, dict[str, Any]] = {
    "roberta": {"type_vocab_size": 1, "pad_token_id": 0},
    "mpnet": {"pad_token_id": 0},
    "modernbert": {"local_attention": 8, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2},
    "nomic_bert": {},
    "deberta-v2": {"relative_attention": True, "position_buckets": 16, "pos_att_type": ["p2c", "c2p"]},
}


def encoder_config(tokenizer: PreTrainedTokenizerBase, family: str = "bert", **options: Any) -> PretrainedConfig:
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    sizes |= {"vocab_size": len(tokenizer), "max_position_embeddings": 130}
    return CONFIG_MAPPING[family](**{**sizes, **options})


def save_checkpoint(folder: Path, tokenizer: PreTrainedTokenizerBase, **options: Any) -> STSRegressionModel:
    torch.manual_seed(0)
    options.setdefault("encoder_config", encoder_config(tokenizer))
    model = STSRegressionModel(STSRegressionConfig(**options)).eval()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model


@pytest.fixture(scope="module")
def bi_encoder(
    tmp_path_factory: pytest.TempPathFactory, tokenizer: PreTrainedTokenizerBase
) -> tuple[STSRegressionModel, Path]:
    """A bi-encoder and the folder of its export, quantised and scored."""
    folder = tmp_path_factory.mktemp("bi-encoder")
    model = save_checkpoint(folder / "checkpoint", tokenizer, pooling="mean")
    rows = [f"{first},{second},{label}" for first, second, label in PAIRS]
    (folder / "pairs.csv").write_text("\n".join(["sentence1,sentence2,label", *rows]))
    options = [
        "--output_dir",
        str(folder / "exported"),
        "--quantize",
        "int8",
        "--test_file",
        str(folder / "pairs.csv"),
    ]
    main([str(folder / "checkpoint"), *options])
    return model, folder / "exported"


def assert_scores_agree(model: STSRegressionModel, session: GraphSession, tokenizer: PreTrainedTokenizerBase) -> None:
    for first, second in ((SENTENCES[:1], SENTENCES[1:2]), (SENTENCES, SENTENCES[::-1])):
        if model.config.encoder_type == "cross-encoder":
            inputs = dict(tokenizer(first, second, padding=True, return_tensors="pt"))
        else:
            flat = [sentence for pair in zip(first, second, strict=True) for sentence in pair]
            batch = tokenizer(flat, padding=True, return_tensors="pt")
            inputs = {name: tensor.unflatten(0, (-1, 2)) for name, tensor in batch.items()}
        with torch.no_grad():
            output = model(**inputs)
        written = session(**inputs)
        np.testing.assert_allclose(written["score"], output.scores, atol=1e-4)
        if output.embeddings is not None:
            cosine = torch.cosine_similarity(output.embeddings[:, 0], output.embeddings[:, 1], dim=-1)
            np.testing.assert_allclose(written["cosine"], cosine, atol=1e-4)


def test_the_scorer_scores_like_the_model(
    bi_encoder: tuple[STSRegressionModel, Path], tokenizer: PreTrainedTokenizerBase
) -> None:
    model, folder = bi_encoder
    assert_scores_agree(model, GraphSession(folder / "scorer.onnx"), tokenizer)


def test_the_encoder_embeds_like_the_model(bi_encoder: tuple[STSRegressionModel, Path]) -> None:
    model, folder = bi_encoder
    session, tokenizer = GraphSession(folder / "encoder.onnx"), AutoTokenizer.from_pretrained(folder)
    assert session.input_names == {"input_ids", "attention_mask", "token_type_ids"}
    assert session.session.get_inputs()[0].shape == ["batch", "length"]
    expected = encode_sentences(model, tokenizer, SENTENCES)
    for count in (1, len(SENTENCES)):
        inputs = tokenizer(SENTENCES[:count], padding=True, return_tensors="pt")
        np.testing.assert_allclose(session(**inputs)["sentence_embedding"], expected[:count], atol=1e-4)


def test_the_tokenizers_truncate_as_the_model_does(bi_encoder: tuple[STSRegressionModel, Path]) -> None:
    for folder in (bi_encoder[1], bi_encoder[1] / "encoder"):
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        assert [len(row.ids) for row in tokenizer.encode_batch(["water", "water " * 500])] == [3, 128]


def test_the_report_holds_sizes_differences_and_what_int8_costs(bi_encoder: tuple[STSRegressionModel, Path]) -> None:
    model, folder = bi_encoder
    report = json.loads((folder / "export.json").read_text())
    graphs = report["graphs"]
    assert set(graphs) == {"encoder.onnx", "encoder_int8.onnx", "scorer.onnx", "scorer_int8.onnx"}
    assert report["test_pairs"] == len(PAIRS)
    embeddings = encode_sentences(
        model, AutoTokenizer.from_pretrained(folder), [text for *pair, _ in PAIRS for text in pair]
    ).unflatten(0, (-1, 2))
    cosine = torch.cosine_similarity(embeddings[:, 0], embeddings[:, 1], dim=-1)
    expected = stats.spearmanr(cosine, [label for *_, label in PAIRS])[0]
    for name in ("encoder", "scorer"):
        whole, small = graphs[f"{name}.onnx"], graphs[f"{name}_int8.onnx"]
        assert whole["largest_difference_from_torch"] <= 1e-4
        assert whole["spearman_cosine"] == pytest.approx(expected, abs=5e-3)  # of random weights: near ties
        assert small["spearman_cosine_loss"] == whole["spearman_cosine"] - small["spearman_cosine"]
        assert small["bytes"] == (folder / f"{name}_int8.onnx").stat().st_size < whole["bytes"]
    assert graphs["scorer_int8.onnx"].keys() == {
        "bytes",
        *(f"spearman_{score}{suffix}" for score in ("cosine", "head") for suffix in ("", "_loss")),
    }


def test_int8_stays_near_the_model(bi_encoder: tuple[STSRegressionModel, Path]) -> None:
    _, folder = bi_encoder
    inputs = AutoTokenizer.from_pretrained(folder)(SENTENCES, padding=True, return_tensors="pt")
    whole, small = (
        GraphSession(folder / f"{name}.onnx")(**inputs)["sentence_embedding"] for name in ("encoder", "encoder_int8")
    )
    assert 0 < np.abs(whole - small).max() < 0.2


def test_int8_scores_do_not_depend_on_the_batch_through_the_head(bi_encoder: tuple[STSRegressionModel, Path]) -> None:
    _, folder = bi_encoder
    import onnx

    graph = onnx.load(folder / "scorer_int8.onnx")
    [head] = [node for node in graph.graph.node if "model.head.weight" in node.input]
    assert head.op_type == "MatMul"  # in float32
    assert any(node.op_type == "MatMulInteger" for node in graph.graph.node)


def test_the_folder_of_the_encoder_is_a_transformers_model(bi_encoder: tuple[STSRegressionModel, Path]) -> None:
    model, folder = bi_encoder
    tokenizer = AutoTokenizer.from_pretrained(folder / "encoder")
    encoder = AutoModel.from_pretrained(folder / "encoder", add_pooling_layer=False)
    inputs = tokenizer(SENTENCES, padding=True, return_tensors="pt")
    with torch.no_grad():
        embeddings = mean_pooling(encoder(**inputs)[0], inputs["attention_mask"])
    torch.testing.assert_close(embeddings, encode_sentences(model, tokenizer, SENTENCES), atol=1e-5, rtol=1e-4)
    modules = read_modules(str(folder / "encoder"))
    assert modules is not None
    assert (modules.pooling, modules.unsupported, modules.max_seq_length) == ("mean", (), 128)
    assert "sts_regression" not in (folder / "encoder" / "config.json").read_text()


@pytest.mark.parametrize(("mode", "normalizes"), [("mean", False), ("cls", False), ("mean", True)])
def test_sentence_transformers_pools_as_we_do(
    tokenizer: PreTrainedTokenizerBase, tmp_path: Path, mode: str, normalizes: bool
) -> None:
    library = pytest.importorskip("sentence_transformers")
    model = save_checkpoint(tmp_path / "checkpoint", tokenizer, pooling=mode, normalize_embeddings=normalizes)
    model.encoder.save_pretrained(tmp_path / "encoder")
    export_module.describe_encoder(tmp_path / "encoder", model.config, tokenizer)
    theirs = library.SentenceTransformer(str(tmp_path / "encoder"), device="cpu")
    assert theirs.max_seq_length == 128
    expected = encode_sentences(model, tokenizer, SENTENCES).numpy()
    if normalizes:
        expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(theirs.encode(SENTENCES), expected, atol=1e-5)
    inputs = tokenizer(SENTENCES, padding=True, return_tensors="pt")
    with torch.no_grad():
        np.testing.assert_allclose(EncoderGraph(model)(**inputs)[0], expected, atol=1e-5)


def test_a_cross_encoder_has_a_scorer_only(tokenizer: PreTrainedTokenizerBase, tmp_path: Path) -> None:
    model = save_checkpoint(tmp_path / "checkpoint", tokenizer, encoder_type="cross-encoder")
    report = export(str(tmp_path / "checkpoint"), tmp_path / "exported")
    assert set(report["graphs"]) == {"scorer.onnx"}
    assert not (tmp_path / "exported" / "encoder").exists()
    session = GraphSession(tmp_path / "exported" / "scorer.onnx")
    assert session.output_names == ["score"]
    assert_scores_agree(model, session, tokenizer)
    expected = score_with_cross_encoder(model, tokenizer, SENTENCES, SENTENCES[::-1])["head"]
    inputs = tokenizer(SENTENCES, SENTENCES[::-1], padding=True, return_tensors="pt")
    np.testing.assert_allclose(session(**inputs)["score"], expected, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_of_encoders(tokenizer: PreTrainedTokenizerBase, tmp_path: Path, family: str) -> None:
    config = encoder_config(tokenizer, family, **FAMILIES[family])
    model = save_checkpoint(tmp_path / "checkpoint", tokenizer, encoder_config=config, score_function="cosine")
    export(str(tmp_path / "checkpoint"), tmp_path / "exported", quantize=True)
    assert_scores_agree(model, GraphSession(tmp_path / "exported" / "scorer.onnx"), tokenizer)


def test_an_encoder_without_head_has_no_scorer(
    tiny_encoder_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    monkeypatch.setattr(export_module, "write_graph", lambda graph, inputs, path: written.append(path.name))
    monkeypatch.setattr(export_module, "largest_difference", lambda graph, path, batches: path.touch() or 0.0)
    export(str(tiny_encoder_path), tmp_path)
    assert written == ["encoder.onnx"]


def test_an_export_replaces_an_earlier_one_whole(
    make_model: Callable[..., STSRegressionModel], tokenizer: PreTrainedTokenizerBase, tmp_path: Path
) -> None:
    folder = tmp_path / "exported"
    for name, prefix in (("old", "query: "), ("new", "")):
        model = make_model(head_is_trained=True, sentence1_prefix=prefix, sentence2_prefix=prefix)
        model.save_pretrained(tmp_path / name)
        tokenizer.save_pretrained(tmp_path / name)
        export(str(tmp_path / name), folder, quantize=name == "old")
        for mine in ("mine.onnx", "encoder/notes.md") if name == "old" else ():
            (folder / mine).touch()
    assert {path.name for path in folder.glob("*.onnx")} == {"encoder.onnx", "scorer.onnx", "mine.onnx"}
    assert (folder / "encoder" / "notes.md").exists()
    assert not (folder / "encoder" / "config_sentence_transformers.json").exists()


def test_an_export_that_fails_leaves_the_folder_as_it_was(
    bi_encoder: tuple[STSRegressionModel, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        sys.stderr.write("def forward(…):\n")
        raise RuntimeError("step 1/3\nmany lines") from ValueError("unknown operator")

    checkpoint, folder = bi_encoder[1].parent / "checkpoint", shutil.copytree(bi_encoder[1], tmp_path / "exported")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    monkeypatch.setattr(torch.onnx, "export", fail)
    with pytest.raises(SystemExit, match=r"^.*cannot convert this encoder to ONNX \(unknown operator\)\..*$"):
        main([str(checkpoint), "--output_dir", str(folder), "--overwrite"])
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert "forward" not in capfd.readouterr().err


def test_a_graph_that_differs_from_torch_is_refused(bi_encoder: tuple[STSRegressionModel, Path]) -> None:
    model, folder = bi_encoder
    batch = {"input_ids": torch.tensor([[2, 7, 3]]), "attention_mask": torch.ones(1, 3, dtype=torch.long)}
    batch["token_type_ids"] = torch.zeros_like(batch["input_ids"])
    graph = EncoderGraph(model).eval()
    assert largest_difference(graph, folder / "encoder.onnx", [batch]) <= 1e-4
    changed = EncoderGraph(STSRegressionModel(model.config).eval())
    with pytest.raises(ValueError, match=r"encoder\.onnx: its output differs from torch by .*, more than 1e-04"):
        largest_difference(changed, folder / "encoder.onnx", [batch])


def test_a_folder_that_holds_files_is_left_alone(
    tiny_encoder_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.txt").touch()
    with pytest.raises(SystemExit, match=r"`output_dir` '.*' holds files\. Name another one, or give `--overwrite`\."):
        main([str(tiny_encoder_path), "--output_dir", str(tmp_path)])
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_cross_encoder_without_head_is_refused(tokenizer: PreTrainedTokenizerBase, tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "checkpoint", tokenizer, encoder_type="cross-encoder", head_is_trained=False)
    with pytest.raises(ValueError, match="is a cross-encoder without a trained head and scores nothing"):
        export(str(tmp_path / "checkpoint"), tmp_path / "exported")


def test_without_the_packages_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_graphs, "ONNX_PACKAGES", ("onnx", "no_such_package"))
    message = 'ONNX needs no_such_package. Install the extra with `pip install ".[onnx]"`.'
    with pytest.raises(ValueError, match=re.escape(message)):
        check_onnx_is_installed()
