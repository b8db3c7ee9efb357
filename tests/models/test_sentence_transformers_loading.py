"""Our checkpoints in sentence-transformers: the same embeddings and scores, in a fresh process and after its own save.

One process loads every checkpoint, uses it and saves it with the library; a second process does the same with the
files of the first one.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from scipy import stats
from transformers import AutoModel, AutoTokenizer, BertConfig, PreTrainedTokenizerBase, RobertaConfig

import run_sts
from sts_regression.configuration_sts_regression import STSRegressionConfig
from sts_regression.grader import PairGrader
from sts_regression.losses_sts_regression import smooth_k2
from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.models.encoding import encode_sentences, model_scorer
from sts_regression.models.loading import find_model, load_model
from sts_regression.training.run_record import describe_loaded_model

SentenceTransformer = pytest.importorskip(
    "sentence_transformers", reason="the sentence-transformers extra is not installed"
).SentenceTransformer

DOCUMENT = Path(run_sts.__file__).resolve().parent / "docs" / "sentence_transformers.md"
PAIRS = [
    ("the cat", "a big red house in the park, and the water"),
    ("a man", "a man"),
    ("water " * 40, "the cat"),
    ("the big dog", "a dog in the park"),
]
GOLD_SCORES = [0.0, 5.0, 2.0, 4.0]
MAX_LENGTH = 12  # tokens
BI_ENCODERS: dict[str, dict[str, Any]] = {
    "mean": {},
    "cls": {"pooling": "cls"},
    "normalized": {"normalize_embeddings": True, "score_function": "cosine"},
    "roberta": {},
    "roberta, padded": {"encoding": "padded"},
}
CROSS_ENCODERS: dict[str, dict[str, Any]] = {
    **{loss: {"loss_type": loss} for loss in ("smooth_k2", "binary_cross_entropy", "cross_entropy", "corn")},
    "from one that normalizes": {"normalize_embeddings": True},  # which says nothing of scores
}
CASES = [*(("bi-encoder", name) for name in BI_ENCODERS), *(("cross-encoder", name) for name in CROSS_ENCODERS)]

USE = """
import json
import sys
from pathlib import Path

from sentence_transformers import CrossEncoder, SentenceTransformer, util
from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator
from torch import tensor
from transformers.dynamic_module_utils import get_class_from_dynamic_module

source, target, pairs, gold_scores = Path(sys.argv[1]), Path(sys.argv[2]), *map(json.loads, sys.argv[3:])
first, second = zip(*pairs)
report = {"bi-encoder": {}, "cross-encoder": {}}
for folder in (source / "bi-encoder").iterdir():
    model = SentenceTransformer(str(folder), device="cpu")
    model.save(str(target / "bi-encoder" / folder.name))
    u, v = model.encode(first), model.encode(second)
    evaluator = EmbeddingSimilarityEvaluator(first, second, gold_scores, main_similarity="cosine")
    report["bi-encoder"][folder.name] = {
        "embeddings": [u.tolist(), v.tolist()],
        "spearman": evaluator(model)["spearman_cosine"],
        "nearest": [hits[0]["corpus_id"] for hits in util.semantic_search(u, v, top_k=1)],
        "max_seq_length": model.max_seq_length,
        "modules": [type(module).__name__ for module in model],
    }
for folder in (source / "cross-encoder").iterdir():
    model = CrossEncoder(str(folder), device="cpu", trust_remote_code=True)
    model.save(str(target / "cross-encoder" / folder.name))
    report["cross-encoder"][folder.name] = {
        "scores": model.predict(pairs).tolist(),
        "alone": float(model.predict(pairs[0])),
        "max_seq_length": model.max_seq_length,
    }
smooth_k2 = get_class_from_dynamic_module("losses_sts_regression.smooth_k2", str(folder))
report["loss"] = smooth_k2(tensor([1.0, 2.0]), tensor([1.0, 3.0])).item()
print(json.dumps(report))
"""

SaveCheckpoint = Callable[[STSRegressionModel, PreTrainedTokenizerBase, Path], Path]


@dataclass
class Checkpoints:
    """Models by type and name, and the output of fresh processes on them as we saved them and as the library did."""

    root: Path
    tokenizer: PreTrainedTokenizerBase
    models: dict[tuple[str, str], STSRegressionModel] = field(default_factory=dict)
    reports: dict[str, Any] = field(default_factory=dict)


@pytest.fixture(scope="module")
def checkpoints(
    tmp_path_factory: pytest.TempPathFactory,
    tiny_encoder_path: Path,
    save_checkpoint: SaveCheckpoint,
    run_in_subprocess: Callable[..., str],
) -> Checkpoints:
    root = tmp_path_factory.mktemp("checkpoints")
    tokenizer = AutoTokenizer.from_pretrained(tiny_encoder_path, model_max_length=MAX_LENGTH)
    made = Checkpoints(root, tokenizer)
    for encoder_type, name in CASES:
        options = (BI_ENCODERS | CROSS_ENCODERS)[name]
        encoder_class = RobertaConfig if "roberta" in name else BertConfig
        encoder_config = encoder_class.from_pretrained(tiny_encoder_path, pad_token_id=tokenizer.pad_token_id)
        config = STSRegressionConfig(encoder_config, encoder_type, label_values=[1, 2, 3], **options)
        torch.manual_seed(0)
        model = made.models[encoder_type, name] = STSRegressionModel(config).eval()
        save_checkpoint(model, tokenizer, root / "ours" / encoder_type / name)
    for source, target in (("ours", "saved"), ("saved", "again")):
        arguments = (root / source, root / target, json.dumps(PAIRS), json.dumps(GOLD_SCORES))
        made.reports[source] = json.loads(run_in_subprocess(USE, *arguments).splitlines()[-1])
    return made


SOURCES = pytest.mark.parametrize("source", ["ours", "saved"])


@SOURCES
@pytest.mark.parametrize("name", BI_ENCODERS)
def test_embeddings_are_ours(checkpoints: Checkpoints, source: str, name: str) -> None:
    model = checkpoints.models["bi-encoder", name]
    u, v = (encode_sentences(model, checkpoints.tokenizer, texts) for texts in zip(*PAIRS, strict=True))
    cosines = F.cosine_similarity(u, v)
    nearest = F.cosine_similarity(u[:, None], v[None], dim=-1).argmax(dim=1)
    if name == "normalized":
        u, v = F.normalize(u), F.normalize(v)
    report = checkpoints.reports[source]["bi-encoder"][name]
    np.testing.assert_allclose(report["embeddings"], torch.stack([u, v]).tolist(), atol=1e-5)
    grader = PairGrader(checkpoints.root / "ours" / "bi-encoder" / name)
    np.testing.assert_allclose(grader.encode([first for first, _ in PAIRS]), report["embeddings"][0], atol=1e-5)
    assert report["spearman"] == pytest.approx(stats.spearmanr(cosines, GOLD_SCORES).statistic)
    assert report["nearest"] == nearest.tolist()
    assert report["max_seq_length"] == MAX_LENGTH
    assert report["modules"] == ["Transformer", "Pooling", *(["Normalize"] if name == "normalized" else [])]


def test_a_linear_head_searches_with_embeddings_that_are_not_normalised(
    checkpoints: Checkpoints, save_checkpoint: SaveCheckpoint, tmp_path: Path
) -> None:
    encoder_config = checkpoints.models["bi-encoder", "mean"].config.encoder_config
    config = STSRegressionConfig(encoder_config, label_values=[1, 2, 3], normalize_embeddings=True)
    model = STSRegressionModel(config).eval()
    save_checkpoint(model, checkpoints.tokenizer, tmp_path / "linear")
    [[hit]] = PairGrader(tmp_path / "linear").search("the cat", ["a big red house"], k=1)
    expected = model_scorer(model, checkpoints.tokenizer)(["the cat"], ["a big red house"])["head"]
    assert hit["score"] == pytest.approx(expected.item(), abs=1e-5)


@SOURCES
@pytest.mark.parametrize("name", CROSS_ENCODERS)
def test_scores_are_ours_on_the_label_scale(checkpoints: Checkpoints, source: str, name: str) -> None:
    scorer = model_scorer(checkpoints.models["cross-encoder", name], checkpoints.tokenizer)
    expected = scorer(*map(list, zip(*PAIRS, strict=True)))["head"].tolist()
    report = checkpoints.reports[source]["cross-encoder"][name]
    assert report["scores"] == pytest.approx(expected, abs=1e-5)
    assert report["alone"] == pytest.approx(expected[0], abs=1e-5)
    assert report["max_seq_length"] == MAX_LENGTH


@pytest.mark.parametrize("name", CROSS_ENCODERS)
def test_a_cross_encoder_that_the_library_saved_is_still_ours(checkpoints: Checkpoints, name: str) -> None:
    source = find_model(str(checkpoints.root / "saved" / "cross-encoder" / name))
    assert source.checkpoint_config is not None
    model, tokenizer = load_model(source, {})
    ours = checkpoints.models["cross-encoder", name]
    assert (model.config.head_is_trained, tokenizer.model_max_length) == (True, MAX_LENGTH)
    assert describe_loaded_model(model, source) == describe_loaded_model(ours, source)
    for key, weights in ours.state_dict().items():
        assert torch.equal(model.state_dict()[key], weights)


@pytest.mark.parametrize("name", BI_ENCODERS)
def test_the_encoder_is_a_model_of_its_own(checkpoints: Checkpoints, name: str) -> None:
    folder = checkpoints.root / "ours" / "bi-encoder" / name
    weights = load_file(folder / "encoder" / "model.safetensors")
    expected = checkpoints.models["bi-encoder", name].encoder.state_dict()
    assert weights.keys() == expected.keys()
    assert all(torch.equal(weights[key], value) for key, value in expected.items())
    settings = json.loads((folder / "encoder" / "sentence_bert_config.json").read_text())
    _, info = AutoModel.from_pretrained(folder / "encoder", output_loading_info=True, **settings.get("model_args", {}))
    assert not info["missing_keys"]
    model, tokenizer = load_model(find_model(str(folder / "encoder")), {})
    assert (model.config.pooling, tokenizer.model_max_length) == (BI_ENCODERS[name].get("pooling", "mean"), MAX_LENGTH)
    assert not model.config.head_is_trained


@pytest.mark.parametrize("name", BI_ENCODERS)
def test_a_bi_encoder_that_the_library_saved_is_its_encoder(checkpoints: Checkpoints, name: str) -> None:
    source = find_model(str(checkpoints.root / "saved" / "bi-encoder" / name))
    assert source.checkpoint_config is None
    assert source.modules is not None
    assert source.modules.unsupported == ()


@SOURCES
def test_a_checkpoint_has_the_losses(checkpoints: Checkpoints, source: str) -> None:
    assert checkpoints.reports[source]["loss"] == smooth_k2(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 3.0])).item()


# From that library and back


def test_an_encoder_that_normalizes_stays_one(
    tiny_encoder_path: Path, tmp_path: Path, run_in_subprocess: Callable[..., str]
) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer

    modules: list[Any] = [Transformer(str(tiny_encoder_path)), Pooling(32), Normalize()]
    SentenceTransformer(modules=modules, device="cpu").save(str(tmp_path / "encoder"))
    (tmp_path / "pairs.csv").write_text("sentence1,sentence2,label\nthe cat,a cat,2\na man,water,0\nthe dog,a man,1\n")
    files = [f"--{split}_file={tmp_path / 'pairs.csv'}" for split in ("train", "validation")]
    model = tmp_path / "encoder"
    for stage in ("first", "second"):
        options = [f"--model_name_or_path={model}", f"--output_dir={tmp_path / stage}", "--num_train_epochs=1"]
        run_sts.run_stages([*files, *options, "--save_strategy=epoch", "--report_to=none", "--disable_tqdm=true"])
        model = tmp_path / stage
        for folder in (model, *model.glob("checkpoint-*")):
            trained = SentenceTransformer(str(folder), device="cpu")
            assert np.linalg.norm(trained.encode(["the cat", "water"]), axis=1) == pytest.approx([1, 1])
    ours, tokenizer = load_model(find_model(str(model)), {})
    embeddings = encode_sentences(ours, tokenizer, ["the cat", "water"])
    np.testing.assert_allclose(trained.encode(["the cat", "water"]), F.normalize(embeddings), atol=1e-5)


def test_the_recipe_of_the_document_trains(
    tiny_encoder_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [block] = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), flags=re.DOTALL)
    encoder = Path("sentence-transformers/all-MiniLM-L6-v2")
    assert f'SentenceTransformer("{encoder}"' in block
    monkeypatch.chdir(tmp_path)
    encoder.parent.mkdir()
    encoder.symlink_to(tiny_encoder_path)
    lines = [f"{first.strip()},{second},{score}" for (first, second), score in zip(PAIRS, GOLD_SCORES, strict=True)]
    Path("pairs.csv").write_text("\n".join(["sentence1,sentence2,label", *lines * 4]).replace("park, and", "park and"))
    exec(block, {})
    before, after = (load_file(folder / "model.safetensors") for folder in (encoder, Path("outputs/minilm-smooth_k2")))
    name = "encoder.layer.0.attention.self.query.weight"
    assert not torch.equal(before[name], after[name])


def test_weights_saved_into_a_checkpoint_are_those_that_the_library_loads(
    make_model: Callable[..., STSRegressionModel],
    tokenizer: PreTrainedTokenizerBase,
    save_checkpoint: SaveCheckpoint,
    tmp_path: Path,
) -> None:
    model = make_model()
    save_checkpoint(model, tokenizer, tmp_path)
    (tmp_path / "encoder" / "notes.md").touch()
    with torch.no_grad():
        for parameter in model.encoder.parameters():
            parameter.add_(torch.randn_like(parameter) / 10)
    model.save_pretrained(tmp_path)
    library = SentenceTransformer(str(tmp_path), device="cpu", trust_remote_code=True)
    texts = [text for pair in PAIRS for text in pair]
    np.testing.assert_allclose(library.encode(texts), encode_sentences(model, tokenizer, texts), atol=1e-5)
    assert not list((tmp_path / "encoder").glob("*.safetensors"))
    assert (tmp_path / "encoder" / "notes.md").exists()
    save_checkpoint(model, tokenizer, tmp_path)
    copy = SentenceTransformer(str(tmp_path), device="cpu")
    np.testing.assert_allclose(copy.encode(texts), library.encode(texts), atol=1e-5)


def test_an_encoder_of_others_is_not_deleted(make_model: Callable[..., STSRegressionModel], tmp_path: Path) -> None:
    (tmp_path / "encoder").mkdir()
    for name in ("encoder/model.safetensors", "encoder/config.json"):
        (tmp_path / name).touch()
    for modules in (None, [{"path": "encoder"}]):
        if modules is not None:
            (tmp_path / "modules.json").write_text(json.dumps(modules))
        (tmp_path / "config.json").unlink(missing_ok=True)
        make_model().save_pretrained(tmp_path)
        assert {path.name for path in (tmp_path / "encoder").iterdir()} == {"model.safetensors", "config.json"}
