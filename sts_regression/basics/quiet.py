"""Hides messages of libraries, and progress bars if there is neither a terminal nor a notebook."""

import logging
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

import datasets
import huggingface_hub.utils as hub
from tqdm.contrib.logging import logging_redirect_tqdm
from transformers.utils import is_in_notebook
from transformers.utils import logging as transformers_logging

PACKAGE = "sts_regression"  # the logger of all modules


@contextmanager
def quiet_libraries() -> Iterator[None]:
    """
    Keeps transformers, accelerate and datasets from warning and from drawing progress bars, except of downloads.

    This is for commands and for `PairGrader.fit`, which have their own messages.
    """
    verbosity, had_bars = transformers_logging.get_verbosity(), transformers_logging.is_progress_bar_enabled()
    had_download_bars, had_table_bars = (
        not disabled() for disabled in (hub.are_progress_bars_disabled, datasets.are_progress_bars_disabled)
    )
    accelerate_logger = logging.getLogger("accelerate")
    accelerate_level = accelerate_logger.level
    with warnings.catch_warnings():
        try:
            if not sys.warnoptions:  # set by `python -W`
                warnings.simplefilter("ignore")
            transformers_logging.set_verbosity_error()
            transformers_logging.disable_progress_bar()
            _set_download_bars(had_download_bars)  # transformers has turned them off with its own
            datasets.disable_progress_bars()
            accelerate_logger.setLevel(logging.ERROR)
            yield
        finally:
            transformers_logging.set_verbosity(verbosity)
            accelerate_logger.setLevel(accelerate_level)
            if had_bars:
                transformers_logging.enable_progress_bar()
            _set_download_bars(had_download_bars)
            if had_table_bars:
                datasets.enable_progress_bars()


class _Rewriting(logging.Formatter):
    """Passes each message through a function."""

    def __init__(self, rewrite: Callable[[str], str]) -> None:
        super().__init__()
        self.rewrite = rewrite

    def formatMessage(self, record: logging.LogRecord) -> str:
        """The message as it is printed."""
        return self.rewrite(super().formatMessage(record))


@contextmanager
def lines_on_screen(rewrite: Callable[[str], str]) -> Iterator[None]:
    """Prints the messages of this package, rewritten, unless the program has a handler for them."""
    package = logging.getLogger(PACKAGE)
    handlers = [] if package.hasHandlers() else [logging.StreamHandler(sys.stdout)]
    for handler in handlers:
        handler.setFormatter(_Rewriting(rewrite))
    try:
        for handler in handlers:
            package.addHandler(handler)
        with (
            level_of(PACKAGE, logging.INFO),
            logging_redirect_tqdm([package]) if handlers else nullcontext(),  # lines go above a progress bar
        ):
            yield
    finally:
        for handler in handlers:
            package.removeHandler(handler)


@contextmanager
def level_of(name: str, level: int) -> Iterator[None]:
    """Sets the level of a logger for a while."""
    named = logging.getLogger(name)
    before = named.level
    named.setLevel(level)
    try:
        yield
    finally:
        named.setLevel(before)


def _set_download_bars(are_wanted: bool) -> None:
    if are_wanted == hub.are_progress_bars_disabled():  # otherwise the Hub's library may warn
        (hub.enable_progress_bars if are_wanted else hub.disable_progress_bars)()


def draws_bars(disable_tqdm: bool | None = False) -> bool:
    """Whether progress bars are drawn: on a terminal and in a notebook, unless they are unwanted."""
    return not disable_tqdm and (sys.stderr.isatty() or is_in_notebook())
