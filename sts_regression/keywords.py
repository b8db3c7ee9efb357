"""Between Python and the command: messages with keyword arguments in place of options, and options as words."""

import dataclasses
import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sts_regression.training.training_arguments import OPTION_GROUPS

# Arguments of `PairGrader` that are called otherwise in the command.
RENAMED = {
    "grade_names": "grades",
    "train_file": "pairs",
    "validation_file": "eval_pairs",
    "test_file": "test_pairs",
    "model_name_or_path": "name_or_path",
    "model_revision": "revision",
}
RENAMED_ALONE = ("grade_names", "model_name_or_path", "model_revision")  # also if a message names them without dashes
TYPES: dict[str, Any] = {option.name: option.type for group in OPTION_GROUPS for option in dataclasses.fields(group)}
QUOTED_OPTIONS = re.compile(r"`(--[^`]+)`")
PARSED_OPTION = re.compile(r"(argument |unknown option ')--(\w+)(?:/--[\w-]+)*")  # in messages of the parser
STATED_RANGE = re.compile(r"--label_ranges [^`]*=([^`:]+):([^`':]+)'?(?=`)")
PLACEHOLDERS = ("…", "LOWEST", "HIGHEST", "FOLDER")


def as_keywords(message: str) -> str:
    """The message with keyword arguments, such as `label_column="grade"`, in place of `--label_column grade`."""
    message = QUOTED_OPTIONS.sub(lambda found: f"`{_keywords(found[1])}`", message)
    message = PARSED_OPTION.sub(r"\1\2", message)
    for name in RENAMED_ALONE:
        message = message.replace(f"`{name}`", f"`{RENAMED[name]}`")
    return message


def as_keywords_of_evaluate(message: str) -> str:
    """A message with the keyword arguments of `PairGrader.evaluate`, which takes one set of pairs."""
    message = STATED_RANGE.sub(r"--label_values \1 \2", message)
    return as_keywords(message).replace("label_ranges", "label_values")


@contextmanager
def keywords_in_errors(translate: Callable[[str], str] = as_keywords) -> Iterator[None]:
    """Makes errors name keyword arguments in place of options."""
    try:
        yield
    except ValueError as error:
        if type(error) is ValueError:
            error.args = (translate(str(error)),)
        raise


def as_words(options: Mapping[str, Any]) -> list[str]:
    """Options as words of a command line, without those that are `None`."""
    words: list[str] = []
    for name, value in options.items():
        if isinstance(value, list | tuple):
            words += [f"--{name}", *map(str, value)]
        elif value is not None:
            words.append(f"--{name}={json.dumps(value) if isinstance(value, Mapping) else value}")
    return words


def _keywords(options: str) -> str:
    """Options with their values as keyword arguments; `options` itself if it is no list of options."""
    try:
        words = shlex.split(options)
    except ValueError:  # a shortened value
        return options
    given: dict[str, list[str]] = {}
    for word in words:
        if word.startswith("--"):
            given[word.removeprefix("--")] = []
        else:
            given[list(given)[-1]].append(word)
    if not given.keys() <= TYPES.keys():
        return "sts-regression train --help_all" if options == "--help_all" else options
    return ", ".join(_keyword(name, values) for name, values in given.items())


def _keyword(name: str, values: list[str]) -> str:
    shown = RENAMED.get(name, name)
    if not values:
        return f"{shown}=True" if TYPES[name] is bool else shown
    literals = [_literal(value, is_text="str" in str(TYPES[name])) for value in values]
    return f"{shown}=[{', '.join(literals)}]" if len(literals) > 1 else f"{shown}={literals[0]}"


def _literal(word: str, is_text: bool) -> str:
    """A word of the command line as Python writes its value; placeholders for values stay as they are."""
    if word.lower() in ("true", "false"):
        return word.capitalize()
    return json.dumps(word, ensure_ascii=False) if is_text and word not in PLACEHOLDERS else word
