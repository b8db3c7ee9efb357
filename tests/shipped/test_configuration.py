"""The configuration: the paper's defaults, values derived from the options, every refusal, and the round trips."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers import BertConfig, DistilBertConfig

from sts_regression.configuration_sts_regression import (
    BOUNDARIES,
    BUFFER_ZONE_LOSSES,
    ENCODER_TYPES,
    ENCODINGS,
    HEADLESS_LOSSES,
    LOSS_TYPES,
    PAIR_FEATURES,
    POOLINGS,
    REGRESSION_LOSSES,
    SCORE_FUNCTIONS,
    STSRegressionConfig,
)

NAN, INFINITY = float("nan"), float("inf")


def in_order(*fragments: str) -> str:
    """A regular expression for text that holds these fragments one after the other."""
    return "(?s)" + ".*".join(map(re.escape, fragments))


# Defaults and values derived from the options


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("encoder_type", "bi-encoder"),
        ("pooling", "mean"),
        ("pair_features", ["u", "v", "abs_diff"]),
        ("score_function", "linear"),
        ("loss_type", "smooth_k2"),
        ("loss_slope", 2.0),
        ("loss_threshold", 0.25),
        ("label_values", [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]),
        ("label_step", 1.0),
        ("label_names", None),
        ("boundary", "none"),
        ("encoding", "auto"),
        ("normalize_embeddings", False),
        ("num_outputs", 1),
    ],
)
def test_defaults_are_the_papers(option: str, expected: object) -> None:
    assert getattr(STSRegressionConfig(), option) == expected


@pytest.mark.parametrize(
    ("label_values", "label_step"), [((0, 1, 2), 1.0), ((0, 0.2, 0.4), 0.2), ((1, 1.5), 0.5), ((-2, 0, 2, 4), 2.0)]
)
def test_threshold_defaults_to_a_quarter_of_the_step(label_values: Sequence[float], label_step: float) -> None:
    config = STSRegressionConfig(label_values=label_values)
    assert config.label_step == pytest.approx(label_step)
    assert config.loss_threshold == pytest.approx(label_step / 4)


@pytest.mark.parametrize(
    ("label_values", "label_step"),
    [((0, 1, 1.2), 1.2 - 1), ((0, 1, 3), 1.0), ((-2, -1.5, 4), 0.5), ((0, 1, 1.99), 0.99)],
)
def test_the_step_of_uneven_nodes_is_their_smallest_distance(label_values: Sequence[float], label_step: float) -> None:
    config = STSRegressionConfig(label_values=label_values)
    assert config.label_values == list(map(float, label_values))
    assert config.label_step == label_step
    assert config.loss_threshold == label_step / 4
    assert STSRegressionConfig(label_values=label_values, loss_type="cross_entropy").num_outputs == 3


@pytest.mark.parametrize("label_values", [(0, 0.1, 0.2, 0.3), (1, 1.2, 1.4), (0, 1 / 3, 2 / 3, 1), (0, 1, 2, 3, 4, 5)])
def test_the_step_of_even_nodes_is_their_mean_distance_to_the_last_bit(label_values: Sequence[float]) -> None:
    step = (label_values[-1] - label_values[0]) / (len(label_values) - 1)
    assert STSRegressionConfig(label_values=label_values).label_step == step


@pytest.mark.parametrize("loss_type", BUFFER_ZONE_LOSSES)
@pytest.mark.parametrize("nodes", [2, 3, 4, 11])
@pytest.mark.parametrize("start", [0, 1])  # 1.2 - 1 is a little less than 0.2.
@pytest.mark.parametrize("step", [1, 0.5, 0.2, 0.1, 0.3, 1 / 3])
def test_threshold_of_exactly_half_the_step_is_allowed(step: float, start: float, nodes: int, loss_type: str) -> None:
    label_values = [start + step * index for index in range(nodes)]
    config = STSRegressionConfig(label_values=label_values, loss_threshold=step / 2, loss_type=loss_type)
    assert config.loss_threshold == step / 2


@pytest.mark.parametrize("loss_type", [loss for loss in LOSS_TYPES if loss not in BUFFER_ZONE_LOSSES])
def test_threshold_is_not_limited_for_losses_without_a_buffer_zone(loss_type: str) -> None:
    assert STSRegressionConfig(loss_type=loss_type, loss_threshold=3.0).loss_threshold == 3.0


@pytest.mark.parametrize("loss_type", LOSS_TYPES)
def test_score_function_defaults_to_cosine_for_losses_without_a_head(loss_type: str) -> None:
    expected = "cosine" if loss_type in HEADLESS_LOSSES else "linear"
    config = STSRegressionConfig(loss_type=loss_type)
    assert (config.score_function, config.trains_head) == (expected, expected == "linear")


@pytest.mark.parametrize("loss_type", LOSS_TYPES)
def test_a_distribution_over_grades_has_several_outputs_and_all_other_losses_have_one(loss_type: str) -> None:
    config = STSRegressionConfig(loss_type=loss_type, label_values=[0, 1, 2], num_labels=7)
    outputs, labels = {"cross_entropy": (3, 3), "hl_gauss": (3, 3), "corn": (2, 3)}.get(loss_type, (1, 1))
    assert (config.num_outputs, config.num_labels) == (outputs, labels)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {0: "score"}),
        ({"loss_type": "cross_entropy", "label_values": [0, 0.5, 1]}, {0: "0", 1: "0.5", 2: "1"}),
        (
            {"loss_type": "cross_entropy", "label_values": [0, 1], "label_names": ["irrelevant", "relevant"]},
            {0: "irrelevant", 1: "relevant"},
        ),
    ],
)
def test_outputs_are_named(options: dict[str, Any], expected: dict[int, str]) -> None:
    config = STSRegressionConfig(**options)
    assert config.id2label == expected
    assert config.label2id == {name: index for index, name in expected.items()}


@pytest.mark.parametrize(
    ("encoder_type", "auto_classes"),
    [
        ("bi-encoder", {"AutoConfig", "AutoModel"}),
        ("cross-encoder", {"AutoConfig", "AutoModel", "AutoModelForSequenceClassification"}),
    ],
)
def test_auto_map_names_every_auto_class_of_the_encoder_type(encoder_type: str, auto_classes: set[str]) -> None:
    assert set(STSRegressionConfig(encoder_type=encoder_type).auto_map) == auto_classes


# The encoder's configuration


def test_encoder_config_object_is_copied(tiny_encoder_config: BertConfig) -> None:
    encoder_config = STSRegressionConfig(encoder_config=tiny_encoder_config).encoder_config
    assert encoder_config is not tiny_encoder_config
    assert encoder_config.to_dict() == tiny_encoder_config.to_dict()


def test_encoder_config_dict_is_built_into_its_class() -> None:
    options = {"model_type": "distilbert", "dim": 24}
    encoder_config = STSRegressionConfig(encoder_config=options).encoder_config
    assert isinstance(encoder_config, DistilBertConfig)
    assert encoder_config.hidden_size == 24
    assert options == {"model_type": "distilbert", "dim": 24}


def test_encoder_config_defaults_to_bert_base() -> None:
    encoder_config = STSRegressionConfig().encoder_config
    assert isinstance(encoder_config, BertConfig)
    assert encoder_config.to_dict() == BertConfig().to_dict()


# Refusals: each message holds the argument, the value and the remedy


@pytest.mark.parametrize(
    ("option", "allowed"),
    [
        ("encoder_type", ENCODER_TYPES),
        ("pooling", POOLINGS),
        ("score_function", SCORE_FUNCTIONS),
        ("loss_type", LOSS_TYPES),
        ("boundary", BOUNDARIES),
        ("encoding", ENCODINGS),
        ("normalize_embeddings", (True, False)),
    ],
)
@pytest.mark.parametrize("value", ["unheard-of", "", 3])
def test_unknown_name_is_refused_with_the_known_ones(option: str, allowed: Sequence[str], value: Any) -> None:
    with pytest.raises(ValueError, match=in_order(f"`{option}`", *map(repr, allowed), repr(value))):
        STSRegressionConfig(**{option: value})


@pytest.mark.parametrize(
    ("value", "fragments"),
    [
        (["u", "w"], [*map(repr, PAIR_FEATURES), "'w'"]),
        ([], ["one or more different names", "[]"]),
        (["u", "u"], ["one or more different names", "['u', 'u']"]),
        ("u", ["sequence of names", "'u'"]),
    ],
    ids=["unknown", "empty", "repeated", "string"],
)
def test_impossible_pair_features_are_refused(value: Sequence[str], fragments: list[str]) -> None:
    with pytest.raises(ValueError, match=in_order("`pair_features`", *fragments)):
        STSRegressionConfig(pair_features=value)


@pytest.mark.parametrize("value", [-1, NAN, INFINITY, -INFINITY, "2", True, [2.0], 10**400])
@pytest.mark.parametrize(
    ("option", "bound"),
    [("loss_slope", "greater than 0"), ("loss_temperature", "greater than 0"), ("loss_threshold", "at least 0")],
)
def test_impossible_number_is_refused(option: str, bound: str, value: Any) -> None:
    with pytest.raises(ValueError, match=in_order(f"`{option}`", f"finite number {bound}", f"{value!r:.200}")):
        STSRegressionConfig(**{option: value})


@pytest.mark.parametrize("option", ["loss_slope", "loss_temperature"])
@pytest.mark.parametrize("value", [0, 0.0])
def test_zero_is_refused_where_only_positive_numbers_make_sense(option: str, value: Any) -> None:
    with pytest.raises(ValueError, match=in_order(f"`{option}`", "greater than 0", repr(value))):
        STSRegressionConfig(**{option: value})


@pytest.mark.parametrize("loss_type", BUFFER_ZONE_LOSSES)
@pytest.mark.parametrize(
    ("label_values", "threshold", "half_step"),
    [((0, 1, 2), 0.51, "0.5"), ((0, 0.1, 0.2, 0.3), 0.051, "0.05"), ((0, 2), 5.0, "1"), ((0, 1, 1.2), 0.11, "0.1")],
)
def test_threshold_above_half_the_step_is_refused(
    label_values: Sequence[float], threshold: float, half_step: str, loss_type: str
) -> None:
    message = in_order("`loss_threshold`", f" {half_step} ", f"is {threshold:g}", "Lower it, or leave it out")
    with pytest.raises(ValueError, match=message):
        STSRegressionConfig(label_values=label_values, loss_threshold=threshold, loss_type=loss_type)


@pytest.mark.parametrize(
    "value", [[], [1], [0, 0], [2, 1, 0], [0, 3, 1], [0, 1, 0], [0, 1, 1]], ids=lambda value: str(value)
)
def test_nodes_that_are_not_increasing_are_refused(value: list[float]) -> None:
    message = in_order("`label_values`", "two or more", repr([float(node) for node in value]), "lowest grade first")
    with pytest.raises(ValueError, match=message):
        STSRegressionConfig(label_values=value)


@pytest.mark.parametrize("node", ["relevant", None, True, NAN, INFINITY])
def test_nodes_that_are_not_finite_numbers_are_refused(node: Any) -> None:
    with pytest.raises(
        ValueError, match=in_order("`label_values`", "finite numbers", repr(node), "use `label_names`")
    ):
        STSRegressionConfig(label_values=[0, node])


@pytest.mark.parametrize(
    "value", [[0, 1e308], [-1e308, 1e308], [0, 5e-324], [1e16, 1e16 + 2], [0, 1, 1 + 1e-7]], ids=str
)
def test_nodes_that_single_precision_does_not_tell_apart_are_refused(value: list[float]) -> None:
    with pytest.raises(ValueError, match=r"`label_values` .*(increasing|single precision)"):
        STSRegressionConfig(label_values=value, loss_type="mse")


def test_a_string_of_nodes_is_refused() -> None:
    with pytest.raises(ValueError, match=in_order("`label_values`", "sequence of numbers", "'012'")):
        STSRegressionConfig(label_values="012")  # type: ignore[arg-type] # that is the test


@pytest.mark.parametrize(
    "value",
    [["low"], ["low", "high", "highest"], ["low", "low"], ["low", 1], [], [["low"], "high"], [5], [{}]],
    ids=lambda value: str(value),
)
def test_names_that_do_not_fit_the_nodes_are_refused(value: list[str]) -> None:
    message = in_order("`label_names`", "one different name per node", repr(value), "2 `label_values`")
    with pytest.raises(ValueError, match=message):
        STSRegressionConfig(label_values=[0, 1], label_names=value)


def test_a_string_of_names_is_refused() -> None:
    with pytest.raises(ValueError, match=in_order("`label_names`", "one different name per node", "['no']")):
        STSRegressionConfig(label_values=[0, 1], label_names="no")


def test_mask_negative_is_refused_on_a_scale_with_negative_grades() -> None:
    message = in_order('`boundary="mask_negative"`', "`label_values` is -1", 'Use `boundary="relax"` or shift')
    with pytest.raises(ValueError, match=message):
        STSRegressionConfig(label_values=[-1, 0, 1], boundary="mask_negative")


@pytest.mark.parametrize("boundary", ["relax", "mask_negative"])
@pytest.mark.parametrize("loss_type", [loss for loss in LOSS_TYPES if loss not in REGRESSION_LOSSES])
def test_boundary_is_refused_for_losses_that_do_not_regress(loss_type: str, boundary: str) -> None:
    message = in_order(
        f'`boundary="{boundary}"`', *REGRESSION_LOSSES, f'`loss_type="{loss_type}"`', 'Use `boundary="none"`'
    )
    with pytest.raises(ValueError, match=message):
        STSRegressionConfig(loss_type=loss_type, boundary=boundary)


@pytest.mark.parametrize("loss_type", HEADLESS_LOSSES)
def test_linear_head_is_refused_for_losses_that_do_not_train_it(loss_type: str) -> None:
    message = in_order('`score_function="linear"`', f'`loss_type="{loss_type}"`', 'Use `score_function="cosine"`')
    with pytest.raises(ValueError, match=message):
        STSRegressionConfig(loss_type=loss_type, score_function="linear")


def test_cosine_is_refused_for_binary_cross_entropy() -> None:
    loss_type = "binary_cross_entropy"
    message = in_order('`score_function="cosine"`', f'`loss_type="{loss_type}"`', 'Use `score_function="linear"`')
    with pytest.raises(ValueError, match=message):
        STSRegressionConfig(loss_type=loss_type, score_function="cosine")


@pytest.mark.parametrize(
    "options", [{"score_function": "cosine"}, *({"loss_type": loss_type} for loss_type in HEADLESS_LOSSES)]
)
def test_cross_encoder_refuses_what_needs_sentence_embeddings(options: dict[str, Any]) -> None:
    message = in_order('`encoder_type="cross-encoder"`', "no sentence embeddings", 'Use `encoder_type="bi-encoder"`')
    with pytest.raises(ValueError, match=message):
        STSRegressionConfig(encoder_type="cross-encoder", **options)


@pytest.mark.parametrize(
    ("value", "model_type"),
    [
        ({"model_type": "unheard-of"}, "'unheard-of'"),
        ({"hidden_size": 32}, "None"),
        ({"model_type": ["bert"]}, "['bert']"),
    ],
)
def test_encoder_of_unknown_type_is_refused(value: dict[str, Any], model_type: str) -> None:
    message = in_order("`encoder_config`", "`model_type`", f"names {model_type}", "pass a configuration object")
    with pytest.raises(ValueError, match=message):
        STSRegressionConfig(encoder_config=value)


def test_a_value_of_the_encoder_of_the_wrong_type_is_refused() -> None:
    with pytest.raises(ValueError, match=r"`encoder_config` is not a configuration of a 'bert' \(.*'hidden_size'"):
        STSRegressionConfig(encoder_config={"model_type": "bert", "hidden_size": "wide"})


@pytest.mark.parametrize(
    ("option", "value"), [("label_names", 5), ("label_names", {"low": 0}), ("pair_features", {"u": 1})]
)
def test_what_is_no_list_of_names_is_refused(option: str, value: Any) -> None:
    with pytest.raises(ValueError, match=in_order(f"`{option}`", repr(value))):
        STSRegressionConfig(**{option: value})


# Round trips

# Between them they give every option a value that is not its default.
OPTIONS_OFF_DEFAULT: list[dict[str, Any]] = [
    {
        "pooling": "cls",
        "pair_features": ["sum", "product"],
        "score_function": "cosine",
        "loss_type": "translated_relu",
        "loss_slope": 3.0,
        "loss_threshold": 0.2,
        "loss_temperature": 0.1,
        "label_values": [-0.5, 0.0, 0.5],
        "label_names": ["irrelevant", "relevant", "highly relevant"],
        "boundary": "relax",
        "encoding": "padded",
        "sentence1_prefix": "query: ",
        "sentence2_prefix": "passage: ",
        "normalize_embeddings": True,
        "grading": {
            "score_map": {"knots": [0.0, 1.0], "values": [-0.5, 0.5]},
            "cut_points": [-0.1, 0.3],
            "intervals": None,
        },
        "head_is_trained": False,
    },
    {"encoder_type": "cross-encoder", "loss_type": "cross_entropy", "label_values": [1.0, 2.0, 3.0]},
]


def through_dict(config: STSRegressionConfig, folder: Path) -> STSRegressionConfig:
    return STSRegressionConfig.from_dict(config.to_dict())


def through_folder(config: STSRegressionConfig, folder: Path) -> STSRegressionConfig:
    config.save_pretrained(folder)
    return STSRegressionConfig.from_pretrained(folder)


@pytest.mark.parametrize("round_trip", [through_dict, through_folder])
@pytest.mark.parametrize("options", OPTIONS_OFF_DEFAULT, ids=["bi-encoder", "cross-encoder"])
def test_round_trip_keeps_every_option(
    tiny_encoder_config: BertConfig,
    tmp_path: Path,
    options: dict[str, Any],
    round_trip: Callable[[STSRegressionConfig, Path], STSRegressionConfig],
) -> None:
    config = STSRegressionConfig(encoder_config=tiny_encoder_config, **options)
    restored = round_trip(config, tmp_path)
    assert {name: getattr(restored, name) for name in options} == options
    assert isinstance(restored.encoder_config, BertConfig)
    for section in ("encoder_config", "id2label", "label2id", "auto_map", "custom_pipelines"):
        assert restored.to_dict()[section] == config.to_dict()[section]


def test_options_off_default_leave_no_option_out() -> None:
    defaults = STSRegressionConfig().to_dict()
    every_option = set(STSRegressionConfig.__init__.__annotations__) - {"encoder_config", "kwargs", "return"}
    assert {name for options in OPTIONS_OFF_DEFAULT for name in options} == every_option
    assert all(value != defaults[name] for options in OPTIONS_OFF_DEFAULT for name, value in options.items())


# Overrides, near misses, other types


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"loss_threshold": 10.0}, "`loss_threshold` must not exceed"),
        ({"loss_type": "foo"}, "`loss_type` must be one of"),
        ({"label_values": [0, 5, 1], "head_is_trained": False}, "`label_values` must be two or more"),
    ],
)
def test_overrides_of_a_saved_configuration_are_checked(
    tmp_path: Path, overrides: dict[str, Any], message: str
) -> None:
    STSRegressionConfig().save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=message):
        STSRegressionConfig.from_pretrained(tmp_path, **overrides)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("pooling", "cls"),
        ("pair_features", ["v", "u", "abs_diff"]),
        ("sentence2_prefix", "query: "),
        ("label_values", [0, 25, 50, 75, 100]),
        *(("loss_type", loss) for loss in ("binary_cross_entropy", "pearson", "corn", "hl_gauss")),
    ],
)
def test_an_override_that_contradicts_a_trained_head_is_refused(tmp_path: Path, name: str, value: object) -> None:
    STSRegressionConfig().save_pretrained(tmp_path)
    overrides: dict[str, Any] = {name: value}
    with pytest.raises(ValueError, match=rf"`{name}` is .*, but the checkpoint's head was trained with"):
        STSRegressionConfig.from_pretrained(tmp_path, **overrides)
    config = STSRegressionConfig.from_pretrained(tmp_path, head_is_trained=False, **overrides)
    assert (getattr(config, name), config.head_is_trained) == (value, False)
    same = STSRegressionConfig.from_pretrained(tmp_path, pair_features=("u", "v", "abs_diff"), pooling="mean")
    assert same.head_is_trained


def test_what_follows_from_an_override_follows(tmp_path: Path) -> None:
    STSRegressionConfig(head_is_trained=False).save_pretrained(tmp_path)
    config = STSRegressionConfig.from_pretrained(tmp_path, loss_type="cross_entropy", encoder_type="cross-encoder")
    assert config.num_labels == config.num_outputs == 6
    assert "AutoModelForSequenceClassification" in config.auto_map


@pytest.mark.parametrize(
    ("near_miss", "meant"), [("los_type", "loss_type"), ("label_value", "label_values"), ("poling", "pooling")]
)
def test_a_misspelt_option_is_refused(near_miss: str, meant: str) -> None:
    options: dict[str, Any] = {near_miss: "mse"}
    with pytest.raises(ValueError, match=in_order(f"`{near_miss}`", f"Did you mean `{meant}`")):
        STSRegressionConfig(**options)


def test_numpy_nodes_are_numbers() -> None:
    assert STSRegressionConfig(label_values=np.arange(3)).label_values == [0.0, 1.0, 2.0]


@pytest.mark.parametrize(
    ("option", "value"), [("encoder_config", "bert"), ("label_values", 5), ("pair_features", None)]
)
def test_a_value_of_the_wrong_type_is_refused(option: str, value: Any) -> None:
    with pytest.raises(ValueError, match=in_order(f"`{option}`", repr(value))):
        STSRegressionConfig(**{option: value})
