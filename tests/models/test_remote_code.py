"""Encoders whose code lies in another repository on the Hub: wrapped, saved, and loaded again by fresh processes.

The Hub is a folder laid out like transformers' cache. It holds an encoder of the manner of Jina's: its `model_type` is
"bert", but its class is in the repository `me/code`, which later gets a commit that computes something else.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from transformers import NomicBertConfig

from sts_regression.configuration_sts_regression import STSRegressionConfig
from sts_regression.models import loading
from sts_regression.models.remote_code import code_failures_explained, find_code

ROOT = Path(loading.__file__).resolve().parents[2]
TOKENIZER = Path(__file__).parents[1] / "fixtures" / "tokenizer"
FIRST, LATER, WEIGHTS, OTHER_WEIGHTS = (letter * 40 for letter in "abcd")  # commits
INPUT_IDS = [[[2, 7, 9, 3], [2, 11, 3, 0]], [[2, 8, 8, 3], [2, 5, 20, 3]]]

CONFIGURATION = """
from transformers import PretrainedConfig


class OwnConfig(PretrainedConfig):
    model_type = "bert"

    def __init__(self, vocab_size=600, hidden_size=32, max_position_embeddings=128, **kwargs):
        super().__init__(**kwargs)
        self.vocab_size = vocab_size
        self.hidden_size = hidden_size
        self.max_position_embeddings = max_position_embeddings
"""
MODEL = """
import torch
from torch import nn
from transformers import PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput

from .configuration_own import OwnConfig


class OwnModel(PreTrainedModel):
    config_class = OwnConfig
    _supports_sdpa = True

    def __init__(self, config, add_pooling_layer=True):
        super().__init__(config)
        self.words = nn.Embedding(config.vocab_size, config.hidden_size)
        self.mix = nn.Linear(config.hidden_size, config.hidden_size)
        self.pooler = nn.Linear(config.hidden_size, config.hidden_size) if add_pooling_layer else None
        self.post_init()

    def get_input_embeddings(self):
        return self.words

    def forward(self, input_ids, attention_mask, token_type_ids=None, position_ids=None, **kwargs):
        words = self.words(input_ids) * attention_mask[..., None]
        return BaseModelOutput(last_hidden_state=FACTOR * torch.tanh(self.mix(words.cumsum(dim=1))))
"""
REMOVED = "from transformers.pytorch_utils import find_pruneable_heads_and_indices\n"
FILES = {
    ("code", FIRST): {"configuration_own.py": CONFIGURATION, "modeling_own.py": MODEL.replace("FACTOR", "20")},
    ("code", LATER): {"configuration_own.py": CONFIGURATION, "modeling_own.py": MODEL.replace("FACTOR", "-3")},
    ("old-code", FIRST): {"configuration_own.py": CONFIGURATION, "modeling_own.py": REMOVED + MODEL},
    ("failing-code", FIRST): {
        "configuration_own.py": CONFIGURATION,
        "modeling_own.py": MODEL.replace("FACTOR", "self.get_head_mask(None, 2)"),
    },
}
MODELS = {("model", WEIGHTS): "code", ("model", OTHER_WEIGHTS): "code", ("old", WEIGHTS): "old-code"}
MODELS |= {("failing", WEIGHTS): "failing-code"}

# Writes the weights of the models, wraps the one whose revision is given, and saves it.
WRAP = """
import json
import sys
from pathlib import Path

import torch
from transformers import AutoTokenizer
from transformers.dynamic_module_utils import get_class_from_dynamic_module

from sts_regression.models.loading import find_model, load_model
from sts_regression.packing_sts_regression import is_prepared

folders, target, revision, input_ids = (json.loads(argument) for argument in sys.argv[1:])
tokenizer = AutoTokenizer.from_pretrained(folders.pop("tokenizer"))
model_class = get_class_from_dynamic_module("me/code--modeling_own.OwnModel", "me/code")
for seed, (folder, code) in enumerate(folders.items()):
    torch.manual_seed(seed)
    model_class(model_class.config_class()).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    config = json.loads((Path(folder) / "config.json").read_text())
    names = {"AutoConfig": "configuration_own.OwnConfig", "AutoModel": "modeling_own.OwnModel"}
    config["auto_map"] = {name: f"me/{code}--{place}" for name, place in names.items()}
    (Path(folder) / "config.json").write_text(json.dumps(config))

model, tokenizer = load_model(find_model("me/model", revision, True), {})
model.config.head_is_trained = True
model.save_pretrained(target)
tokenizer.save_pretrained(target)
report = {"scores": model.eval()(torch.tensor(input_ids)).scores.tolist(), "errors": {}}
report |= {"is_packed": is_prepared(model.encoder), "weights": sorted(model.encoder.state_dict())}
for name in ("me/model", "me/old", "me/failing"):
    try:
        load_model(find_model(name, trust_remote_code=name != "me/model"), {})
    except ValueError as error:
        report["errors"][name] = str(error)
print(json.dumps(report))
"""
# Loads the checkpoint without this repository.
RELOAD = """
import json
import torch
from transformers import AutoModel, AutoTokenizer

folder, input_ids = sys.argv[1], json.loads(sys.argv[2])
model = AutoModel.from_pretrained(folder, trust_remote_code=True)
scores = model(torch.tensor(input_ids)).scores.tolist()
model.save_pretrained(sys.argv[3])
print(json.dumps({"scores": scores, "module": type(model.encoder).__module__}))
"""
# Loads it with this repository, once as an average of itself, and without trust.
RELOAD_HERE = """
import json
import sys
import torch
from sts_regression.models.loading import find_model, load_model
from sts_regression.modeling_sts_regression import STSRegressionModel

folder, input_ids = sys.argv[1], torch.tensor(json.loads(sys.argv[2]))
model, _ = load_model(find_model(folder, trust_remote_code=True), {"loss_type": "mse"})
again = STSRegressionModel.from_pretrained(folder, config=model.config)
report = {"scores": [m.eval()(input_ids).scores.tolist() for m in (model, again)], "errors": []}
report["has_head"] = model.config.head_is_trained
for load in (find_model, STSRegressionModel.from_pretrained):
    try:
        load(folder)
    except ValueError as error:
        report["errors"].append(str(error))
print(json.dumps(report))
"""


def snapshot(hub: Path, name: str, commit: str) -> Path:
    """The folder of a commit, which becomes that of the branch `main`."""
    repository = hub / f"models--me--{name}"
    for folder in (repository / "refs", repository / "snapshots" / commit):
        folder.mkdir(parents=True, exist_ok=True)
    (repository / "refs" / "main").write_text(commit)
    return repository / "snapshots" / commit


def run_here(code: str, *arguments: object, env: Mapping[str, str]) -> dict[str, Any]:
    """The output of a fresh process that imports this repository."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    finished = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    return json.loads(finished.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory, run_in_subprocess: Callable[..., str]) -> dict[str, Any]:
    """The output of the processes, and the folder of the checkpoint."""
    home, folder = tmp_path_factory.mktemp("hub"), tmp_path_factory.mktemp("checkpoint")
    env = {"HF_HOME": str(home), "HF_HUB_OFFLINE": "1", "HF_MODULES_CACHE": str(home / "modules")}
    env |= {"HF_HUB_CACHE": str(home / "hub"), "TRANSFORMERS_VERBOSITY": "error"}
    for (name, commit), files in FILES.items():
        if commit == FIRST:
            for file, text in files.items():
                (snapshot(home / "hub", name, commit) / file).write_text(text)
    folders = {str(snapshot(home / "hub", *key)): code for key, code in MODELS.items()}
    arguments = ({**folders, "tokenizer": str(TOKENIZER)}, str(folder), WEIGHTS, INPUT_IDS)
    wrapped = run_here(WRAP, *map(json.dumps, arguments), env=env)
    for file, text in FILES["code", LATER].items():
        (snapshot(home / "hub", "code", LATER) / file).write_text(text)
    reloaded = run_in_subprocess(
        RELOAD, folder, json.dumps(INPUT_IDS), folder / "again", env={**env, "HF_MODULES_CACHE": str(home / "fresh")}
    )
    here = run_here(RELOAD_HERE, folder, json.dumps(INPUT_IDS), env=env)
    return {"wrapped": wrapped, "reloaded": json.loads(reloaded), "here": here, "folder": folder}


def test_the_checkpoint_names_code_and_commit(reports: dict[str, Any]) -> None:
    for folder in (reports["folder"], reports["folder"] / "again"):
        config = json.loads((folder / "config.json").read_text())["encoder_config"]
        assert config["code_revision"] == FIRST
        assert config["auto_map"] == {
            "AutoConfig": "me/code--configuration_own.OwnConfig",
            "AutoModel": "me/code--modeling_own.OwnModel",
        }


def test_a_fresh_process_scores_alike_with_the_pinned_code(reports: dict[str, Any]) -> None:
    assert reports["reloaded"]["scores"] == pytest.approx(reports["wrapped"]["scores"], abs=1e-6)
    assert reports["reloaded"]["module"] == f"transformers_modules.me.code.{FIRST}.modeling_own"
    first, second = reports["wrapped"]["scores"]
    assert abs(first - second) > 1e-2  # else the comparison would be empty


def test_this_package_scores_alike_where_the_code_is_trusted(reports: dict[str, Any]) -> None:
    assert reports["here"]["has_head"]
    for scores in reports["here"]["scores"]:
        assert scores == pytest.approx(reports["wrapped"]["scores"], abs=1e-6)


def test_own_code_is_neither_packed_nor_given_an_unused_pooler(reports: dict[str, Any]) -> None:
    assert not reports["wrapped"]["is_packed"]
    assert reports["wrapped"]["weights"] == ["mix.bias", "mix.weight", "words.weight"]


def test_without_trust_nothing_runs(reports: dict[str, Any]) -> None:
    message = (
        "`model_name_or_path`: 'me/model' runs code of 'me/code'. Read this code, then give `--trust_remote_code`."
    )
    assert reports["wrapped"]["errors"]["me/model"] == message
    by_command, by_class = reports["here"]["errors"]
    assert re.search(r"runs code of 'me/code'\. Read this code, then give `--trust_remote_code`\.", by_command)
    assert "the encoder runs code of me/code, which must be trusted" in by_class


@pytest.mark.parametrize(
    ("name", "reason"), [("me/old", "find_pruneable_heads_and_indices"), ("me/failing", "get_head_mask")]
)
def test_code_that_does_not_run_is_explained(reports: dict[str, Any], name: str, reason: str) -> None:
    message = reports["wrapped"]["errors"][name]
    expected = (
        rf"`model_name_or_path`: '{name}': .*the code from the Hub does not run with transformers \S+ \(.*{reason}"
    )
    assert re.match(expected, message)
    assert "\n" not in message


@pytest.mark.parametrize(
    ("model_type", "architecture", "trusted", "expected"),
    [
        ("nomic_bert", "NomicBertModel", False, None),  # code that transformers has in the meantime
        ("nomic_bert", "NomicBertModel", True, "me/code"),
        ("bert", "JinaBertModel", False, "me/code"),
        ("unheard_of", "NomicBertModel", False, "me/code"),
    ],
)
def test_where_the_code_of_a_model_lies(
    model_type: str, architecture: str, trusted: bool, expected: str | None
) -> None:
    options = {"model_type": model_type, "architectures": [architecture]}
    assert find_code("me/model", options, trusted) is None
    assert find_code("me/model", {**options, "auto_map": {"AutoModel": "me/code--c.Model"}}, trusted) == expected
    beside = find_code("me/model", {**options, "auto_map": {"AutoModel": "c.Model"}}, trusted)
    assert beside == (expected and "me/model")
    checkpoint = {"model_type": "sts_regression", "auto_map": {"AutoModel": "c.Model"}, "encoder_config": options}
    assert find_code("me/checkpoint", checkpoint, trusted) is None


def test_a_checkpoint_of_an_encoder_that_transformers_has_needs_no_code() -> None:
    config = NomicBertConfig()
    config.auto_map = {"AutoModel": "me/code--modeling.Class"}
    again = STSRegressionConfig.from_dict(STSRegressionConfig(encoder_config=config).to_dict())
    assert type(again.encoder_config) is NomicBertConfig


@pytest.mark.parametrize(
    ("auto_map", "message"),
    [
        ({"AutoConfig": "c.Config", "AutoModel": "c.Model"}, r"in the local folder .*Publish the encoder on the Hub"),
        ({"AutoModel": "me/code--c.Model"}, r"must name the code of its configuration and of its model"),
        ({"AutoConfig": "me/a--c.Config", "AutoModel": "me/b--c.Model"}, r"\(`auto_map`\), in one repository"),
    ],
)
def test_code_that_could_not_be_found_again_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, auto_map: dict[str, str], message: str
) -> None:
    config = NomicBertConfig()
    config.auto_map, config.name_or_path = auto_map, str(tmp_path)
    monkeypatch.setattr(NomicBertConfig, "__module__", "transformers_modules.folder.digest.c")
    with pytest.raises(ValueError, match=message):
        STSRegressionConfig(encoder_config=config)


def test_failures_of_known_encoders_are_not_blamed_on_code() -> None:
    message = r"^`model_name_or_path`: 'me/model': the model cannot be built \(KeyError: 'oops'\)\. Fetch"
    with pytest.raises(ValueError, match=message), code_failures_explained("me/model", runs_code=False):
        raise KeyError("oops")
