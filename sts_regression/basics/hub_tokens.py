"""Keeps tokens of the Hugging Face Hub out of the output and files of commands."""

import argparse
import re
import sys
from typing import NoReturn

HIDDEN_TOKEN = "…"  # noqa: S105 - replaces a token
TOKEN_PATTERN = re.compile(r"(?<![A-Za-z0-9])(?:hf_(?:oauth_|jwt_)?|api_org_)[A-Za-z0-9]{16,}(?:[._-][A-Za-z0-9_-]+)*")
UNKNOWN_WORDS = "unrecognized arguments: "  # argparse's


def without_tokens(text: str) -> str:
    """The text with `…` in place of everything that looks like a token of the Hub."""
    return TOKEN_PATTERN.sub(HIDDEN_TOKEN, text)


def without_values(words: list[str]) -> list[str]:
    """Unrecognised words of a command without values, since the option for a token may be mistyped."""
    shown, follows_option = [], False
    for word in words:
        is_option = word.startswith("-")
        shown.append(word.partition("=")[0] if is_option else HIDDEN_TOKEN if follows_option else word)
        follows_option = is_option and "=" not in word
    return shown


class CommandParser(argparse.ArgumentParser):
    """An `ArgumentParser` that prints errors, its own and those of its command, in one line without tokens."""

    def error(self, message: str) -> NoReturn:
        """Prints the message in one line, and ends the process."""
        before, is_unknown, words = message.partition(UNKNOWN_WORDS)
        if is_unknown:
            message = f"{before}{UNKNOWN_WORDS}{' '.join(without_values(words.split()))}"
        message = without_tokens(message).rstrip(".")
        self.exit(2, f"{self.prog}: error: {message}. `{self.prog} --help` lists the options.\n")

    def end(self, error: Exception) -> NoReturn:
        """Ends the command with an error in one line."""
        sys.exit(without_tokens(f"{self.prog}: error: {error}"))
