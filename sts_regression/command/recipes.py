"""Recipes: YAML files of options for the training command, with one stage or several.

A recipe is a mapping of options to values, under their names on the command line. Besides options, it may hold

    extends: FILE        a recipe (relative to this file, or a bundled one) whose options apply, stage by stage, unless
                         set here
    stages: [{…}, {…}]   training stages, each with the options that it does not share with the others
    about: {…}           notes for the reader: source, expected score, cost
"""

import difflib
import itertools
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from sts_regression.basics.files import is_file, reading
from sts_regression.quickstart import BUNDLED_FOLDER
from sts_regression.training.training_arguments import OPTION_NAMES

NOTES_KEY, EXTENDS_KEY, STAGES_KEY = "about", "extends", "stages"

# Names that other programs give to options of ours.
OTHER_NAMES = {
    "lr": "learning_rate",
    "epochs": "num_train_epochs",
    "batch_size": "per_device_train_batch_size",
    "model": "model_name_or_path",
    "max_length": "max_seq_length",
}

NULL_TAG = "tag:yaml.org,2002:null"

Options = dict[str, list[str]]  # by name of the option: its words on the command line


@dataclass(frozen=True)
class Recipe:
    """
    The content of a recipe.

    Attributes:
        about: the notes.
        stages: the options of each stage, as words of a command line.
        own: for each stage, the names of the options that the recipe sets for this stage and not for all.
    """

    about: dict[str, Any]
    stages: list[list[str]]
    own: list[frozenset[str]]


def read_recipe(path: str | Path) -> Recipe:
    """
    Reads a recipe.

    Args:
        path: the file, or the name of a bundled recipe, such as `own_pairs.yaml`.

    Raises:
        ValueError: if the file is missing, is not a mapping, or has a key that is not an option.
    """
    path = _locate(Path(path))
    layers = _layers(path)
    staged = [_stages(path, layer) for layer in layers if STAGES_KEY in layer] or [[{}]]
    if len(set(map(len, staged))) > 1:
        raise ValueError(f"{path}: there must be as many `stages` as in the recipe that it extends.")
    stages: list[Options] = [{} for _ in staged[0]]
    own: list[set[str]] = [set() for _ in stages]
    for layer in layers:
        layer_stages = _stages(path, layer) if STAGES_KEY in layer else [{}] * len(stages)
        for options, names, stage in zip(stages, own, layer_stages, strict=True):
            of_stage = _options(path, stage)
            options |= _options(path, layer) | of_stage
            names.update(of_stage)
    about = {name: note for layer in layers for name, note in _notes(path, layer).items()}
    return Recipe(about, [list(itertools.chain(*options.values())) for options in stages], list(map(frozenset, own)))


def _stages(path: Path, layer: Mapping[str, Any]) -> list[dict[str, Any]]:
    stages = layer[STAGES_KEY]
    if not isinstance(stages, list) or not stages or not all(isinstance(stage, dict) for stage in stages):
        raise ValueError(f"{path}: `stages` must be a list of mappings of options to values.")
    if any(STAGES_KEY in stage for stage in stages):
        raise ValueError(f"{path}: a stage must not have `stages` of its own.")
    return stages


def _layers(path: Path) -> list[dict[str, Any]]:
    """The recipe and the recipes that it extends; the recipe itself comes last."""
    layers: list[dict[str, Any]] = []
    seen: list[Path] = []
    following: Path | None = path
    while following is not None:
        layers.insert(0, _read(following))
        if following.resolve() in seen:
            raise ValueError(f"{path}: extends itself.")
        seen.append(following.resolve())
        base = layers[0].pop(EXTENDS_KEY, None)
        if not isinstance(base, str | None):
            raise ValueError(f"{path}: `extends` must be the name of one file, but is {base!r:.200}.")
        following = None if base is None else _locate(Path(base), following.parent)
    return layers


def _locate(name: Path, folder: Path = Path()) -> Path:
    """The recipe in a folder, or else the bundled one of that name."""
    path = folder / name
    is_bundled = name == Path(name.name) and is_file(BUNDLED_FOLDER / name) and not is_file(path)
    return BUNDLED_FOLDER / name if is_bundled else path


def _read(path: Path) -> dict[str, Any]:
    """
    The mapping in a file, with all values but null as text.

    YAML would read no and yes as booleans, but `eval_strategy: no` and a grade called yes are meant literally.
    """
    if not is_file(path):
        raise ValueError(f"{path}: no such recipe.")
    with reading(path):
        raw = path.read_bytes()
    try:
        content = yaml.load(raw.decode("utf-8-sig"), Loader=_WrittenLoader)  # noqa: S506 - a SafeLoader
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not valid UTF-8. Save the recipe as UTF-8.") from error
    except Exception as error:  # PyYAML does not only raise its own errors
        raise ValueError(f"{path}: not valid YAML ({' '.join(str(error).split())}).") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path}: a recipe is a mapping of options to values, but this is {type(content).__name__}.")
    return content


class _WrittenLoader(yaml.SafeLoader):
    """Reads text, lists and mappings, without other tags. Plain values stay text, except null."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """The next node. Refuses aliases of lists and mappings, which could contain themselves or grow without end."""
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()
            if isinstance(self.anchors.get(event.anchor), yaml.CollectionNode):
                problem = "an alias must stand for a plain value"
                raise yaml.composer.ComposerError(None, None, problem, event.start_mark)
        return super().compose_node(parent, index)

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Does nothing, so that merge keys are not resolved."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """The mapping. Refuses a key that occurs twice, of which PyYAML would keep the last."""
        mapping = super().construct_mapping(node, deep)
        if len(mapping) < len(node.value):
            raise yaml.constructor.ConstructorError(None, None, "a key occurs more than once", node.start_mark)
        return mapping


_WrittenLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag == NULL_TAG]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_WrittenLoader.yaml_constructors = {
    tag: constructor
    for tag, constructor in yaml.SafeLoader.yaml_constructors.items()
    if tag in (NULL_TAG, *(f"tag:yaml.org,2002:{kind}" for kind in ("str", "seq", "map")), None)  # None: any other
}


def _notes(path: Path, layer: Mapping[str, Any]) -> dict[str, Any]:
    notes = layer.get(NOTES_KEY) or {}
    if not isinstance(notes, dict):
        raise ValueError(f"{path}: `{NOTES_KEY}` must be a mapping, but is {notes!r:.200}.")
    return notes


def _options(path: Path, layer: Mapping[str, Any]) -> Options:
    """The options of a layer, or of one of its stages."""
    options = {name: value for name, value in layer.items() if name not in (NOTES_KEY, STAGES_KEY)}
    for key in options:
        if key not in OPTION_NAMES:
            raise ValueError(f"{path}: unknown key {key!r:.80}.{suggestion(str(key))}")
    return {key: _arguments(path, key, value) for key, value in options.items()}


def _arguments(path: Path, key: str, value: Any) -> list[str]:
    """The words of an option on the command line; none for null, which means the default."""
    if value is None:
        return []
    if isinstance(value, list):
        if not all(isinstance(item, str) and not item.startswith("--") for item in value):
            raise ValueError(f"{path}: `{key}` must be a list of plain values.")
        return [f"--{key}", *value]
    if isinstance(value, dict):
        if not all(isinstance(word, str | None) for word in itertools.chain(*value.items())):
            raise ValueError(f"{path}: `{key}` must be a mapping of names to plain values.")
        value = json.dumps({name: _plain_value(inner) for name, inner in value.items()})
    return [f"--{key}={value}"]


def _plain_value(written: str | None) -> Any:
    """The number (1e-3 included), boolean or else text that a value within a mapping spells."""
    if written is None:
        return None
    if written.lower() in yaml.SafeLoader.bool_values:
        return yaml.SafeLoader.bool_values[written.lower()]
    try:
        value = json.loads(written)
    except ValueError:
        return written
    return value if isinstance(value, int | float) and math.isfinite(value) else written


def suggestion(name: str, dashes: str = "") -> str:
    """The end of a message about an unknown option: the most similar option, or where options are listed."""
    name = name.replace("-", "_")
    if name in OTHER_NAMES:
        return f" Did you mean `{dashes}{OTHER_NAMES[name]}`?"
    begun = [option for option in OPTION_NAMES if option.startswith(f"{name}_")]
    close = difflib.get_close_matches(name, begun or OPTION_NAMES, n=1, cutoff=0.0 if begun else 0.6)
    return f" Did you mean `{dashes}{close[0]}`?" if close else " `--help_all` lists all options."
