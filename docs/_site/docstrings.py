"""Docstrings in the Hugging Face dialect, as griffe's reader of Google's style wants them."""

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any

import griffe

# An argument, or several at once, with a type in parentheses, and its text as far as it is indented.
ITEM = re.compile(
    r"^    (?P<names>\w+(?:, \w+)*) \((?P<type>.+)\)(?::|\.$)(?P<text>.*(?:\n(?:        .*|[ ]*(?=\n        ).*))*)",
    re.MULTILINE,
)
DEFAULT = re.compile(r"(?:, \*optional\*)?(?:,? defaults? to .*)?$")
PLAIN_TYPE = re.compile(r"\[?`\w+`\]?(?: or `\w+`)*")  # says no more than the annotation
REFERENCE = re.compile(r"\[`(~?)([\w.]+)`\](?![\[(])")


class HuggingFaceDialect(griffe.Extension):
    """Types of arguments go into their text, since the signature has those of Python; references become links."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Changes all docstrings of a package."""
        objects = list(members(pkg))
        paths = {obj.name: obj.path for obj in objects if not obj.name.startswith("_") and not obj.is_attribute}
        for obj in objects:
            if obj.name == "STSMetric":  # is documented as `evaluate` wants it
                constants = (obj.module["METRIC_DESCRIPTION"], obj.module["INPUTS_DESCRIPTION"])
                text = "\n".join(ast.literal_eval(str(constant.value)) for constant in constants)
                obj.docstring.value = re.sub(r"(?m)^(Args|Returns):", r"\n\1:", text)
            if obj.docstring is not None:
                obj.docstring.value = google_style(obj.docstring.value, paths)


def members(obj: griffe.Object) -> Iterator[griffe.Object]:
    """An object and all that is defined in it."""
    yield obj
    for member in obj.members.values():
        if isinstance(member, griffe.Object):
            yield from members(member)


def google_style(text: str, paths: Mapping[str, str]) -> str:
    """
    A docstring in Google's style.

    Args:
        text: in the Hugging Face dialect.
        paths: of the objects that can be referred to, by name.
    """
    text = ITEM.sub(_items, text)
    return REFERENCE.sub(lambda match: _link(match[2], bool(match[1]), paths), text)


def _items(match: "re.Match[str]") -> str:
    kind = DEFAULT.sub("", match["type"])  # which stands in a column of its own
    text = match["text"] if PLAIN_TYPE.fullmatch(kind) else f" ({kind}){match['text']}"
    return "\n".join(f"    {name}:{text}" for name in match["names"].split(", "))


def _link(name: str, is_short: bool, paths: Mapping[str, str]) -> str:
    first, dot, rest = name.partition(".")
    label = name.rpartition(".")[2] if is_short else name
    path = paths.get(first, first) + dot + rest
    return f'<autoref optional identifier="{path}"><code>{label}</code></autoref>'
