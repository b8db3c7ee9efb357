"""Checkpoints: the files in the folder, and that a fresh process without this repository loads and saves them alike.

One process loads every checkpoint with `trust_remote_code=True`, scores given pairs and saves again; a second process
does the same with the files of the first one.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import CONFIG_MAPPING, AutoModel
from transformers.dynamic_module_utils import get_imports, get_relative_imports

from sts_regression.configuration_sts_regression import STSRegressionConfig
from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.packing_sts_regression import PACKED_ATTENTION

REPOSITORY = Path(__file__).parents[2]
CONFIGURATION_FILE = REPOSITORY / "configuration_sts_regression.py"
MODELING_FILE = REPOSITORY / "modeling_sts_regression.py"
ENCODER_FILE = REPOSITORY / "encoder_sts_regression.py"
HEAD_FILE = REPOSITORY / "head_sts_regression.py"
LOSSES_FILE = REPOSITORY / "losses_sts_regression.py"
PACKING_FILE = REPOSITORY / "packing_sts_regression.py"
PIPELINE_FILE = REPOSITORY / "pipeline_sts_regression.py"

VOCABULARY = 100
BERT_LIKE = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
}
ENCODERS: dict[str, dict[str, Any]] = {
    "bert": BERT_LIKE,
    "roberta": BERT_LIKE,
    "xlm-roberta": BERT_LIKE,
    "distilbert": {
        "vocab_size": VOCABULARY,
        "dim": 32,
        "n_layers": 2,
        "n_heads": 4,
        "hidden_dim": 64,
        "max_position_embeddings": 64,
    },
    "mpnet": BERT_LIKE,
    "electra": {**BERT_LIKE, "embedding_size": 16},
    # As the published DeBERTa-v3 checkpoints are set up.
    "deberta-v2": {
        **BERT_LIKE,
        "relative_attention": True,
        "position_buckets": 16,
        "pos_att_type": ["p2c", "c2p"],
        "share_att_key": True,
        "norm_rel_ebd": "layer_norm",
        "position_biased_input": False,
        "type_vocab_size": 0,
    },
    "modernbert": {
        **BERT_LIKE,
        "local_attention": 8,
        "pad_token_id": 0,
        "bos_token_id": 1,
        "cls_token_id": 1,
        "eos_token_id": 2,
        "sep_token_id": 2,
    },
    "nomic_bert": BERT_LIKE,
}
AUTO_CLASSES = {
    "bi-encoder": ["AutoModel"],
    "cross-encoder": ["AutoModel", "AutoModelForSequenceClassification"],
}
CASES = [(encoder, encoder_type) for encoder in ENCODERS for encoder_type in AUTO_CLASSES]
RELOADS = [(*case, auto_class) for case in CASES for auto_class in AUTO_CLASSES[case[1]]]

# Loads every checkpoint below the first folder with each of its Auto classes and saves it below the second folder.
# Prints, by path of the checkpoint and Auto class: its scores, its class's module, and weights that were not matched.
RELOAD = """
import json
import sys
from pathlib import Path

import torch
import transformers
from transformers import AutoConfig

source, target, input_ids = Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3])
report = {}
for config_file in sorted(source.rglob("config.json")):
    folder = config_file.parent
    config = AutoConfig.from_pretrained(folder, trust_remote_code=True)
    for auto_class in sorted(set(config.auto_map) - {"AutoConfig"}):
        model, loading = getattr(transformers, auto_class).from_pretrained(
            folder, trust_remote_code=True, output_loading_info=True
        )
        with torch.no_grad():
            output = model(torch.tensor(input_ids[config.encoder_type]))
        name = (folder.relative_to(source) / auto_class).as_posix()
        model.save_pretrained(target / name)
        report[name] = {
            "scores": (output.scores if auto_class == "AutoModel" else output.logits[:, 0]).tolist(),
            "module": type(model).__module__,
            "unmatched": sorted(loading["missing_keys"] | loading["unexpected_keys"]),
        }
print(json.dumps(report))
"""

LOAD_WITHOUT_TRUST = """
import os
import sys
from pathlib import Path
import transformers

try:
    getattr(transformers, sys.argv[2]).from_pretrained(sys.argv[1])
except ValueError as error:
    print(error)
print("copied code:", sorted(path.name for path in Path(os.environ["HF_MODULES_CACHE"]).rglob("*sts_regression*.py")))
"""

RunInSubprocess = Callable[..., str]


def random_input_ids() -> dict[str, list[Any]]:
    """Token ids for each encoder type, without special tokens: pairs for bi-encoders, single sequences otherwise."""
    ids = torch.randint(5, VOCABULARY, (4, 2, 12), generator=torch.Generator().manual_seed(0))
    return {"bi-encoder": ids.tolist(), "cross-encoder": ids.flatten(1).tolist()}


@dataclass
class Checkpoints:
    """Folders of the checkpoints, and the facts on each model, by path below its folder."""

    first: Path  # saved here, as <encoder>/<encoder type>
    second: Path  # saved by the first process, as <encoder>/<encoder type>/<Auto class>
    original_scores: dict[str, list[float]]
    first_reload: dict[str, dict[str, Any]]
    second_reload: dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory, run_in_subprocess: RunInSubprocess) -> Checkpoints:
    root = tmp_path_factory.mktemp("checkpoints")
    first, second, third = root / "first", root / "second", root / "third"
    input_ids = random_input_ids()
    original_scores = {}
    torch.manual_seed(0)
    for encoder, encoder_type in CASES:
        encoder_config = CONFIG_MAPPING[encoder](**ENCODERS[encoder])
        model = STSRegressionModel(STSRegressionConfig(encoder_config, encoder_type=encoder_type)).eval()
        with torch.no_grad():
            original_scores[f"{encoder}/{encoder_type}"] = model(torch.tensor(input_ids[encoder_type])).scores.tolist()
        model.save_pretrained(first / encoder / encoder_type)
    first_reload, second_reload = (
        json.loads(run_in_subprocess(RELOAD, source, target, json.dumps(input_ids)).splitlines()[-1])
        for source, target in ((first, second), (second, third))
    )
    return Checkpoints(first, second, original_scores, first_reload, second_reload)


# A fresh process


@pytest.mark.parametrize(("encoder", "encoder_type", "auto_class"), RELOADS)
def test_fresh_process_scores_like_the_saved_model(
    checkpoints: Checkpoints, encoder: str, encoder_type: str, auto_class: str
) -> None:
    reloaded = checkpoints.first_reload[f"{encoder}/{encoder_type}/{auto_class}"]
    assert reloaded["scores"] == pytest.approx(checkpoints.original_scores[f"{encoder}/{encoder_type}"], abs=1e-6)
    assert reloaded["unmatched"] == []
    assert reloaded["module"].startswith("transformers_modules.")


@pytest.mark.parametrize(("encoder", "encoder_type", "auto_class"), RELOADS)
def test_what_a_fresh_process_saved_loads_again_with_every_auto_class(
    checkpoints: Checkpoints, encoder: str, encoder_type: str, auto_class: str
) -> None:
    for next_auto_class in AUTO_CLASSES[encoder_type]:
        reloaded = checkpoints.second_reload[f"{encoder}/{encoder_type}/{auto_class}/{next_auto_class}"]
        assert reloaded["scores"] == pytest.approx(checkpoints.original_scores[f"{encoder}/{encoder_type}"], abs=1e-6)
        assert reloaded["unmatched"] == []


@pytest.mark.parametrize("encoder", ENCODERS)
def test_scores_differ_between_pairs(checkpoints: Checkpoints, encoder: str) -> None:
    """Equal scores everywhere would make the comparisons above empty."""
    scores = checkpoints.original_scores[f"{encoder}/bi-encoder"]
    assert max(scores) - min(scores) > 1e-3


@pytest.mark.parametrize("auto_class", ["AutoConfig", "AutoModel", "AutoModelForSequenceClassification"])
def test_without_trust_remote_code_nothing_is_run(
    checkpoints: Checkpoints, run_in_subprocess: RunInSubprocess, auto_class: str
) -> None:
    folder = checkpoints.first / "bert" / "cross-encoder"
    printed = run_in_subprocess(LOAD_WITHOUT_TRUST, folder, auto_class)
    assert "`trust_remote_code=True`" in printed
    assert "copied code: []" in printed


# Files in the folder


@pytest.mark.parametrize(("encoder", "encoder_type"), CASES)
def test_folder_holds_weights_configuration_and_code_only(
    checkpoints: Checkpoints, encoder: str, encoder_type: str
) -> None:
    assert {path.name for path in (checkpoints.first / encoder / encoder_type).iterdir()} == {
        "config.json",
        "configuration_sts_regression.py",
        "encoder_sts_regression.py",
        "head_sts_regression.py",
        "model.safetensors",
        "losses_sts_regression.py",
        "modeling_sts_regression.py",
        "packing_sts_regression.py",
        "pipeline_sts_regression.py",
    }


@pytest.mark.parametrize(
    "source",
    [CONFIGURATION_FILE, ENCODER_FILE, HEAD_FILE, LOSSES_FILE, MODELING_FILE, PACKING_FILE, PIPELINE_FILE],
    ids=lambda path: path.stem,
)
@pytest.mark.parametrize(("encoder_type", "auto_class"), [(case[1], case[2]) for case in RELOADS if case[0] == "bert"])
def test_code_travels_unchanged(checkpoints: Checkpoints, encoder_type: str, auto_class: str, source: Path) -> None:
    for folder in (checkpoints.first / "bert" / encoder_type, checkpoints.second / "bert" / encoder_type / auto_class):
        assert (folder / source.name).read_bytes() == source.read_bytes()


@pytest.mark.parametrize(("encoder", "encoder_type", "auto_class"), RELOADS)
def test_second_save_holds_the_same_files_and_auto_classes(
    checkpoints: Checkpoints, encoder: str, encoder_type: str, auto_class: str
) -> None:
    first = checkpoints.first / encoder / encoder_type
    second = checkpoints.second / encoder / encoder_type / auto_class
    assert {path.name for path in second.iterdir()} == {path.name for path in first.iterdir()}
    auto_maps = [json.loads((folder / "config.json").read_text())["auto_map"] for folder in (first, second)]
    assert set(auto_maps[0]) == {"AutoConfig", *AUTO_CLASSES[encoder_type]}
    assert auto_maps[1] == auto_maps[0]


@pytest.mark.parametrize("is_relative", [False, True], ids=["absolute", "relative"])
def test_configuration_names_no_local_path(
    tiny_encoder_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_relative: bool
) -> None:
    monkeypatch.chdir(tiny_encoder_path.parent)
    path = tiny_encoder_path.name if is_relative else str(tiny_encoder_path)
    encoder = AutoModel.from_pretrained(path, add_pooling_layer=False)
    STSRegressionModel(STSRegressionConfig(), encoder=encoder).save_pretrained(tmp_path)
    assert tiny_encoder_path.name not in (tmp_path / "config.json").read_text()


# Loading in this process


def test_trained_cosine_head_is_not_reset_by_loading(
    make_model: Callable[..., STSRegressionModel], tmp_path: Path
) -> None:
    model = make_model(score_function="cosine")
    torch.nn.init.constant_(model.head.weight, 3.5)
    torch.nn.init.constant_(model.head.bias, 0.75)
    model.save_pretrained(tmp_path)
    head = STSRegressionModel.from_pretrained(tmp_path).head
    assert (head.weight.item(), head.bias.item()) == (3.5, 0.75)


@pytest.mark.parametrize(
    ("part", "changes", "key"),
    [
        ("encoder_config", {"num_hidden_layers": 1}, "encoder.encoder.layer.1.attention.output.LayerNorm.bias"),
        ("encoder_config", {"num_hidden_layers": 3}, "encoder.encoder.layer.2.attention.output.LayerNorm.bias"),
        ("encoder_config", {"intermediate_size": 48}, "encoder.encoder.layer.0.intermediate.dense.bias"),
        (None, {"pair_features": ["u", "v"]}, "head.weight"),
    ],
)
def test_weights_that_do_not_fit_the_configuration_are_refused(
    make_model: Callable[..., STSRegressionModel], tmp_path: Path, part: str | None, changes: dict[str, Any], key: str
) -> None:
    make_model().save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (config if part is None else config[part]).update(changes)
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match=f"do not fit its config.json: .*, for example '{key}'"):
        AutoModel.from_pretrained(tmp_path)
    if part is None:  # the option asks for a fresh head
        _, report = AutoModel.from_pretrained(tmp_path, ignore_mismatched_sizes=True, output_loading_info=True)
        assert [mismatch[0] for mismatch in report["mismatched_keys"]] == [key]


@pytest.mark.parametrize(
    ("requested", "encoding", "used"),
    [("eager", "auto", "eager"), ("sdpa", "auto", PACKED_ATTENTION), ("sdpa", "padded", "sdpa")],
)
def test_attention_implementation_reaches_the_encoder(
    make_model: Callable[..., STSRegressionModel], tmp_path: Path, requested: str, encoding: str, used: str
) -> None:
    make_model(encoding=encoding).save_pretrained(tmp_path)
    model = STSRegressionModel.from_pretrained(tmp_path, attn_implementation=requested)
    assert model.encoder.config._attn_implementation == used


@pytest.mark.parametrize("name", ["dtype", "torch_dtype"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_requested_precision_reaches_every_weight_of_the_encoder(
    make_model: Callable[..., STSRegressionModel], tmp_path: Path, name: str, dtype: torch.dtype
) -> None:
    make_model().save_pretrained(tmp_path)
    options: dict[str, Any] = {name: dtype}
    model = STSRegressionModel.from_pretrained(tmp_path, **options)
    assert {parameter.dtype for parameter in model.encoder.parameters()} == {dtype}
    assert {parameter.dtype for parameter in model.head.parameters()} == {torch.float32}  # else scores lose digits


def test_a_larger_vocabulary_is_saved_and_loaded(
    make_model: Callable[..., STSRegressionModel], tmp_path: Path
) -> None:
    model = make_model()
    vocabulary = model.resize_token_embeddings(VOCABULARY + 1000).weight
    model.save_pretrained(tmp_path)
    assert AutoModel.from_pretrained(tmp_path).get_input_embeddings().weight.equal(vocabulary)


# Imports of the shipped files


@pytest.mark.parametrize(
    ("source", "relative", "packages"),
    [
        (CONFIGURATION_FILE, set(), {"transformers"}),
        (
            MODELING_FILE,
            {
                *("configuration_sts_regression", "encoder_sts_regression", "head_sts_regression"),
                *("packing_sts_regression", "pipeline_sts_regression"),
            },
            {"torch", "transformers"},
        ),
        (
            ENCODER_FILE,
            {"configuration_sts_regression", "packing_sts_regression"},
            {"torch", "transformers"},
        ),
        (HEAD_FILE, {"configuration_sts_regression", "losses_sts_regression"}, {"torch"}),
        (LOSSES_FILE, set(), {"torch"}),
        (PACKING_FILE, {"configuration_sts_regression"}, {"torch", "transformers"}),
        (PIPELINE_FILE, {"losses_sts_regression"}, {"torch", "transformers"}),
    ],
    ids=["configuration", "modeling", "encoder", "head", "losses", "packing", "pipeline"],
)
def test_shipped_code_imports_nothing_that_a_checkpoint_lacks(
    source: Path, relative: set[str], packages: set[str]
) -> None:
    assert set(get_relative_imports(source)) == relative
    assert set(get_imports(source)) - sys.stdlib_module_names == packages
