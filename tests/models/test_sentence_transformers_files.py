"""Models of sentence-transformers: taken with their own pooling, or refused; scored as that library scores them."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from sts_regression.models.encoding import model_scorer, sentence_transformers_scorer
from sts_regression.models.loading import find_model, load_model
from sts_regression.models.sentence_transformers_files import read_modules

POOLING_SWITCHES = ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens")
SENTENCES1 = ["the cat", "a red house in the park", "water", "the big dog", "a man"]
SENTENCES2 = ["a cat", "the water", "a big man and the dog", "the dog", "a man"]

MakeModel = Callable[..., Path]


def pooling(mode: str) -> dict[str, Any]:
    return {"word_embedding_dimension": 32, "pooling_mode": mode}


def older_pooling(*switched_on: str) -> dict[str, Any]:
    return {f"pooling_mode_{name}": name in switched_on for name in POOLING_SWITCHES}


@pytest.fixture
def make_files(tmp_path: Path) -> MakeModel:
    """Writes the files that describe a sentence-transformers model, and returns their folder."""

    def make(pooling_config: dict[str, Any] | None, *further: str, **settings: Any) -> Path:
        kinds = ["Transformer", *(["Pooling"] if pooling_config is not None else []), *further]
        modules = [
            {
                "idx": i,
                "name": str(i),
                "path": f"{i}_{kind}" if i else "",
                "type": f"sentence_transformers.models.{kind}",
            }
            for i, kind in enumerate(kinds)
        ]
        (tmp_path / "modules.json").write_text(json.dumps(modules))
        if pooling_config is not None:
            (tmp_path / "1_Pooling").mkdir()
            (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps(pooling_config))
        for name, content in settings.items():
            (tmp_path / f"{name}.json").write_text(json.dumps(content))
        return tmp_path

    return make


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (pooling("mean"), "mean"),
        (pooling("cls"), "cls"),
        (older_pooling("mean_tokens"), "mean"),
        (older_pooling("cls_token"), "cls"),
    ],
)
def test_pooling_is_read_from_files_of_either_age(
    make_files: MakeModel, config: dict[str, Any], expected: str
) -> None:
    modules = read_modules(str(make_files(config)))
    assert modules is not None
    assert (modules.pooling, modules.normalizes, modules.unsupported) == (expected, False, ())


@pytest.mark.parametrize(
    ("config", "further", "settings", "reason"),
    [
        (pooling("max"), [], {}, "pooling 'max'"),
        (pooling("lasttoken"), [], {}, "pooling 'lasttoken'"),
        (older_pooling("cls_token", "mean_tokens"), [], {}, "pooling 'cls+mean'"),
        (pooling("mean"), ["Dense"], {}, "a module Dense"),
        (None, [], {}, "no pooling"),
        (pooling("mean"), [], {"sentence_bert_config": {"do_lower_case": True}}, "lower-casing outside the tokenizer"),
    ],
)
def test_what_our_model_lacks_is_named(
    make_files: MakeModel, config: dict[str, Any] | None, further: list[str], settings: dict[str, Any], reason: str
) -> None:
    modules = read_modules(str(make_files(config, *further, **settings)))
    assert modules is not None
    assert modules.unsupported == (reason,)


def test_a_prompt_that_is_not_pooled_is_named(make_files: MakeModel) -> None:
    prompts = {"prompts": {"query": "query: "}, "default_prompt_name": "query"}
    settings = {**pooling("mean"), "include_prompt": False}
    modules = read_modules(str(make_files(settings, config_sentence_transformers=prompts)))
    assert modules is not None
    assert modules.unsupported == ("a prompt that is not pooled",)


def test_normalization_and_longest_text_are_read(make_files: MakeModel) -> None:
    folder = make_files(pooling("mean"), "Normalize", sentence_bert_config={"max_seq_length": 128})
    modules = read_modules(str(folder))
    assert modules is not None
    assert (modules.normalizes, modules.max_seq_length, modules.unsupported) == (True, 128, ())


def test_a_plain_encoder_has_no_modules(tiny_encoder_path: Path) -> None:
    assert read_modules(str(tiny_encoder_path)) is None


def test_prompts_are_read_and_the_default_one_found(make_files: MakeModel) -> None:
    library = {"prompts": {"query": "query: ", "passage": "passage: ", "none": ""}, "default_prompt_name": "query"}
    modules = read_modules(str(make_files(pooling("mean"), config_sentence_transformers=library)))
    assert modules is not None
    assert modules.prompts == {"query": "query: ", "passage": "passage: "}
    assert (modules.default_prompt, modules.unsupported) == ("query: ", ())
    without = read_modules(str(make_files(None)))
    assert without is not None


@pytest.fixture
def make_sentence_transformer(tiny_encoder_path: Path, tmp_path: Path) -> MakeModel:
    """`make(mode, *modules)`: a model that the library itself saved; of its modules `normalize` and `dense`."""
    library = pytest.importorskip("sentence_transformers", reason="the sentence-transformers extra is not installed")
    from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling, Transformer

    def make(mode: str, *further: str) -> Path:
        torch.manual_seed(0)
        modules: list[Any] = [Transformer(str(tiny_encoder_path), max_seq_length=16), Pooling(32, pooling_mode=mode)]
        modules += [Normalize() if kind == "normalize" else Dense(32, 8) for kind in further]
        library.SentenceTransformer(modules=modules, device="cpu").save(str(tmp_path / "model"))
        return tmp_path / "model"

    return make


@pytest.mark.parametrize(("mode", "further"), [("mean", []), ("cls", []), ("mean", ["normalize"])])
def test_our_model_scores_like_the_library(
    make_sentence_transformer: MakeModel, mode: str, further: list[str]
) -> None:
    path = str(make_sentence_transformer(mode, *further))
    source = find_model(path)
    model, tokenizer = load_model(source, {})
    assert source.modules is not None
    ours = model_scorer(model, tokenizer)(SENTENCES1, SENTENCES2)
    theirs = sentence_transformers_scorer(path, torch.device("cpu"))(SENTENCES1, SENTENCES2)
    assert tokenizer.model_max_length == 16
    assert set(ours) == set(theirs) == {"cosine", "dot"}
    for name, values in theirs.items():
        np.testing.assert_allclose(ours[name], values, atol=1e-5)
    assert np.allclose(ours["dot"], ours["cosine"], atol=1e-5) is (further == ["normalize"])


def test_the_default_prompt_is_put_in_front_as_by_the_library(make_sentence_transformer: MakeModel) -> None:
    path = make_sentence_transformer("mean")
    settings_path = path / "config_sentence_transformers.json"
    settings = json.loads(settings_path.read_text())
    settings_path.write_text(json.dumps(settings | {"prompts": {"sts": "a dog: "}, "default_prompt_name": "sts"}))
    model, tokenizer = load_model(find_model(str(path)), {})
    assert model.config.prefixes == ("a dog: ", "a dog: ")
    ours = model_scorer(model, tokenizer)(SENTENCES1, SENTENCES2)
    theirs = sentence_transformers_scorer(str(path), torch.device("cpu"))(SENTENCES1, SENTENCES2)
    np.testing.assert_allclose(ours["cosine"], theirs["cosine"], atol=1e-5)
    plain, tokenizer = load_model(find_model(str(path)), {"sentence1_prefix": "", "sentence2_prefix": ""})
    assert not np.allclose(model_scorer(plain, tokenizer, False)(SENTENCES1, SENTENCES2)["cosine"], ours["cosine"])


@pytest.mark.parametrize(("mode", "further", "reason"), [("max", [], "pooling 'max'"), ("mean", ["dense"], "Dense")])
def test_what_our_model_lacks_is_refused_for_training_but_scored(
    make_sentence_transformer: MakeModel, mode: str, further: list[str], reason: str
) -> None:
    path = str(make_sentence_transformer(mode, *further))
    with pytest.raises(ValueError, match=f"{re.escape(reason)}.*`--pooling mean` or"):
        load_model(find_model(path), {})
    model, _ = load_model(find_model(path), {"pooling": "mean"})
    assert model.config.pooling == "mean"
    scores = sentence_transformers_scorer(path, torch.device("cpu"))(SENTENCES1, SENTENCES2)
    assert scores["cosine"].shape == (5,)
    assert scores["cosine"][4] == pytest.approx(1, abs=1e-5)
