"""The files that describe a model to sentence-transformers.

They are read so that an encoder is used as its authors meant it, and written so that the library loads our
checkpoints.
"""

import copy
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor
from transformers import PreTrainedTokenizerBase
from transformers.utils import cached_file

from sts_regression.basics.files import is_same_place, reading
from sts_regression.basics.tables import read_record, write_json
from sts_regression.configuration_sts_regression import POOLINGS, STSRegressionConfig, is_remote
from sts_regression.encoder_sts_regression import encoder_options
from sts_regression.models.tokenization import save_tokenizer

# The first version whose Transformer calls the method that a file names. Older versions report that they are too old.
OLDEST_VERSION = "5.4.0"
LIBRARY_MODULES = "sentence_transformers.base.modules"
ENCODER_FOLDER, WEIGHT_PREFIX = "encoder", "encoder."
MODULES_FILE = "modules.json"
NO_POOLING = "no pooling"  # as in cross-encoders
POOLING_FOLDER = "1_Pooling"  # in the folder of the encoder
CONFIG_FILE = "config.json"
WEIGHTS = ("model.safetensors", f"model-{'[0-9]' * 5}-of-{'[0-9]' * 5}.safetensors")  # whole, or in parts
MODEL_FILES = [
    *(CONFIG_FILE, *WEIGHTS, "model.safetensors.index.json"),
    *("modules.json", "sentence_bert_config.json", "config_sentence_transformers.json"),
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("chat_template.jinja", "vocab.txt", "vocab.json", "merges.txt", "bpe.codes"),
    *("spiece.model", "spm.model", "sentencepiece.bpe.model", "tokenizer.model"),
]
ENCODER_FILES = (*MODEL_FILES, f"{POOLING_FOLDER}/{CONFIG_FILE}")
MAX_SETTINGS_BYTES = 2**24  # limit of a file that describes a module; most have some hundred bytes
# The library's own text modules, under the names of all its versions. Of any other module only the name is known.
MODULE_TYPE = re.compile(
    r"sentence_transformers\.(?:models|(?:base|sentence_transformer)\.modules)(?:\.\w+)?\."
    r"(?P<kind>Asym|BoW|CLIPModel|CNN|Dense|Dropout|LayerNorm|LSTM|Normalize|Pooling|Router|StaticEmbedding|Transformer|"
    r"WeightedLayerPooling|WordEmbeddings|WordWeights)",
    re.ASCII,
)


@dataclass(frozen=True)
class SentenceTransformersModules:
    """
    The modules and settings of a sentence-transformers model that matter here.

    Attributes:
        pooling: "mean" or "cls"; `None` for any other pooling.
        normalizes: whether embeddings are scaled to length 1.
        max_seq_length: longest text in tokens; `None` if the files do not say.
        prompts: the model's prompts by name: texts to put in front of a sentence.
        default_prompt: the prompt that is used by default, or an empty text.
        unsupported: descriptions of modules and settings that [`STSRegressionModel`] lacks.
    """

    pooling: str | None
    normalizes: bool
    max_seq_length: int | None
    prompts: dict[str, str]
    default_prompt: str
    unsupported: tuple[str, ...]


def read_modules(path: str, revision: str = "main") -> SentenceTransformersModules | None:
    """
    Reads `modules.json` and the files that it names; `None` if a model has no such file.

    Args:
        path: Hub id or folder.
        revision: branch, tag or commit on the Hub.

    Raises:
        ValueError: for a damaged file; the message names it.
    """
    modules = read_module_list(path, revision)
    if modules is None:
        return None
    pooling, normalizes, pools_prompt, unsupported = None, False, True, []
    for module in modules:
        kind = kind_of(module["type"])
        if kind == "Pooling":
            settings = read_object(path, f"{module['path']}/config.json", revision) or {}
            pools_prompt = settings.get("include_prompt", True)
            mode = _pooling_mode(settings)
            pooling = mode if mode in POOLINGS else None
            if pooling is None:
                unsupported.append(f"pooling {mode!r}")
        elif kind == "Normalize":
            normalizes = True
        elif kind != "Transformer":
            unsupported.append(f"a module {kind or module['type']:.200}")
        elif module["path"]:
            unsupported.append(f"its encoder in the folder {module['path']}")
    if pooling is None and not unsupported:
        unsupported.append(NO_POOLING)
    transformer = read_object(path, "sentence_bert_config.json", revision) or {}
    if transformer.get("do_lower_case"):
        unsupported.append("lower-casing outside the tokenizer")
    library = read_object(path, "config_sentence_transformers.json", revision) or {}
    known, default_name = library.get("prompts") or {}, library.get("default_prompt_name")
    max_seq_length = transformer.get("max_seq_length")
    if not isinstance(known, dict) or not all(isinstance(prompt, str | None) for prompt in known.values()):
        raise _damaged(path, "config_sentence_transformers.json", "`prompts` must map names to texts")
    if not isinstance(max_seq_length, int | None) or (max_seq_length is not None and max_seq_length < 1):
        raise _damaged(path, "sentence_bert_config.json", "`max_seq_length` must be a number of tokens")
    prompts = {name: prompt for name, prompt in known.items() if prompt}
    default_prompt = prompts.get(default_name, "") if isinstance(default_name, str) else ""
    if default_prompt and not pools_prompt:
        unsupported.append("a prompt that is not pooled")
    return SentenceTransformersModules(
        pooling, normalizes, max_seq_length, prompts, default_prompt, tuple(unsupported)
    )


def is_config_of_ours(path: Path) -> bool:
    """Whether a `config.json` belongs to a model of this kind."""
    try:
        return read_record(path).get("model_type") == STSRegressionConfig.model_type
    except ValueError:
        return False


def check_encoder_folder(folder: Path, option: str, model_name_or_path: str | None) -> None:
    """
    Refuses a folder in which a checkpoint's copy of the encoder would replace another model, called `encoder`.

    Args:
        folder: the folder for the checkpoint.
        option: the option that names it, for the message.
        model_name_or_path: the model that is read.

    Raises:
        ValueError: for a folder `encoder` that is the model that is read, or is not beside a checkpoint of ours.
    """
    target = folder / ENCODER_FOLDER
    is_read = model_name_or_path is not None and is_same_place(model_name_or_path, target)
    if target.exists() and (is_read or not is_config_of_ours(folder / CONFIG_FILE)):
        raise ValueError(
            f"`{option}` {str(folder)!r} has a folder {ENCODER_FOLDER!r}, which the encoder of the trained model "
            "would replace. Name another folder."
        )


def write_modules(folder: Path, config: STSRegressionConfig, tokenizer: PreTrainedTokenizerBase) -> None:
    """
    Writes the tokenizer, and the files that make one of our checkpoints a `SentenceTransformer` or `CrossEncoder`.

    The encoder of a bi-encoder is written a second time, as a model of its own, into the folder `encoder`: the library
    loads it without running our code.

    Args:
        folder: the folder of the checkpoint, with its weights.
        config: the configuration of the model.
        tokenizer: the tokenizer of the model, whose `model_max_length` is the longest text.
    """
    delete_encoder(folder)
    save_tokenizer(tokenizer, folder)
    if config.encoder_type == "cross-encoder":
        # The scores are on the label scale already, for every loss.
        description = {"model_type": "CrossEncoder", "activation_fn": "torch.nn.modules.linear.Identity"}
        modules = _module_list({"": f"{LIBRARY_MODULES}.transformer.Transformer"})
        settings = {
            "transformer_task": "feature-extraction",
            "modality_config": {"text": {"method": "forward", "method_output_name": "scores"}},
            "module_output_name": "scores",
            "unpad_inputs": False,  # with flash attention, the library would pass one row, and get one score
        }
        write_json(settings, folder / "sentence_bert_config.json")
    else:
        description = {"model_type": "SentenceTransformer", "similarity_fn_name": "cosine"}
        (folder / "sentence_bert_config.json").unlink(missing_ok=True)
        _write_encoder(folder, config, tokenizer)
        inner = json.loads((folder / ENCODER_FOLDER / "modules.json").read_text(encoding="utf-8"))
        modules = [{**module, "path": f"{ENCODER_FOLDER}/{module['path']}".rstrip("/")} for module in inner]
    version = {"sentence_transformers": OLDEST_VERSION}
    library = {"__version__": version, **description, **_prompts(config.prefixes)}
    write_json(modules, folder / "modules.json")
    write_json(library, folder / "config_sentence_transformers.json")


def delete_encoder(folder: Path) -> None:
    """Deletes the encoder in the folder of a checkpoint or an export, but no file of another name."""
    target = folder / ENCODER_FOLDER
    for path in [path for name in ENCODER_FILES for path in target.glob(name)]:
        path.unlink()
    for emptied in (target / POOLING_FOLDER, target):
        with suppress(OSError):  # it does not exist, or still holds files
            emptied.rmdir()


def _write_encoder(folder: Path, config: STSRegressionConfig, tokenizer: PreTrainedTokenizerBase) -> None:
    """Writes the encoder as a model of its own, with its weights from the checkpoint's files."""
    target = folder / ENCODER_FOLDER
    target.mkdir(exist_ok=True)
    weights: dict[str, Tensor] = {}
    for file in sorted(folder.glob("*.safetensors")):
        with safe_open(file, framework="pt") as opened:
            names = [name for name in opened.keys() if name.startswith(WEIGHT_PREFIX)]
            weights |= {name.removeprefix(WEIGHT_PREFIX): opened.get_tensor(name).float() for name in names}
    save_file(weights, target / "model.safetensors", metadata={"format": "pt"})
    encoder_config = copy.deepcopy(config.encoder_config)
    encoder_config.dtype = torch.float32  # as our model loads it, for every saved type
    encoder_config.save_pretrained(target)
    describe_encoder(target, config, tokenizer)


def _prompts(prefixes: tuple[str, str]) -> dict[str, Any]:
    """Prefixes as prompts of `encode_query` and `encode_document`, and of `encode` if both are the same."""
    if not any(prefixes):
        return {}
    first, second = prefixes
    return {
        "prompts": {"query": first, "document": second},
        "default_prompt_name": "query" if first == second else None,
    }


def describe_encoder(folder: Path, config: STSRegressionConfig, tokenizer: PreTrainedTokenizerBase) -> None:
    """
    Turns the folder of an encoder's weights into a sentence-transformers model, with its tokenizer.

    The files have the older format, which embedding servers read, too.

    Args:
        folder: the folder with the encoder's weights and configuration.
        config: the configuration of the model that the encoder belongs to.
        tokenizer: the tokenizer of that model, whose `model_max_length` is the longest text.
    """
    save_tokenizer(tokenizer, folder)
    kinds = ["Transformer", "Pooling", *(["Normalize"] if config.normalize_embeddings else [])]
    paths = {f"{i}_{kind}" if i else "": f"sentence_transformers.models.{kind}" for i, kind in enumerate(kinds)}
    switches = {"cls_token": "cls", "mean_tokens": "mean", "max_tokens": "max", "mean_sqrt_len_tokens": "mean_sqrt"}
    pooling_config = {
        "word_embedding_dimension": config.encoder_config.hidden_size,
        **{f"pooling_mode_{switch}": mode == config.pooling for switch, mode in switches.items()},
    }
    settings: dict[str, Any] = {"max_seq_length": tokenizer.model_max_length, "do_lower_case": False}
    if not is_remote(config.encoder_config) and (options := encoder_options(config.encoder_config)):
        settings["model_args"] = options  # otherwise the library reports the weights of a pooler as missing
    contents: dict[str, Any] = {
        "modules.json": _module_list(paths),
        f"{POOLING_FOLDER}/{CONFIG_FILE}": pooling_config,
        "sentence_bert_config.json": settings,
    }
    if prompts := _prompts(config.prefixes):
        contents["config_sentence_transformers.json"] = prompts
    for name, content in contents.items():
        write_json(content, folder / name)


def _module_list(kinds: Mapping[str, str]) -> list[dict[str, Any]]:
    """The content of `modules.json` for module types by folder; the folder of the first module is the model's own."""
    return [{"idx": i, "name": str(i), "path": path, "type": kind} for i, (path, kind) in enumerate(kinds.items())]


def _pooling_mode(config: dict[str, Any]) -> str:
    """The pooling mode by its current name. Older files have a switch for each mode: `pooling_mode_mean_tokens`, …"""
    if "pooling_mode" in config:
        return str(config["pooling_mode"])
    switched_on = [
        key.removeprefix("pooling_mode_") for key, value in config.items() if "pooling_mode_" in key and value
    ]
    return "+".join({"cls_token": "cls", "mean_tokens": "mean"}.get(mode, mode) for mode in switched_on)


def kind_of(module_type: str) -> str | None:
    """The kind of a module of `modules.json`; `None` for a type that is not the library's own."""
    match = MODULE_TYPE.fullmatch(module_type)
    return match and match["kind"]


def read_module_list(path: str, revision: str = "main") -> list[dict[str, Any]] | None:
    """
    The entries of `modules.json`, each with a `type` and a `path`; `None` if a model has no such file.

    Raises:
        ValueError: for a damaged file.
    """
    modules = _read_json(path, MODULES_FILE, revision)
    if modules is None:
        return None
    if not isinstance(modules, list) or not all(isinstance(module, dict) for module in modules):
        raise _damaged(path, MODULES_FILE, "it must be a list of modules")
    for module in modules:
        if not all(isinstance(module.get(key), str) for key in ("type", "path")):
            raise _damaged(path, MODULES_FILE, "each module must have a `type` and a `path`")
    return modules


def read_object(path: str, name: str, revision: str = "main") -> dict[str, Any] | None:
    """
    The mapping in a JSON file of a model; `None` if there is no such file.

    Raises:
        ValueError: for a damaged file.
    """
    content = _read_json(path, name, revision)
    if content is not None and not isinstance(content, dict):
        raise _damaged(path, name, "it must be a mapping")
    return content


def _read_json(path: str, name: str, revision: str) -> Any:
    if PurePosixPath(name).is_absolute() or {".", ".."} & set(name.replace("\\", "/").split("/")):
        raise ValueError(f"`model_name_or_path`: {path!r} names the file {name!r:.200}, which is not its own.")
    if (file := find_file(path, name, revision)) is None:
        return None
    with reading(file), file.open("rb") as opened:
        content = opened.read(MAX_SETTINGS_BYTES + 1)
    if len(content) > MAX_SETTINGS_BYTES:
        raise _damaged(path, name, f"it is larger than {MAX_SETTINGS_BYTES:,} bytes")
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise _damaged(path, name, f"it is not valid JSON: {error}") from error


def find_file(path: str, name: str, revision: str) -> Path | None:
    """A file of a model's folder or Hub repository; `None` if it does not exist or the Hub cannot be reached."""
    file = cached_file(
        path,
        name,
        revision=revision,
        _raise_exceptions_for_missing_entries=False,
        _raise_exceptions_for_connection_errors=False,
    )
    return None if file is None else Path(file)


def _damaged(path: str, name: str, reason: str) -> ValueError:
    return ValueError(f"`model_name_or_path`: {path!r}: {name} is damaged ({reason:.300}). Fetch or save it again.")
