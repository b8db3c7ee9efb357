"""One pair has one score, whichever way it is scored: length, prefixes, normalisation, dtype go with a checkpoint."""

import copy
import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from transformers import (
    AutoModel,
    AutoTokenizer,
    BertConfig,
    ModernBertConfig,
    PreTrainedTokenizerBase,
    RobertaConfig,
    pipeline,
)

import run_sts
from sts_regression import outcome
from sts_regression.evaluation.measures import PairScores
from sts_regression.grader import PairGrader
from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.models.loading import find_model, load_model
from sts_regression.pipeline_sts_regression import tokenize_texts, with_prefix
from sts_regression.search import exact as search
from sts_regression.serving.demo_scoring import load_demo_model, score_two
from sts_regression.serving.ray_scoring import RayScorer

LENGTH = 300  # tokens; more than the 256 that a plain encoder gets, fewer than the texts have
WORDS = "the cat and a dog on it".split() * 40  # a token each
# Equal in their first 256 tokens, different before the 300th, and different again after that.
PAIR = tuple(
    " ".join([*WORDS[:265], *text.split() * 5, *WORDS[:100], *text.split()[::-1] * 10])
    for text in ("water house red big", "man park park blue")
)
OTHER = ("a cat in the park", "a red house")
TOLERANCE = 1e-5
SIZES = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
IN_ALL_TESTS = ("linear", "cross-encoder")  # of the exports, which take half a minute each

VARIANTS: dict[str, dict[str, Any]] = {
    "linear": {"sentence1_prefix": "query: ", "sentence2_prefix": "a text: ", "normalize_embeddings": True},
    "cosine": {"sentence1_prefix": "a: ", "sentence2_prefix": "a: ", "score_function": "cosine", "pooling": "cls"},
    "bfloat16": {},
    "cross-encoder": {"encoder_type": "cross-encoder"},
    "modernbert": {"score_function": "cosine"},  # other families pack and pad in other ways
    "corn": {"loss_type": "corn", "score_function": "cosine"},  # several outputs
    "roberta": {"normalize_embeddings": True},
    "left": {},  # keeps the end of a long text
    "graded": {
        "grading": {
            "score_map": {"knots": [-1.0, 0.0, 0.5, 2.0], "values": [0.2, 0.9, 1.1, 3.2]},
            "cut_points": [0.5, 1.4, 2.6],
        }
    },
}

Scores = dict[str, float]  # `cosine`, `head` and `dot`, as far as a path gives them


@pytest.fixture
def checkpoint(
    variant: str,
    make_model: Callable[..., STSRegressionModel],
    save_checkpoint: Callable[[STSRegressionModel, PreTrainedTokenizerBase, Path], Path],
    tiny_encoder_config: BertConfig,
    tokenizer: PreTrainedTokenizerBase,
    tmp_path: Path,
) -> Path:
    sizes = {name: getattr(tiny_encoder_config, name) for name in SIZES}
    family = {"modernbert": ModernBertConfig, "roberta": RobertaConfig}.get(variant, BertConfig)
    encoder_config = family(**sizes, max_position_embeddings=LENGTH + 200, pad_token_id=tokenizer.pad_token_id)
    model = make_model(encoder_config, label_values=[0, 1, 2, 3], **VARIANTS[variant])
    if variant == "bfloat16":
        model.to(torch.bfloat16)
    tokenizer = copy.deepcopy(tokenizer)
    tokenizer.model_max_length = LENGTH
    tokenizer.truncation_side = "left" if variant == "left" else "right"
    return save_checkpoint(model, tokenizer, tmp_path / "model")


@pytest.fixture
def expected(checkpoint: Path) -> Scores:
    """By the plainest way there is: the tokenizer's first 300 tokens through AutoModel."""
    model = AutoModel.from_pretrained(checkpoint).eval()
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    assert model.dtype == torch.float32
    if model.config.encoder_type == "cross-encoder":
        with torch.no_grad():
            return {"head": model(**tokenizer(*PAIR, truncation=True, return_tensors="pt")).scores.item()}
    u, v = (
        model.get_text_features(**tokenizer(prefix + text, truncation=True, return_tensors="pt")).detach()
        for prefix, text in zip(model.config.prefixes, PAIR, strict=True)
    )
    head = model.score_embeddings(u, v).item()
    if model.config.normalize_embeddings:
        u, v = F.normalize(u, dim=-1), F.normalize(v, dim=-1)
    return {"cosine": F.cosine_similarity(u, v).item(), "dot": (u @ v.T).item(), "head": head}


def by_evaluation(checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scores]:
    found: list[PairScores] = []
    measure = outcome.measure_splits

    def keep(splits: Any, scores: dict[str, PairScores], *options: Any) -> Any:
        found.extend(scores.values())
        return measure(splits, scores, *options)

    monkeypatch.setattr(outcome, "measure_splits", keep)
    pairs = write_pairs(tmp_path / "labelled.csv", labels=(3, 0))
    run_sts.run_stages([f"--model_name_or_path={checkpoint}", f"--test_file={pairs}", *run_options(tmp_path)])
    (scores,) = found
    assert scores.head is not None
    cosine = {} if scores.cosine is None else {"cosine": float(scores.cosine[0])}
    yield {"head": float(scores.head[0]), **cosine}


def by_prediction(checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scores]:
    pairs, output = write_pairs(tmp_path / "pairs.csv"), tmp_path / "graded.csv"
    files = (f"--predict_file={pairs}", f"--predict_output={output}")
    run_sts.run_stages([f"--model_name_or_path={checkpoint}", *files, *run_options(tmp_path)])
    with output.open(newline="") as file:
        row = next(csv.DictReader(file))
    yield {"head": float(row["score"]), **({"cosine": float(row["cosine"])} if "cosine" in row else {})}


def by_pipeline(checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scores]:
    task: Any = "semantic-textual-similarity"
    grade = pipeline(task, model=str(checkpoint), trust_remote_code=True)
    for result in (grade(PAIR), grade([OTHER, PAIR], batch_size=2)[1]):
        yield {"head": result["score"], **({"cosine": result["cosine"]} if "cosine" in result else {})}


def by_sentence_transformers(checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scores]:
    library = pytest.importorskip("sentence_transformers")
    if AutoModel.from_pretrained(checkpoint).config.encoder_type == "cross-encoder":
        yield {"head": float(library.CrossEncoder(str(checkpoint), trust_remote_code=True).predict([PAIR])[0])}
        return
    encoder = library.SentenceTransformer(str(checkpoint), trust_remote_code=True)
    u, v = encoder.encode_query(PAIR[:1]), encoder.encode_document(PAIR[1:])
    cosine = float(encoder.similarity(u, v))
    yield {"cosine": cosine, "dot": float(u[0] @ v[0])}
    if len(set(AutoModel.from_pretrained(checkpoint).config.prefixes)) == 1:
        yield {"cosine": float(encoder.similarity(*encoder.encode(list(PAIR))))}


def by_search(checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scores]:
    if AutoModel.from_pretrained(checkpoint).config.encoder_type == "cross-encoder":
        pytest.skip("a cross-encoder has no embeddings to search")
    (tmp_path / "queries.txt").write_text(PAIR[0] + "\n")
    (tmp_path / "corpus.txt").write_text(PAIR[1] + "\n" + OTHER[1] + "\n")
    for score in ("head", "cosine"):
        output = tmp_path / f"{score}.jsonl"
        texts = (f"--queries={tmp_path / 'queries.txt'}", f"--corpus={tmp_path / 'corpus.txt'}")
        search.main([f"--model_name_or_path={checkpoint}", *texts, f"--output_file={output}", f"--score={score}"])
        hits = json.loads(output.read_text())["hits"]
        yield {score: next(hit["score"] for hit in hits if hit["index"] == 0)}


def by_ray(checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scores]:
    batch = {f"sentence{i + 1}": np.array([text]) for i, text in enumerate(PAIR)}
    scored = RayScorer(str(checkpoint))(batch)
    yield {name: scored[column][0] for name, column in (("head", "score"), ("cosine", "cosine")) if column in scored}


def by_page(checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scores]:
    monkeypatch.setattr("sts_regression.serving.demo_scoring.MAX_TEXT_CHARACTERS", 10_000)
    scored = score_two(load_demo_model(str(checkpoint)), *PAIR)
    yield {name: scored[column] for name, column in (("head", "score"), ("cosine", "cosine")) if column in scored}


def by_export(checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scores]:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    from sts_regression.models.onnx_graphs import GraphSession
    from sts_regression.serving.export import export

    report = export(str(checkpoint), tmp_path / "exported")
    assert report["max_seq_length"] == LENGTH
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "exported")
    session = GraphSession(tmp_path / "exported" / "scorer.onnx")
    if "cosine" not in session.output_names:
        inputs = tokenize_texts([PAIR[0]], tokenizer, [PAIR[1]], return_tensors="pt")
        yield {"head": float(session(**inputs)["score"][0])}
        return
    texts = [with_prefix([text], p)[0] for text, p in zip(PAIR, report["prefixes"], strict=True)]
    inputs = tokenize_texts(texts, tokenizer, padding=True, return_tensors="pt")
    outputs = session(**{name: tensor[None] for name, tensor in inputs.items()})
    yield {"head": float(outputs["score"][0]), "cosine": float(outputs["cosine"][0])}


def by_grader(checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scores]:
    grader = PairGrader(checkpoint)
    for graded in (grader.grade(PAIR), grader.grade([OTHER, PAIR])[1]):
        yield {name: graded[key] for name, key in (("head", "score"), ("cosine", "cosine")) if key in graded}
    if grader.model.config.encoder_type == "bi-encoder":
        u, v = grader.encode(PAIR[0]), grader.encode(PAIR[1], second=True)
        yield {"dot": float(u @ v)}
        [hits] = grader.search(PAIR[:1], [OTHER[1], PAIR[1]])
        yield {"head": next(hit["score"] for hit in hits if hit["index"] == 1)}


def by_training_program(checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scores]:
    """The scorer of the seven STS tasks."""
    from sts_regression.models.encoding import model_scorer

    model, tokenizer = load_model(find_model(str(checkpoint)), {})
    yield {
        name: float(values[0])
        for name, values in model_scorer(model, tokenizer, True)(*([text] for text in PAIR)).items()
    }


PATHS = (
    *(by_evaluation, by_prediction, by_pipeline, by_sentence_transformers, by_search, by_ray, by_page, by_export),
    *(by_grader, by_training_program),
)


def write_pairs(path: Path, labels: tuple[float, ...] = ()) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["sentence1", "sentence2", *(["label"] if labels else [])])
        writer.writerows([*pair, *labels[i : i + 1]] for i, pair in enumerate((PAIR, OTHER)))
    return path


def run_options(tmp_path: Path) -> list[str]:
    return [f"--output_dir={tmp_path / 'run'}", "--disable_tqdm=true", "--report_to=none", "--cpu_threads=1"]


@pytest.mark.parametrize(
    ("path", "variant"),
    [
        pytest.param(
            *(path, variant),
            marks=[pytest.mark.slow] if path is by_export and variant not in IN_ALL_TESTS else [],
            id=f"{path.__name__}-{variant}",
        )
        for path in PATHS
        for variant in VARIANTS
    ],
)
def test_a_pair_has_one_score(
    path: Callable[..., Iterator[Scores]],
    checkpoint: Path,
    expected: Scores,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for scores in path(checkpoint, tmp_path, monkeypatch):
        assert scores
        for name, value in scores.items():
            assert value == pytest.approx(expected[name], abs=TOLERANCE), (name, scores, expected)


def test_the_pair_differs_within_the_length_of_the_checkpoint_only(
    tiny_encoder_path: Path, tokenizer: PreTrainedTokenizerBase
) -> None:
    first, second = (tokenizer(text, truncation=False)["input_ids"] for text in PAIR)
    assert len(first) == len(second) > LENGTH
    assert first[:256] == second[:256]
    assert first[256 : LENGTH - 1] != second[256 : LENGTH - 1]
    assert first[LENGTH:-1] != second[LENGTH:-1]
