"""Recipes: YAML files of options for the training command, for one training or for several in a row.

A recipe is a mapping of options to values, under the names that they have on the command line. Beside options it may
hold

    extends: FILE        a recipe (relative to this file) whose options, stage by stage, apply where this one sets none
    stages: [{…}, {…}]   trainings in a row, each with the options that it does not share with the others
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
from sts_regression.training.training_arguments import OPTION_NAMES

NOTES_KEY, EXTENDS_KEY, STAGES_KEY = "about", "extends", "stages"

NULL_TAG = "tag:yaml.org,2002:null"

Options = dict[str, list[str]]  # by name of the option: what stands for it on the command line


@dataclass(frozen=True)
class Recipe:
    """
    A recipe as the command reads it.

    Attributes:
        about: its notes.
        stages: for each training its options, as on the command line.
        own: for each training the names of the options that the recipe sets for it, not for all.
    """

    about: dict[str, Any]
    stages: list[list[str]]
    own: list[frozenset[str]]


def read_recipe(path: str | Path) -> Recipe:
    """
    Reads a recipe.

    Args:
        path: the file.

    Raises:
        ValueError: if the file is missing, is no mapping, or has a key that is no option.
    """
    path = Path(path)
    layers = _layers(path)
    staged = [_stages(path, layer) for layer in layers if STAGES_KEY in layer] or [[{}]]
    if len(set(map(len, staged))) > 1:
        raise ValueError(f"{path}: `stages` must be as many as those of the recipe that it extends.")
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
        raise ValueError(f"{path}: a stage has no `stages` of its own.")
    return stages


def _layers(path: Path) -> list[dict[str, Any]]:
    """The recipe and those that it extends, the outermost last."""
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
        following = None if base is None else following.parent / base
    return layers


def _read(path: Path) -> dict[str, Any]:
    """
    The mapping that a file holds, with values as they are written.

    YAML reads no and yes as booleans, but `eval_strategy: no` and a grade called yes are meant; null alone is read.
    """
    if not is_file(path):
        raise ValueError(f"{path}: no such recipe.")
    with reading(path):
        raw = path.read_bytes()
    try:
        content = yaml.load(raw.decode("utf-8-sig"), Loader=_WrittenLoader)  # noqa: S506 - a SafeLoader
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not valid UTF-8. Save the recipe as UTF-8.") from error
    except Exception as error:  # PyYAML lets others than its own pass
        raise ValueError(f"{path}: not valid YAML ({' '.join(str(error).split())}).") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path}: a recipe is a mapping of options to values, but this is {type(content).__name__}.")
    return content


class _WrittenLoader(yaml.SafeLoader):
    """Reads texts, lists and mappings: plain values as they are written, but for null, and no other tags."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """The next node; no alias of a list or mapping, which could hold itself, or a thousand times another."""
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()
            if isinstance(self.anchors.get(event.anchor), yaml.CollectionNode):
                problem = "an alias must stand for a plain value"
                raise yaml.composer.ComposerError(None, None, problem, event.start_mark)
        return super().compose_node(parent, index)

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Leaves the node as it is."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """The mapping, where no key occurs twice: PyYAML would keep the last."""
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
    """The options of a layer, or of a stage of it."""
    options = {name: value for name, value in layer.items() if name not in (NOTES_KEY, STAGES_KEY)}
    for key in options:
        if key not in OPTION_NAMES:
            raise ValueError(f"{path}: unknown key {key!r:.80}.{suggestion(str(key))}")
    return {key: _arguments(path, key, value) for key, value in options.items()}


def _arguments(path: Path, key: str, value: Any) -> list[str]:
    """An option as it stands on the command line; none of null, which means the default."""
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
    """What a value within a mapping is written as: a number (1e-3 as well), a boolean, or else text."""
    if written is None:
        return None
    if written.lower() in yaml.SafeLoader.bool_values:
        return yaml.SafeLoader.bool_values[written.lower()]
    try:
        value = json.loads(written)
    except ValueError:
        return written
    return value if isinstance(value, int | float) and math.isfinite(value) else written


def suggestion(name: str) -> str:
    """What a wrong name of an option may have meant, or where the right ones are listed; ends a message."""
    close = difflib.get_close_matches(name, OPTION_NAMES, n=1)
    return f" Did you mean {close[0]!r}?" if close else " `python run_sts.py --help` lists all options."
