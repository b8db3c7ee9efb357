"""The model: shapes, pooling, pair features, heads, equivalences, freezing, precision and the losses it returns."""

import copy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import AutoModel, BertConfig, BertModel, DistilBertConfig, PreTrainedTokenizerBase
from transformers.utils import find_labels

from sts_regression.configuration_sts_regression import (
    GRADE_LOSSES,
    HEADLESS_LOSSES,
    LOSS_TYPES,
    PAIR_FEATURES,
    STSRegressionConfig,
)
from sts_regression.encoder_sts_regression import cls_pooling, mean_pooling
from sts_regression.losses_sts_regression import (
    angle,
    apply_boundary,
    binary_cross_entropy,
    corn,
    corn_log_probabilities,
    cosent,
    cross_entropy,
    hl_gauss,
    info_nce,
    l1,
    mse,
    pearson,
    smooth_k2,
    translated_relu,
)
from sts_regression.modeling_sts_regression import STSRegressionForSequenceClassification, STSRegressionModel
from sts_regression.packing_sts_regression import is_prepared
from sts_regression.pipeline_sts_regression import map_scores

pytestmark = pytest.mark.smoke

MakeModel = Callable[..., STSRegressionModel]
Batch = dict[str, Tensor]

HIDDEN = 32
PAIRS = [
    ("A man is playing a guitar.", "A woman plays the piano in the park."),
    ("Two dogs run on the beach.", "A dog is running along the sea."),
    ("The cat sleeps.", "A small cat is asleep on the red chair in the kitchen."),
    ("Children play football.", "Some children are playing with a ball."),
    ("A train is late.", "It is raining."),
    ("He drinks a cup of hot coffee before work each morning.", "She drinks tea."),
    ("The bus stops.", "The bus stops."),
    ("A boat is on the lake under a blue sky.", "There is a small boat on the water."),
]
LABELS = torch.tensor([1.4, 3.8, 2.6, 3.2, 0.0, 1.0, 5.0, 4.5])

LINEAR_BI_ENCODER_LOSSES = [loss for loss in LOSS_TYPES if loss not in HEADLESS_LOSSES]
# Every encoder type with every loss that its configuration allows.
MODEL_OPTIONS = [
    *({"encoder_type": "bi-encoder", "loss_type": loss} for loss in LOSS_TYPES),
    *({"encoder_type": "cross-encoder", "loss_type": loss} for loss in LINEAR_BI_ENCODER_LOSSES),
]
BOTH_ENCODER_TYPES = pytest.mark.parametrize("encoder_type", ["bi-encoder", "cross-encoder"])
SYMMETRIC_OPTIONS = [
    {"pair_features": ["abs_diff"]},
    {"pair_features": ["product", "sum"]},
    {"pair_features": ["abs_diff", "product", "sum"]},
    {"score_function": "cosine"},
]


def describe(options: dict[str, Any]) -> str:
    return "-".join("+".join(value) if isinstance(value, list) else str(value) for value in options.values())


@pytest.fixture
def encode(tokenizer: PreTrainedTokenizerBase) -> Callable[..., Batch]:
    """`encode(pairs, encoder_type)`: pairs as (batch, 2, length), or as (batch, length) for a cross-encoder."""

    def encode_pairs(pairs: Sequence[tuple[str, str]] = PAIRS, encoder_type: str = "bi-encoder") -> Batch:
        if encoder_type == "cross-encoder":
            return dict(tokenizer(*map(list, zip(*pairs, strict=True)), padding=True, return_tensors="pt"))
        flat = tokenizer([sentence for pair in pairs for sentence in pair], padding=True, return_tensors="pt")
        return {name: values.unflatten(0, (-1, 2)) for name, values in flat.items()}

    return encode_pairs


def random_embeddings(batch: int = 8) -> tuple[Tensor, Tensor]:
    u, v = torch.randn(2, batch, HIDDEN, generator=torch.Generator().manual_seed(0))
    return u, v


def gradients(model: STSRegressionModel, scalar: Tensor) -> dict[str, Tensor]:
    """Gradients of the scalar by name of parameter, zeros where it does not depend on the parameter."""
    names, parameters = zip(*model.named_parameters(), strict=True)
    values = torch.autograd.grad(scalar, parameters, retain_graph=True, allow_unused=True, materialize_grads=True)
    return dict(zip(names, values, strict=True))


def copy_of_state(module: torch.nn.Module) -> Batch:
    return copy.deepcopy(dict(module.state_dict()))


# Shapes


@pytest.mark.parametrize("options", MODEL_OPTIONS, ids=describe)
def test_outputs_have_the_documented_shapes(
    make_model: MakeModel, encode: Callable[..., Batch], options: dict[str, Any]
) -> None:
    output = make_model(**options)(**encode(encoder_type=options["encoder_type"]), labels=LABELS)
    assert output.loss.shape == ()
    assert output.scores.shape == (8,)
    assert output.logits.shape == (8, {"cross_entropy": 6, "hl_gauss": 6, "corn": 5}.get(options["loss_type"], 1))
    if options["encoder_type"] == "cross-encoder":
        assert output.embeddings is None
    else:
        assert output.embeddings.shape == (8, 2, HIDDEN)


@pytest.mark.parametrize(
    ("options", "inputs", "outputs"),
    [
        pytest.param({}, 3 * HIDDEN, 1, id="paper"),
        pytest.param({"pair_features": ["abs_diff"]}, HIDDEN, 1, id="one_feature"),
        pytest.param({"pair_features": PAIR_FEATURES}, 5 * HIDDEN, 1, id="all_features"),
        pytest.param({"loss_type": "cross_entropy", "label_values": [0, 1, 2]}, 3 * HIDDEN, 3, id="cross_entropy"),
        pytest.param({"score_function": "cosine"}, 1, 1, id="cosine"),
        pytest.param({"score_function": "cosine", "loss_type": "corn"}, 1, 5, id="corn"),
        pytest.param({"encoder_type": "cross-encoder"}, HIDDEN, 1, id="cross-encoder"),
    ],
)
def test_head_has_one_weight_per_feature_and_output_and_one_bias_per_output(
    make_model: MakeModel, options: dict[str, Any], inputs: int, outputs: int
) -> None:
    head = make_model(**options).head
    assert head.weight.shape == (outputs, inputs)
    assert head.bias.shape == (outputs,)


@BOTH_ENCODER_TYPES
def test_model_holds_one_encoder_without_pooler_and_the_head(
    make_model: MakeModel, tiny_encoder_config: BertConfig, encoder_type: str
) -> None:
    model = make_model(encoder_type=encoder_type)
    bare_encoder = BertModel(tiny_encoder_config, add_pooling_layer=False)
    expected = {f"encoder.{name}" for name, _ in bare_encoder.named_parameters()} | {"head.weight", "head.bias"}
    assert {name for name, _ in model.named_parameters()} == expected


@pytest.mark.parametrize(
    ("encoder_type", "shape", "expected"),
    [
        ("bi-encoder", (8, 12), "(batch, 2, length), but got (8, 12)"),
        ("bi-encoder", (8, 3, 12), "(batch, 2, length), but got (8, 3, 12)"),
        ("bi-encoder", None, "(batch, 2, length), but got None"),
        ("cross-encoder", (8, 2, 12), "(batch, length), but got (8, 2, 12)"),
        ("cross-encoder", None, "(batch, length), but got None"),
    ],
)
def test_inputs_of_another_shape_are_refused(
    make_model: MakeModel, encoder_type: str, shape: tuple[int, ...] | None, expected: str
) -> None:
    message = r"`input_ids` must have shape " + expected.replace("(", r"\(").replace(")", r"\)")
    with pytest.raises(ValueError, match=message):
        make_model(encoder_type=encoder_type)(None if shape is None else torch.ones(shape, dtype=torch.long))


@pytest.mark.parametrize(("encoder_type", "outputs"), [("bi-encoder", 4), ("cross-encoder", 3)])
def test_return_dict_false_gives_a_tuple_with_loss_and_scores_first(
    make_model: MakeModel, encode: Callable[..., Batch], encoder_type: str, outputs: int
) -> None:
    model = make_model(encoder_type=encoder_type)
    inputs = {**encode(encoder_type=encoder_type), "labels": LABELS}
    output, as_tuple = model(**inputs), model(**inputs, return_dict=False)
    assert isinstance(as_tuple, tuple)
    assert len(as_tuple) == outputs
    assert torch.equal(as_tuple[0], output.loss)
    assert torch.equal(as_tuple[1], output.scores)


# Pooling and padding


def test_mean_pooling_averages_the_real_tokens_only() -> None:
    hidden_states = torch.randn(3, 5, 4, generator=torch.Generator().manual_seed(0))
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [0, 0, 1, 1, 1]])
    by_hand = [
        states[row.astype(bool)].mean(axis=0) for states, row in zip(hidden_states.numpy(), mask.numpy(), strict=True)
    ]
    np.testing.assert_allclose(mean_pooling(hidden_states, mask).numpy(), by_hand, atol=1e-6)


def test_mean_pooling_does_not_overflow_in_float16() -> None:
    pooled = mean_pooling(torch.full((1, 1024, 2), 100.0, dtype=torch.float16), torch.ones(1, 1024, dtype=torch.long))
    assert (pooled.dtype, pooled.tolist()) == (torch.float16, [[100.0, 100.0]])


def test_mean_pooling_of_a_sentence_without_tokens_is_zero() -> None:
    assert mean_pooling(torch.ones(1, 3, 4), torch.zeros(1, 3, dtype=torch.long)).tolist() == [[0.0] * 4]


def test_cls_pooling_takes_the_first_token() -> None:
    hidden_states = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0))
    assert torch.equal(cls_pooling(hidden_states, torch.ones(2, 3)), hidden_states[:, 0])


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_text_features_pool_the_last_hidden_state(
    make_model: MakeModel, tokenizer: PreTrainedTokenizerBase, pooling: str
) -> None:
    model = make_model(pooling=pooling)
    inputs = tokenizer(["A dog.", "A man plays the guitar in the park."], padding=True, return_tensors="pt")
    with torch.no_grad():
        features = model.get_text_features(**inputs).numpy()
        hidden_states = model.encoder(**inputs).last_hidden_state.numpy()
    lengths = inputs["attention_mask"].sum(dim=1).tolist()
    assert lengths[0] < lengths[1]
    real_states = [
        states[: length if pooling == "mean" else 1] for states, length in zip(hidden_states, lengths, strict=True)
    ]
    np.testing.assert_allclose(features, [states.mean(axis=0) for states in real_states], atol=1e-6)


def test_without_attention_mask_every_token_counts(make_model: MakeModel, tokenizer: PreTrainedTokenizerBase) -> None:
    model = make_model()
    inputs = tokenizer("A man plays the guitar.", return_tensors="pt")
    torch.testing.assert_close(model.get_text_features(inputs["input_ids"]), model.get_text_features(**inputs))


@BOTH_ENCODER_TYPES
@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_more_padding_with_any_content_leaves_the_scores_unchanged(
    make_model: MakeModel, encode: Callable[..., Batch], encoder_type: str, pooling: str
) -> None:
    model = make_model(encoder_type=encoder_type, pooling=pooling)
    inputs = encode(encoder_type=encoder_type)
    padded = {name: torch.nn.functional.pad(values, (0, 9)) for name, values in inputs.items()}
    noise = torch.randint(5, 400, padded["input_ids"].shape, generator=torch.Generator().manual_seed(0))
    padded["input_ids"] = torch.where(padded["attention_mask"] == 1, padded["input_ids"], noise)
    with torch.no_grad():
        torch.testing.assert_close(model(**padded).scores, model(**inputs).scores, atol=1e-6, rtol=0)


@BOTH_ENCODER_TYPES
def test_one_batch_of_eight_pairs_equals_eight_batches_of_one(
    make_model: MakeModel, encode: Callable[..., Batch], encoder_type: str
) -> None:
    model = make_model(encoder_type=encoder_type)
    with torch.no_grad():
        together = model(**encode(encoder_type=encoder_type)).scores
        one_by_one = torch.cat([model(**encode([pair], encoder_type=encoder_type)).scores for pair in PAIRS])
    torch.testing.assert_close(together, one_by_one, atol=1e-6, rtol=0)


# Two sides, one encoder


def test_second_sentence_changes_its_own_embedding_only(make_model: MakeModel, encode: Callable[..., Batch]) -> None:
    model = make_model()
    inputs = encode()
    with torch.no_grad():
        before = model(**inputs).embeddings
        inputs["input_ids"][:, 1, 1] += 1  # The first word after [CLS].
        after = model(**inputs).embeddings
    assert torch.equal(after[:, 0], before[:, 0])
    assert (after[:, 1] != before[:, 1]).any(dim=-1).all()


def test_encoder_gradient_is_the_sum_of_both_sides(make_model: MakeModel, encode: Callable[..., Batch]) -> None:
    model = make_model()
    embeddings = model(**encode()).embeddings
    weights = torch.randn(8, 2, HIDDEN, generator=torch.Generator().manual_seed(0))
    weighted = embeddings * weights  # Layer norm makes the plain sum constant.
    name = "encoder.encoder.layer.0.attention.self.query.weight"
    both, first, second = (gradients(model, part.sum())[name] for part in (weighted, weighted[:, 0], weighted[:, 1]))
    assert first.abs().max() > 1e-4
    assert second.abs().max() > 1e-4
    torch.testing.assert_close(both, first + second)


@pytest.mark.parametrize("options", [{}, *SYMMETRIC_OPTIONS, {"loss_type": "cross_entropy"}], ids=describe)
def test_scoring_embeddings_equals_scoring_sentences(
    make_model: MakeModel, tokenizer: PreTrainedTokenizerBase, encode: Callable[..., Batch], options: dict[str, Any]
) -> None:
    model = make_model(**options)
    with torch.no_grad():
        u, v = (
            model.get_text_features(**tokenizer(list(sentences), padding=True, return_tensors="pt"))
            for sentences in zip(*PAIRS, strict=True)
        )
        torch.testing.assert_close(model.score_embeddings(u, v), model(**encode()).scores, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("options", SYMMETRIC_OPTIONS, ids=describe)
def test_symmetric_features_give_the_same_score_with_sides_swapped(
    make_model: MakeModel, encode: Callable[..., Batch], options: dict[str, Any]
) -> None:
    model = make_model(**options)
    u, v = random_embeddings()
    swapped = [(second, first) for first, second in PAIRS]
    with torch.no_grad():
        assert torch.equal(model.score_embeddings(u, v), model.score_embeddings(v, u))
        torch.testing.assert_close(model(**encode(swapped)).scores, model(**encode()).scores, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("pair_features", [["u"], ["v"], ["u", "v", "abs_diff"], ["u", "sum"]], ids="+".join)
def test_features_with_one_side_give_another_score_with_sides_swapped(
    make_model: MakeModel, pair_features: list[str]
) -> None:
    model = make_model(pair_features=pair_features)
    u, v = random_embeddings()
    assert ((model.score_embeddings(u, v) - model.score_embeddings(v, u)).abs() > 1e-4).all()


def test_head_sees_the_pair_features_in_their_order(make_model: MakeModel) -> None:
    model = make_model(pair_features=["product", "u", "abs_diff", "sum", "v"])
    u, v = random_embeddings()
    features = torch.cat([u * v, u, (u - v).abs(), u + v, v], dim=-1)
    expected = features @ model.head.weight[0] + model.head.bias
    torch.testing.assert_close(model.score_embeddings(u, v), expected)


def test_score_embeddings_is_refused_by_a_cross_encoder(make_model: MakeModel) -> None:
    u, v = random_embeddings()
    with pytest.raises(
        ValueError, match=r"`score_embeddings` needs sentence embeddings.*Call the model on tokenised pairs"
    ):
        make_model(encoder_type="cross-encoder").score_embeddings(u, v)


def test_segments_are_ignored_where_the_encoder_knows_none(
    make_model: MakeModel, tokenizer: PreTrainedTokenizerBase, encode: Callable[..., Batch]
) -> None:
    encoder_config = DistilBertConfig(vocab_size=len(tokenizer), dim=HIDDEN, n_layers=2, n_heads=4, hidden_dim=64)
    model = make_model(encoder_config)
    received: set[str] = set()
    model.encoder.register_forward_pre_hook(lambda _, args, options: received.update(options), with_kwargs=True)
    inputs = encode()
    assert "token_type_ids" in inputs
    model(**inputs)
    assert "attention_mask" in received or "packing" in received
    assert "token_type_ids" not in received


def test_cross_encoder_reads_the_segments(make_model: MakeModel, encode: Callable[..., Batch]) -> None:
    model = make_model(encoder_type="cross-encoder")
    inputs = encode(encoder_type="cross-encoder")
    one_segment = {**inputs, "token_type_ids": torch.zeros_like(inputs["token_type_ids"])}
    assert (model(**inputs).scores != model(**one_segment).scores).all()


# Scores and labels


@pytest.mark.parametrize("label_values", [(0, 1, 2, 3, 4, 5), (-1, 0, 1), (1, 1.5, 2)])
def test_fresh_cosine_head_spreads_cosines_0_to_1_over_the_scale(
    make_model: MakeModel, label_values: Sequence[float]
) -> None:
    model = make_model(score_function="cosine", label_values=label_values)
    low, high = label_values[0], label_values[-1]
    axes = torch.eye(HIDDEN)
    u, v = torch.stack([axes[0]] * 3), torch.stack([axes[1], 7 * axes[0], -axes[0]])  # cosines 0, 1 and -1
    assert model.score_embeddings(u, v).tolist() == pytest.approx([low, high, low - (high - low)])


@pytest.mark.parametrize("loss_type", GRADE_LOSSES)
@pytest.mark.parametrize("label_values", [(0, 1, 2, 3, 4, 5), (-2, 0, 1)], ids=["even", "uneven"])
def test_fresh_distribution_over_grades_follows_the_cosine(
    make_model: MakeModel, loss_type: str, label_values: Sequence[float]
) -> None:
    model = make_model(loss_type=loss_type, score_function="cosine", label_values=label_values)
    cosines = torch.linspace(0, 1, 11)
    axes = torch.eye(HIDDEN)
    v = cosines[:, None] * axes[0] + (1 - cosines**2).sqrt()[:, None] * axes[1]
    scores = model.score_embeddings(axes[:1].expand(11, -1), v)
    assert (scores.diff() > 0).all()
    even = label_values[0] + (label_values[-1] - label_values[0]) * cosines
    middle = slice(3, 8)  # the ends of the scale bound an expected grade
    assert (scores - even)[middle].abs().max() < 0.5 * model.config.label_step


@pytest.mark.parametrize("loss_type", GRADE_LOSSES)
def test_classifier_returns_the_logarithms_of_the_probabilities_of_grades(
    make_model: MakeModel, encode: Callable[..., Batch], loss_type: str
) -> None:
    model = make_model(loss_type=loss_type, encoder_type="cross-encoder", label_values=[1, 2, 4])
    classifier = STSRegressionForSequenceClassification(model.config, model.encoder)
    classifier.head = model.head
    inputs = encode(encoder_type="cross-encoder")
    probabilities = classifier.eval()(**inputs).logits.softmax(dim=-1)
    expected = probabilities @ torch.tensor([1.0, 2.0, 4.0])
    torch.testing.assert_close(model.eval()(**inputs).scores, expected)


def test_score_of_cross_entropy_is_the_expected_grade(make_model: MakeModel, encode: Callable[..., Batch]) -> None:
    model = make_model(loss_type="cross_entropy", label_values=[1, 2, 3])
    output = model(**encode())
    weights = np.exp(output.logits.detach().numpy())
    expected = (weights * [1, 2, 3]).sum(axis=1) / weights.sum(axis=1)
    np.testing.assert_allclose(output.scores.detach().numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize("label_values", [(0, 1, 2), (-2, 0, 2)])
def test_score_of_binary_cross_entropy_is_the_sigmoid_on_the_scale(
    make_model: MakeModel, encode: Callable[..., Batch], label_values: Sequence[float]
) -> None:
    output = make_model(loss_type="binary_cross_entropy", label_values=label_values)(**encode())
    probabilities = 1 / (1 + np.exp(-output.logits[:, 0].detach().numpy()))
    expected = label_values[0] + (label_values[-1] - label_values[0]) * probabilities
    np.testing.assert_allclose(output.scores.detach().numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("label_values", "scores", "expected"),
    [
        ([0, 1, 2, 3], [2.875, 1.333, 3.57, -0.4], [3.0, 1.0, 3.0, 0.0]),
        ([-1, -0.5, 0, 0.5], [[-0.7, 0.3], [9.0, -9.0]], [[-0.5, 0.5], [0.5, -1.0]]),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_predict_labels_gives_the_nearest_node(
    make_model: MakeModel, label_values: list[float], scores: list[Any], expected: list[Any], dtype: torch.dtype
) -> None:
    labels = make_model(label_values=label_values).predict_labels(torch.tensor(scores, dtype=dtype))
    assert labels.dtype == dtype
    assert labels.tolist() == expected


# Losses

SLOPE, THRESHOLD, TEMPERATURE = 3.0, 0.1, 0.2
EXPECTED_LOSSES: dict[str, Callable[[Any, Tensor, list[float]], Tensor]] = {
    "smooth_k2": lambda output, labels, nodes: smooth_k2(output.scores, labels, SLOPE, THRESHOLD),
    "translated_relu": lambda output, labels, nodes: translated_relu(output.scores, labels, SLOPE, THRESHOLD),
    "mse": lambda output, labels, nodes: mse(output.scores, labels),
    "l1": lambda output, labels, nodes: l1(output.scores, labels),
    "cross_entropy": lambda output, labels, nodes: cross_entropy(output.logits, labels, nodes),
    "hl_gauss": lambda output, labels, nodes: hl_gauss(output.logits, labels, nodes),
    "corn": lambda output, labels, nodes: corn(output.logits, labels, nodes),
    "binary_cross_entropy": lambda output, labels, nodes: binary_cross_entropy(
        output.logits[:, 0], (labels - nodes[0]) / (nodes[-1] - nodes[0])
    ),
    "info_nce": lambda output, labels, nodes: info_nce(output.embeddings[:, 0], output.embeddings[:, 1], TEMPERATURE),
    "cosent": lambda output, labels, nodes: cosent(
        torch.cosine_similarity(output.embeddings[:, 0], output.embeddings[:, 1]), labels, TEMPERATURE
    ),
    "angle": lambda output, labels, nodes: angle(
        output.embeddings[:, 0], output.embeddings[:, 1], labels, TEMPERATURE
    ),
    "pearson": lambda output, labels, nodes: pearson(output.scores, labels),
}


@pytest.mark.parametrize("options", MODEL_OPTIONS, ids=describe)
@pytest.mark.parametrize("label_values", [(0, 1, 2, 3, 4, 5), (-1, 1, 3, 5)], ids=str)
def test_loss_is_the_pure_function_with_the_numbers_of_the_configuration(
    make_model: MakeModel, encode: Callable[..., Batch], options: dict[str, Any], label_values: Sequence[float]
) -> None:
    model = make_model(
        **options,
        label_values=label_values,
        loss_slope=SLOPE,
        loss_threshold=THRESHOLD,
        loss_temperature=TEMPERATURE,
    )
    output = model(**encode(encoder_type=options["encoder_type"]), labels=LABELS)
    expected = EXPECTED_LOSSES[options["loss_type"]](output, LABELS, model.config.label_values)
    assert output.loss > 0
    assert output.loss.item() == expected.item()


@BOTH_ENCODER_TYPES
@pytest.mark.parametrize(("boundary", "bias"), [("relax", 9.0), ("mask_negative", -1.0)])
def test_loss_respects_the_boundary(
    make_model: MakeModel, encode: Callable[..., Batch], boundary: str, bias: float, encoder_type: str
) -> None:
    model = make_model(boundary=boundary, encoder_type=encoder_type)
    torch.nn.init.constant_(model.head.bias, bias)
    output = model(**encode(encoder_type=encoder_type), labels=LABELS)
    bounded = apply_boundary(output.scores, LABELS, model.config.label_values, boundary)
    assert output.loss.item() == smooth_k2(bounded, LABELS).item()
    assert output.loss < smooth_k2(output.scores, LABELS)


def test_without_labels_there_is_no_loss(make_model: MakeModel, encode: Callable[..., Batch]) -> None:
    assert make_model()(**encode()).loss is None


def test_whole_number_labels_count_like_floats(make_model: MakeModel, encode: Callable[..., Batch]) -> None:
    model = make_model()
    whole = LABELS.long()
    assert torch.equal(model(**encode(), labels=whole).loss, model(**encode(), labels=whole.float()).loss)


# Pretrained and frozen encoders


def test_fresh_head_around_a_pretrained_encoder_keeps_its_weights(tiny_encoder_path: Path) -> None:
    encoder = AutoModel.from_pretrained(tiny_encoder_path, add_pooling_layer=False)
    weights = copy_of_state(encoder)
    model = STSRegressionModel(STSRegressionConfig(), encoder=encoder)
    assert model.head.in_features == 3 * HIDDEN
    assert model.config.encoder_config.hidden_size == HIDDEN
    assert model.encoder.state_dict().keys() == weights.keys()
    assert all(torch.equal(values, weights[name]) for name, values in model.encoder.state_dict().items())


def test_training_mode_turns_dropout_on_unless_the_encoder_is_frozen(
    make_model: MakeModel, encode: Callable[..., Batch]
) -> None:
    model = make_model()
    inputs = encode()
    assert not torch.equal(model.train()(**inputs).scores, model(**inputs).scores)
    model.freeze_encoder()
    assert torch.equal(model(**inputs).scores, model(**inputs).scores)
    assert torch.equal(model.train()(**inputs).scores, model(**inputs).scores)
    assert model.training
    assert model.head.training
    assert not any(module.training for module in model.encoder.modules())


@BOTH_ENCODER_TYPES
def test_with_a_frozen_encoder_only_the_head_learns(
    make_model: MakeModel, encode: Callable[..., Batch], encoder_type: str
) -> None:
    model = make_model(encoder_type=encoder_type)
    model.freeze_encoder()
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, weight_decay=0.1)
    before = copy_of_state(model)
    model(**encode(encoder_type=encoder_type), labels=LABELS).loss.backward()
    assert {name for name, parameter in model.named_parameters() if parameter.grad is not None} == {
        "head.weight",
        "head.bias",
    }
    optimizer.step()
    changed = {name for name, values in model.state_dict().items() if not torch.equal(values, before[name])}
    assert changed == {"head.weight", "head.bias"}


# Precision and memory


@pytest.mark.parametrize("options", MODEL_OPTIONS, ids=describe)
def test_scores_stay_float32_under_mixed_precision(
    make_model: MakeModel, encode: Callable[..., Batch], options: dict[str, Any]
) -> None:
    model = make_model(**options)
    inputs = {**encode(encoder_type=options["encoder_type"]), "labels": LABELS}
    exact = model(**inputs)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = model(**inputs)
    assert mixed.scores.dtype == mixed.logits.dtype == mixed.loss.dtype == torch.float32
    torch.testing.assert_close(mixed.scores, exact.scores, atol=0.05, rtol=0)


@pytest.mark.parametrize("options", MODEL_OPTIONS, ids=describe)
def test_model_in_half_precision_scores_and_learns(
    make_model: MakeModel, encode: Callable[..., Batch], options: dict[str, Any]
) -> None:
    model = make_model(**options)
    inputs = {**encode(encoder_type=options["encoder_type"]), "labels": LABELS}
    exact = model(**inputs).scores
    output = model.to(torch.bfloat16)(**inputs)
    torch.testing.assert_close(output.scores.float(), exact, atol=0.1, rtol=0)
    output.loss.backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters() if parameter.grad is not None)
    assert next(model.encoder.parameters()).grad is not None


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_a_head_loaded_in_half_precision_stays_exact(
    make_model: MakeModel, encode: Callable[..., Batch], tmp_path: Path, dtype: torch.dtype
) -> None:
    """The scores of single pairs then differ as their cosines do: in the last digits, not in the third."""
    grading = {"score_map": {"knots": [0.0, 2.0, 4.0], "values": [0.5, 2.5, 4.0]}}
    make_model(score_function="cosine", label_values=[0, 5]).save_pretrained(tmp_path)
    model = STSRegressionModel.from_pretrained(tmp_path, dtype=dtype)
    output = model(**encode())
    assert (model.encoder.dtype, model.head.weight.dtype, output.scores.dtype) == (dtype, *[torch.float32] * 2)
    u, v = output.embeddings.float().unbind(1)
    expected = model.head(torch.nn.functional.cosine_similarity(u, v)[:, None])[:, 0]
    torch.testing.assert_close(output.scores, expected)
    assert map_scores(output.scores.to(dtype), grading).dtype == torch.float32


def test_gradient_checkpointing_runs_layers_twice_and_gives_the_same_gradients(
    make_model: MakeModel, encode: Callable[..., Batch], tiny_encoder_config: BertConfig
) -> None:
    tiny_encoder_config.hidden_dropout_prob = tiny_encoder_config.attention_probs_dropout_prob = 0.0
    model = make_model(tiny_encoder_config).train()
    inputs = {**encode(), "labels": LABELS}
    calls: list[str] = []
    model.get_submodule("encoder.encoder.layer.0.attention").register_forward_hook(lambda *_: calls.append("forward"))

    expected = gradients(model, model(**inputs).loss)
    assert len(calls) == 1
    model.gradient_checkpointing_enable()  # The name that transformers 5.17 knows; later ones pass it on.
    checkpointed = gradients(model, model(**inputs).loss)
    assert len(calls) == 3
    for name, values in expected.items():
        torch.testing.assert_close(checkpointed[name], values, msg=f"the gradient of {name} differs")


# The sequence classifier


@pytest.mark.parametrize("loss_type", LINEAR_BI_ENCODER_LOSSES)
def test_sequence_classifier_returns_loss_and_logits_of_the_cross_encoder(
    make_model: MakeModel, encode: Callable[..., Batch], loss_type: str
) -> None:
    options = {"encoder_type": "cross-encoder", "loss_type": loss_type}
    inputs = {**encode(encoder_type="cross-encoder"), "labels": LABELS}
    expected = make_model(**options)(**inputs)
    classifier = make_model(**options, model_class=STSRegressionForSequenceClassification)
    output = classifier(**inputs)
    assert output.loss.item() == expected.loss.item()
    assert torch.equal(
        output.logits, corn_log_probabilities(expected.logits) if loss_type == "corn" else expected.logits
    )
    as_tuple = classifier(**inputs, return_dict=False)
    assert isinstance(as_tuple, tuple)
    assert [values.shape for values in as_tuple] == [output.loss.shape, output.logits.shape]


def test_sequence_classifier_returns_calibrated_scores(
    make_model: MakeModel, encode: Callable[..., Batch], tokenizer: PreTrainedTokenizerBase
) -> None:
    grading = {"score_map": {"knots": [0.0, 1.0, 2.0], "values": [0.0, 3.0, 5.0]}, "cut_points": None}
    options = {"encoder_type": "cross-encoder", "loss_type": "mse", "grading": grading}
    inputs = encode(encoder_type="cross-encoder")
    classifier = make_model(**options, model_class=STSRegressionForSequenceClassification)
    scores = make_model(**options)(**inputs).scores
    assert classifier(**inputs).logits[:, 0].tolist() == scores.tolist() != make_model(**options)(**inputs).logits
    assert classifier.config.problem_type == "regression"


def test_sequence_classifier_refuses_a_bi_encoder(make_model: MakeModel) -> None:
    message = 'needs `encoder_type="cross-encoder"`, but this checkpoint has "bi-encoder". Load it with AutoModel'
    with pytest.raises(ValueError, match=message):
        make_model(model_class=STSRegressionForSequenceClassification)


def test_labels_of_another_shape_are_refused(make_model: MakeModel) -> None:
    with pytest.raises(ValueError, match=r"`labels` must have shape \(3,\), but got \(3, 1\)"):
        make_model()(torch.ones(3, 2, 4, dtype=torch.long), labels=torch.ones(3, 1))


def test_trainer_finds_the_labels_of_the_sequence_classifier() -> None:
    assert find_labels(STSRegressionForSequenceClassification) == ["labels"]


def test_pooling_keeps_float32_under_mixed_precision() -> None:
    hidden_states = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0))
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = mean_pooling(hidden_states, mask)
    assert torch.equal(mixed, mean_pooling(hidden_states, mask))


def test_info_nce_keeps_float32_under_mixed_precision() -> None:
    u, v = torch.randn(2, 4, 8, generator=torch.Generator().manual_seed(0))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = info_nce(u, v)
    assert torch.equal(mixed, info_nce(u, v))


def test_models_of_one_configuration_do_not_change_each_other(tiny_encoder_config: BertConfig) -> None:
    packed = STSRegressionModel(STSRegressionConfig(encoder_config=tiny_encoder_config))
    padded = STSRegressionModel(STSRegressionConfig(encoder_config=tiny_encoder_config, encoding="padded"))
    assert is_prepared(packed.encoder)
    assert not is_prepared(padded.encoder)


def test_wrapping_an_encoder_leaves_the_given_configuration_alone(tiny_encoder_config: BertConfig) -> None:
    config = STSRegressionConfig()
    STSRegressionModel(config, BertModel(tiny_encoder_config))
    assert config.encoder_config is not tiny_encoder_config
