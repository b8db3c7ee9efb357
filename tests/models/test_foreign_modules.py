"""Models of sentence-transformers that ask for other code than the library's own, and damaged ones."""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from sts_regression.models.encoding import sentence_transformers_scorer
from sts_regression.models.foreign_modules import check_foreign_modules
from sts_regression.models.loading import find_model, load_model
from sts_regression.models.sentence_transformers_files import read_modules

LIBRARY = "sentence_transformers.models"
REMEDY = (
    r"Read the code that this runs, and give `--trust_remote_code`, or take the encoder alone with `--pooling mean`"
)
MODULE = "module_of_somebody"

WriteModules = Callable[..., Path]


@pytest.fixture
def write_modules(tmp_path: Path) -> WriteModules:
    """`write_modules(*types, **files)`: a folder whose `modules.json` names these, in folders 0, 1, …"""

    def write(*types: str, **files: Any) -> Path:
        modules = [{"idx": i, "name": str(i), "path": str(i), "type": name} for i, name in enumerate(types)]
        for name, content in {"modules": modules, **files}.items():
            path = tmp_path / "model" / f"{name}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return tmp_path / "model"

    return write


@pytest.fixture
def marker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module on Python's path makes this folder when it is imported."""
    (tmp_path / f"{MODULE}.py").write_text(f"import os\nos.mkdir({str(tmp_path / 'ran')!r})\nclass Pooling: ...\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    return tmp_path / "ran"


@pytest.mark.parametrize(
    "name",
    [
        f"{MODULE}.Pooling",
        f"{LIBRARY}.{MODULE}",
        "sentence_transformers.base.model.torch",  # a module of another library, reached through this one
        "sentence_transformers.base.modules.transformer.torch",
        f"{LIBRARY}.Pooling\n",
        f"x{LIBRARY}.Pooling",
        "os.Pooling",
        "",
    ],
)
def test_an_unknown_type_is_refused_before_anything_is_imported(
    write_modules: WriteModules, marker: Path, name: str
) -> None:
    folder = write_modules(f"{LIBRARY}.Transformer", name)
    expected = (
        rf"^`model_name_or_path`: .*: modules\.json asks for the module type {re.escape(repr(name))}, .*{REMEDY}"
    )
    with pytest.raises(ValueError, match=expected):
        sentence_transformers_scorer(str(folder), torch.device("cpu"))
    modules = read_modules(str(folder))
    assert modules is not None
    assert (modules.pooling, modules.unsupported[-1]) == (None, f"a module {name}")
    assert not marker.exists()


def test_a_foreign_pooling_is_not_taken_for_ours(tiny_encoder_path: Path, marker: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    for file in tiny_encoder_path.iterdir():
        (folder / file.name).symlink_to(file)
    types = {"": f"{LIBRARY}.Transformer", "1_Pooling": f"{MODULE}.Pooling"}
    entries = [{"idx": i, "name": str(i), "path": path, "type": types[path]} for i, path in enumerate(types)]
    (folder / "modules.json").write_text(json.dumps(entries))
    with pytest.raises(ValueError, match=rf"a sentence-transformers model with a module {MODULE}\.Pooling"):
        load_model(find_model(str(folder)), {})
    assert load_model(find_model(str(folder)), {"pooling": "mean"})[0].config.pooling == "mean"
    assert not marker.exists()


@pytest.mark.parametrize(
    "name",
    [
        *(f"{LIBRARY}.{kind}" for kind in ("Transformer", "Pooling", "Dense", "WordWeights", "CLIPModel")),
        "sentence_transformers.base.modules.transformer.Transformer",
        "sentence_transformers.base.modules.dense.Dense",
        "sentence_transformers.sentence_transformer.modules.pooling.Pooling",
        f"{LIBRARY}.Router.Router",
    ],
)
def test_the_modules_of_the_library_are_known_under_their_names_of_any_version(
    write_modules: WriteModules, name: str
) -> None:
    check_foreign_modules(str(write_modules(name)))


@pytest.mark.parametrize("file", ["1/router_config", "1/config"])
@pytest.mark.parametrize("inner", [f"{MODULE}.Pooling", f"{LIBRARY}.Asym"])
def test_a_router_names_no_other_types_either(write_modules: WriteModules, file: str, inner: str) -> None:
    files: dict[str, Any] = {file: {"types": {"query": inner}}, "1/query/router_config": {"types": {"a": "os.x"}}}
    name, where = (inner, file) if inner.startswith(MODULE) else ("os.x", "1/query/router_config")
    folder = write_modules(f"{LIBRARY}.Transformer", f"{LIBRARY}.Router", **files)
    with pytest.raises(ValueError, match=rf"{where}\.json asks for the module type '{re.escape(name)}'"):
        check_foreign_modules(str(folder))


@pytest.mark.parametrize("route", [".", "..", "../x", "a/./b", "/etc"])
def test_a_route_leads_to_no_other_folder(write_modules: WriteModules, route: str) -> None:
    folder = write_modules(f"{LIBRARY}.Router", **{"0/router_config": {"types": {route: f"{LIBRARY}.Router"}}})
    if route == "/etc":  # beneath the module's folder, as the library has it
        check_foreign_modules(str(folder))
        return
    with pytest.raises(ValueError, match=r"names the file '0/.*', which is not its own"):
        check_foreign_modules(str(folder))


def test_the_tokenizer_of_word_embeddings_is_one_of_the_library(write_modules: WriteModules) -> None:
    known = f"{LIBRARY}.tokenizer.WhitespaceTokenizer.WhitespaceTokenizer"
    settings = {"0/wordembedding_config": {"tokenizer_class": known}}
    check_foreign_modules(str(write_modules(f"{LIBRARY}.WordEmbeddings", **settings)))
    settings["0/wordembedding_config"]["tokenizer_class"] = f"{MODULE}.Pooling"
    with pytest.raises(ValueError, match=rf"wordembedding_config\.json asks for the tokenizer '{MODULE}\.Pooling'"):
        check_foreign_modules(str(write_modules(f"{LIBRARY}.WordEmbeddings", **settings)))


@pytest.mark.parametrize("group", ["model_args", "model_kwargs"])
def test_no_setting_of_a_file_has_a_pickle_read(
    tiny_encoder_path: Path, tmp_path: Path, group: str, harm_in: Callable[[Path], object]
) -> None:
    pytest.importorskip("sentence_transformers", reason="the sentence-transformers extra is not installed")
    folder = tmp_path / "model"
    folder.mkdir()
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_bytes((tiny_encoder_path / name).read_bytes())
    config = json.loads((tiny_encoder_path / "config.json").read_text())
    config.pop("dtype")  # transformers looks for it among the weights then
    (folder / "config.json").write_text(json.dumps(config))
    weights = load_file(tiny_encoder_path / "model.safetensors")
    torch.save({**weights, "x": harm_in(tmp_path / "ran")}, folder / "w.bin")
    (folder / "w.bin").rename(folder / "pytorch_model.bin")
    entry = {"idx": 0, "name": "0", "path": "", "type": f"{LIBRARY}.Transformer"}
    (folder / "modules.json").write_text(json.dumps([entry]))
    (folder / "sentence_bert_config.json").write_text(json.dumps({group: {"weights_only": False}}))
    expected = rf"sentence_bert_config\.json asks for 'weights_only' False in `{group}`, .*{REMEDY}"
    with pytest.raises(ValueError, match=expected):
        sentence_transformers_scorer(str(folder), torch.device("cpu"))
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("settings", "is_harmless"),
    [
        ({"model_args": {"attn_implementation": "sdpa", "dtype": "float32"}, "tokenizer_args": {}}, True),
        ({"model_kwargs": None, "processor_kwargs": {"padding_side": "left", "model_max_length": 64}}, True),
        ({"model_kwargs": {"attn_implementation": "somebody/kernel"}}, False),
        ({"config_args": {"code_revision": "x"}}, False),
        ({"model_kwargs": {"dtype": {"a": 1}}}, False),
    ],
)
def test_settings_that_only_say_how_to_load_are_handed_on(
    write_modules: WriteModules, settings: dict[str, Any], is_harmless: bool
) -> None:
    folder = str(write_modules(f"{LIBRARY}.Transformer", **{"0/sentence_roberta_config": settings}))
    if is_harmless:
        check_foreign_modules(folder)
        return
    with pytest.raises(
        ValueError, match=r"0/sentence_roberta_config\.json asks for .*, which transformers would apply"
    ):
        check_foreign_modules(folder)


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"modules": "{"}, r"modules\.json is damaged \(it is not valid JSON"),
        ({"modules": "[" * 100_000}, r"modules\.json is damaged \(it is not valid JSON"),
        ({"modules": {"type": "x"}}, r"modules\.json is damaged \(it must be a list of modules\)"),
        ({"modules": ["x"]}, r"modules\.json is damaged \(it must be a list of modules\)"),
        ({"modules": [{"path": ""}]}, r"modules\.json is damaged \(each module must have a `type` and a `path`\)"),
        (
            {"modules": [{"type": f"{LIBRARY}.Pooling", "path": "../../x"}]},
            r"names the file '\.\./\.\./x/config\.json'",
        ),
        ({"sentence_bert_config": "[]"}, r"sentence_bert_config\.json is damaged \(it must be a mapping\)"),
        ({"sentence_bert_config": {"max_seq_length": "9"}}, r"`max_seq_length` must be a number of tokens"),
        ({"config_sentence_transformers": {"prompts": ["a"]}}, r"`prompts` must map names to texts"),
        ({"sentence_bert_config": " " * 2**25}, r"it is larger than 16,777,216 bytes"),
    ],
)
def test_a_damaged_file_is_named(write_modules: WriteModules, files: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=rf"^`model_name_or_path`: .*{reason}"):
        read_modules(str(write_modules(f"{LIBRARY}.Transformer", **files)))
