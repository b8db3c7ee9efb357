"""Packed encoding equals padded encoding for every encoder that packs, and is used where it can be."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import CONFIG_MAPPING, AttentionMaskInterface, AutoModel, PretrainedConfig
from transformers.integrations.neftune import activate_neftune, deactivate_neftune

from sts_regression import packing_sts_regression
from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.packing_sts_regression import (
    PACKABLE_MODEL_TYPES,
    PACKED_ATTENTION,
    Packing,
    encode_packed,
    is_worth_packing,
)

LENGTHS = (20, 3, 11, 1, 7, 20)
VOCABULARY = 100
BERT_LIKE = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
}
SPECIAL_TOKENS = {f"{name}_token_id": i for i, name in enumerate(("pad", "cls", "sep", "bos", "eos", "mask"))}
OPTIONS: dict[str, dict[str, Any]] = {
    "albert": {**BERT_LIKE, "embedding_size": 16},
    "distilbert": {"vocab_size": VOCABULARY, "dim": 32, "n_layers": 3, "n_heads": 4, "hidden_dim": 64},
    "electra": {**BERT_LIKE, "embedding_size": 16},
    "eurobert": {**BERT_LIKE, **SPECIAL_TOKENS},
    # Windows of 5 tokens in two of three layers: most sentences are longer.
    "modernbert": {**BERT_LIKE, **SPECIAL_TOKENS, "local_attention": 8, "global_attn_every_n_layers": 3},
}

MakeModel = Callable[..., STSRegressionModel]


def encoder_config(model_type: str, **options: Any) -> PretrainedConfig:
    return CONFIG_MAPPING[model_type](**{**OPTIONS.get(model_type, BERT_LIKE), **options})


def batch(config: PretrainedConfig, lengths: tuple[int, ...] = LENGTHS) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(0)
    input_ids = torch.randint(6, VOCABULARY, (len(lengths), max(lengths)), generator=generator)
    attention_mask = (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]).long()
    return {"input_ids": input_ids.where(attention_mask == 1, config.pad_token_id), "attention_mask": attention_mask}


def spread_weights(model: torch.nn.Module) -> None:
    """Weights as large as trained ones: with those of a fresh encoder attention hardly matters."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape, generator=generator))


def gradients(model: torch.nn.Module) -> dict[str, Tensor]:
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def check_packed_is_padded(
    make_model: MakeModel, config: PretrainedConfig, pooling: str, inputs: dict[str, Tensor], device: str = "cpu"
) -> None:
    results = []
    for encoding in ("auto", "padded"):
        model = make_model(config, pooling=pooling, encoding=encoding)
        spread_weights(model)
        model.to(device)
        assert (model.encoder.config._attn_implementation == PACKED_ATTENTION) is (encoding == "auto")
        embeddings = model.get_text_features(**{name: tensor.to(device) for name, tensor in inputs.items()})
        embeddings.tanh().square().sum().backward()
        results.append((embeddings, gradients(model)))
    (packed, packed_gradients), (padded, padded_gradients) = results
    torch.testing.assert_close(packed, padded, atol=1e-5, rtol=1e-5)
    assert packed_gradients.keys() == padded_gradients.keys()
    for name, gradient in padded_gradients.items():
        tolerance = 1e-5 * max(1.0, gradient.abs().max().item())  # some are sums of a hundred terms, as large as 20
        assert (packed_gradients[name] - gradient).abs().max() <= tolerance, name


@pytest.fixture
def always_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU, where batches as small as these are padded."""
    monkeypatch.setattr(packing_sts_regression, "PADDING_WORTH_PACKING", {"float32": 0, "half": 0})


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("pooling", ["mean", "cls"])
@pytest.mark.parametrize("model_type", PACKABLE_MODEL_TYPES)
@pytest.mark.usefixtures("always_packed")
def test_embeddings_and_gradients_are_those_of_the_padded_batch(
    make_model: MakeModel, model_type: str, pooling: str, device: str
) -> None:
    config = encoder_config(model_type)
    check_packed_is_padded(make_model, config, pooling, batch(config), device)


@pytest.mark.parametrize("model_type", PACKABLE_MODEL_TYPES)
def test_no_mask_is_built_for_a_packed_row(
    make_model: MakeModel, model_type: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its shape would be (tokens, tokens): gigabytes for the 16,384 tokens of a batch on a GPU."""

    def refuse(**kwargs: Any) -> None:
        raise AssertionError("a mask is built")

    config = encoder_config(model_type)
    model = make_model(config, encoding="auto")
    monkeypatch.setitem(AttentionMaskInterface._global_mapping, PACKED_ATTENTION, refuse)
    model.get_text_features(**batch(config))


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("model_type", PACKABLE_MODEL_TYPES)
@pytest.mark.usefixtures("always_packed")
def test_half_precision_on_a_gpu_is_as_near_to_float32_packed_as_padded(
    make_model: MakeModel, model_type: str, dtype: torch.dtype
) -> None:
    """Embeddings without dropout, by FlashAttention; a window that is too wide or too narrow differs by far more."""
    config = encoder_config(model_type)
    inputs = {name: tensor.to("cuda") for name, tensor in batch(config).items()}
    embeddings = {}
    for encoding, precision in (("padded", torch.float32), ("padded", dtype), ("auto", dtype)):
        model = make_model(config, encoding=encoding)
        spread_weights(model)
        model.to("cuda")
        counts = count_tokens(model)
        with torch.no_grad(), torch.autocast("cuda", precision, enabled=precision != torch.float32):
            embeddings[encoding, precision] = model.get_text_features(**inputs).float()
        assert counts == [6 * 20 if encoding == "padded" else sum(LENGTHS)]
    exact = embeddings.pop(("padded", torch.float32))
    padded, packed = ((found - exact).norm() / exact.norm() for found in embeddings.values())
    assert packed < 2 * padded < 0.2


@pytest.mark.gpu
def test_a_gpu_packs_batches_with_much_padding(make_model: MakeModel) -> None:
    """An H200 has 132 multiprocessors, small cards fewer; a token of BERT-base takes 85 million products."""
    base = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12}
    model = make_model(encoder_config("bert", **base), encoding="auto").to("cuda")
    many, few = (torch.tensor([[1] * 40, *[[1] * 4 + [0] * 36] * rows], device="cuda") for rows in (1024, 1))
    for is_training in (True, False):
        model.train(is_training)
        assert is_worth_packing(model.encoder, many)
        assert not is_worth_packing(model.encoder, few)
        with torch.autocast("cuda", torch.bfloat16):
            assert is_worth_packing(model.encoder, few) is not is_training


@pytest.mark.parametrize("key_value_heads", [1, 2])
def test_heads_of_keys_may_serve_several_heads_of_queries(make_model: MakeModel, key_value_heads: int) -> None:
    config = encoder_config("eurobert", num_key_value_heads=key_value_heads)
    check_packed_is_padded(make_model, config, "mean", batch(config))


@pytest.mark.parametrize("model_type", PACKABLE_MODEL_TYPES)
def test_a_text_may_spell_the_padding_token(make_model: MakeModel, model_type: str) -> None:
    config = encoder_config(model_type)
    inputs = batch(config)
    for row, column in ((0, 0), (0, 7), (0, 8), (2, 10), (3, 0)):  # first, within, last of a sentence, and all of it
        inputs["input_ids"][row, column] = config.pad_token_id
    check_packed_is_padded(make_model, config, "mean", inputs)


@pytest.mark.parametrize("model_type", PACKABLE_MODEL_TYPES)
def test_the_encoder_alone_still_takes_padded_batches(model_type: str) -> None:
    config = encoder_config(model_type)
    inputs = batch(config)
    torch.manual_seed(0)
    encoder = AutoModel.from_config(config).eval()
    expected = encoder(**inputs)[0]
    encoder.set_attn_implementation(PACKED_ATTENTION)
    torch.testing.assert_close(encoder(**inputs)[0], expected, atol=1e-6, rtol=1e-6)


def test_sentences_do_not_see_each_other(make_model: MakeModel) -> None:
    model = make_model(encoder_config("bert"))
    inputs = batch(model.config.encoder_config)
    together = model.get_text_features(**inputs)
    for row, length in enumerate(LENGTHS):
        alone = model.get_text_features(inputs["input_ids"][row : row + 1, :length])
        torch.testing.assert_close(together[row : row + 1], alone, atol=1e-6, rtol=1e-5)


def count_tokens(model: STSRegressionModel) -> list[int]:
    """The number of tokens that go into the encoder, filled in call by call."""
    counts: list[int] = []

    def count(module: torch.nn.Module, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        input_ids = args[0] if args else options["input_ids"]
        counts.append(input_ids.numel())

    model.encoder.register_forward_pre_hook(count, with_kwargs=True)
    return counts


@pytest.mark.parametrize(
    ("options", "tokens"),
    [({}, sum(LENGTHS)), ({"encoding": "padded"}, 6 * 20), ({"encoder_type": "cross-encoder"}, sum(LENGTHS))],
)
def test_only_real_tokens_go_through_the_encoder(make_model: MakeModel, options: dict[str, Any], tokens: int) -> None:
    model = make_model(encoder_config("bert"), **options)
    counts = count_tokens(model)
    inputs = batch(model.config.encoder_config)
    if "encoder_type" not in options:
        inputs = {name: tensor.unflatten(0, (3, 2)) for name, tensor in inputs.items()}
    model(**inputs)
    assert counts == [tokens]


@pytest.mark.parametrize("model_type", ["mpnet", "deberta-v2"])
def test_encoders_without_an_attention_interface_are_padded(make_model: MakeModel, model_type: str) -> None:
    model = make_model(encoder_config(model_type))
    counts = count_tokens(model)
    model.get_text_features(**batch(model.config.encoder_config))
    assert counts == [6 * 20]


def test_a_decoder_is_padded(make_model: MakeModel) -> None:
    model = make_model(encoder_config("bert", is_decoder=True))
    assert model.encoder.config._attn_implementation == "sdpa"


def test_another_attention_switches_packing_off(make_model: MakeModel) -> None:
    model = make_model(encoder_config("bert"))
    inputs = batch(model.config.encoder_config)
    packed = model.get_text_features(**inputs)
    counts = count_tokens(model)
    model.set_attn_implementation("eager")
    torch.testing.assert_close(model.get_text_features(**inputs), packed, atol=1e-5, rtol=1e-5)
    assert counts == [6 * 20]


def test_segments_are_packed_too(make_model: MakeModel) -> None:
    embeddings = []
    for encoding in ("auto", "padded"):
        model = make_model(encoder_config("bert"), encoding=encoding)
        inputs = batch(model.config.encoder_config)
        segments = (torch.arange(20) > 2).long().expand(6, 20)
        embeddings.append(model.get_text_features(**inputs, token_type_ids=segments))
    torch.testing.assert_close(*embeddings, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("model_type", ["bert", "roberta"])
def test_padding_on_the_left_and_a_sentence_without_tokens(make_model: MakeModel, model_type: str) -> None:
    embeddings = []
    for encoding in ("auto", "padded"):
        model = make_model(encoder_config(model_type), encoding=encoding)
        inputs = {name: tensor.flip(1) for name, tensor in batch(model.config.encoder_config).items()}
        inputs["attention_mask"][4] = 0
        inputs["input_ids"][4] = model.config.encoder_config.pad_token_id
        features = model.get_text_features(**inputs)
        features.sum().backward()
        assert all(gradient.isfinite().all() for gradient in gradients(model).values())
        embeddings.append(features)
    assert (embeddings[0][4] == 0).all()
    torch.testing.assert_close(*embeddings, atol=1e-5, rtol=1e-5)


def test_gradient_checkpointing_changes_nothing(make_model: MakeModel) -> None:
    results = []
    for checkpointing in (False, True):
        model = make_model(encoder_config("bert"))
        if checkpointing:
            model.gradient_checkpointing_enable()
            model.train()
            for module in model.modules():
                if isinstance(module, torch.nn.Dropout):
                    module.p = 0.0
        model.get_text_features(**batch(model.config.encoder_config)).square().sum().backward()
        results.append(gradients(model))
    for name, gradient in results[0].items():
        torch.testing.assert_close(results[1][name], gradient, atol=1e-6, rtol=1e-5)


def test_mixed_precision_stays_near_float32(make_model: MakeModel) -> None:
    model = make_model(encoder_config("bert"))
    inputs = batch(model.config.encoder_config)
    expected = model.get_text_features(**inputs)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        packed = model.get_text_features(**inputs)
    torch.testing.assert_close(packed.float(), expected, atol=0.05, rtol=0.05)


def test_dropout_acts_on_packed_attention(make_model: MakeModel) -> None:
    model = make_model(encoder_config("bert", hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.5)).train()
    inputs = batch(model.config.encoder_config)
    first, second = (model.get_text_features(**inputs) for _ in range(2))
    assert not torch.allclose(first, second)


def test_noise_of_neftune_is_that_of_the_padded_batch(make_model: MakeModel) -> None:
    config = encoder_config("bert", hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    embeddings = []
    for encoding in ("auto", "padded"):
        model = make_model(config, encoding=encoding)
        inputs = batch(config)
        quiet = model.get_text_features(**inputs)
        hook = activate_neftune(model, 5.0)
        torch.testing.assert_close(model.get_text_features(**inputs), quiet)  # noise is for training
        torch.manual_seed(0)
        noisy = model.train().get_text_features(**inputs)
        assert not torch.allclose(noisy, quiet, atol=1e-2)
        deactivate_neftune(model, hook)
        counts = count_tokens(model)
        torch.testing.assert_close(model.get_text_features(**inputs), quiet)
        assert counts == [sum(LENGTHS) if encoding == "auto" else 6 * 20]
        embeddings.append(noisy)
    torch.testing.assert_close(*embeddings)


def test_packing_there_and_back() -> None:
    mask = torch.tensor([[1, 1, 0], [0, 0, 0], [1, 1, 1]])
    packing = Packing.from_mask(mask)
    values = torch.arange(1, 10).view(3, 3)
    packed = packing.pack(values)
    assert packed.tolist() == [[7, 8, 9, 1, 2]]  # the longest sentence first
    assert packing.unpack(packed[0]).tolist() == (values * mask).tolist()
    assert packing.unpack(torch.ones(5, 4)).shape == (3, 3, 4)


@pytest.mark.parametrize("dtype", [torch.bool, torch.int32, torch.float32])
def test_masks_of_any_type(make_model: MakeModel, dtype: torch.dtype) -> None:
    model = make_model(encoder_config("bert"))
    inputs = batch(model.config.encoder_config)
    expected = model.get_text_features(**inputs)
    inputs["attention_mask"] = inputs["attention_mask"].to(dtype)
    torch.testing.assert_close(model.get_text_features(**inputs), expected)


def test_hidden_states_are_zero_at_padding() -> None:
    torch.manual_seed(0)
    encoder = AutoModel.from_config(encoder_config("bert"))
    encoder.set_attn_implementation(PACKED_ATTENTION)
    inputs = batch(encoder.config)
    hidden_states = encode_packed(encoder, **inputs)
    assert hidden_states.shape == (6, 20, 32)
    assert (hidden_states[inputs["attention_mask"] == 0] == 0).all()


def test_attention_pads_sentences_of_similar_length_together() -> None:
    lengths = torch.tensor([1, 3, 20, 0, 2, 19, 20])
    packing = Packing.from_mask(torch.arange(20) < lengths[:, None])
    assert [(group.sentences, group.length, group.tokens) for group in packing.groups] == [
        (3, 20, 59),
        (2, 3, 5),
        (1, 1, 1),
    ]
