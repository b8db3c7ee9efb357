"""Checks a sentence-transformers model before its library imports its modules and passes its options on."""

import re
from collections.abc import Iterator
from typing import Any

from sts_regression.models.sentence_transformers_files import MODULES_FILE, kind_of, read_module_list, read_object

TOKENIZER_TYPE = re.compile(
    r"sentence_transformers\.(models|sentence_transformer\.modules)\.tokenizer(\.\w+)?"
    r"\.(PhraseTokenizer|TransformersTokenizerWrapper|WhitespaceTokenizer|WordTokenizer)",
    re.ASCII,
)
ENCODERS = ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
TRANSFORMER_FILES = tuple(f"sentence_{encoder}_config.json" for encoder in ENCODERS)
ROUTER_FILES = ("router_config.json", "config.json")
# Files of modules that name classes, or change how transformers loads something.
SETTINGS_FILES = {
    **dict.fromkeys(("Transformer", "CLIPModel"), TRANSFORMER_FILES),
    **dict.fromkeys(("Router", "Asym"), ROUTER_FILES),
    "WordEmbeddings": ("wordembedding_config.json",),
}
# Options that go to transformers' `from_pretrained`. Some of them fetch code, and `weights_only` set to false would
# read any pickle. The few harmless ones do neither, except that an attention named OWNER/NAME is code, too.
PASSED_ON = [f"{of}_{kind}" for of in ("model", "tokenizer", "processor", "config") for kind in ("args", "kwargs")]
HARMLESS = (
    "add_pooling_layer",
    "attn_implementation",
    "dtype",
    "torch_dtype",
    "model_max_length",
    "padding_side",
    "truncation_side",
)


def check_foreign_modules(path: str, revision: str = "main") -> None:
    """
    Refuses a sentence-transformers model that makes its library run other code than its own, or read a pickle.

    Args:
        path: Hub id or folder.
        revision: branch, tag or commit on the Hub.

    Raises:
        ValueError: for such a model. The message names the file, the module or option, and the remedy.
    """
    # The library looks for an encoder in the model's own folder even if no module is listed for it.
    waiting = [(MODULES_FILE, "sentence_transformers.models.Transformer", "")]
    waiting += [(MODULES_FILE, module["type"], module["path"]) for module in read_module_list(path, revision) or []]
    while waiting:
        file, module_type, folder = waiting.pop(0)
        kind = kind_of(module_type)
        if kind is None:
            raise _refusal(
                path, file, f"the module type {module_type!r:.200}, which sentence-transformers does not have"
            )
        for name in SETTINGS_FILES.get(kind, ()):
            file = f"{folder}/{name}".lstrip("/")
            settings = read_object(path, file, revision) or {}
            for group, key, value in _handed_on(settings):
                raise _refusal(path, file, f"{key!r:.80} {value!r:.80} in `{group}`, which transformers would apply")
            if kind == "WordEmbeddings" and not TOKENIZER_TYPE.fullmatch(name := str(settings.get("tokenizer_class"))):
                raise _refusal(path, file, f"the tokenizer {name!r:.200}, which sentence-transformers does not have")
            for route, route_type in _mapping(settings.get("types")).items() if name in ROUTER_FILES else ():
                waiting.append((file, str(route_type), f"{folder}/{route}".lstrip("/")))


def _refusal(path: str, file: str, asked: str) -> ValueError:
    return ValueError(
        f"`model_name_or_path`: {path!r}: {file} asks for {asked}. Read the code that this runs, and give "
        "`--trust_remote_code`, or take the encoder alone with `--pooling mean` or `--pooling cls`."
    )


def _handed_on(settings: dict[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """The settings that are not known to be harmless, with their group."""
    for group in PASSED_ON:
        for key, value in _mapping(settings.get(group)).items():
            if key not in HARMLESS or not isinstance(value, str | int | None) or "/" in str(value):
                yield group, key, value


def _mapping(value: Any) -> dict[str, Any]:
    """The value if it is a mapping, else an empty one: the library fails on it before it loads anything."""
    return value if isinstance(value, dict) else {}
