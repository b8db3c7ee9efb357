"""Steps of a command before torch is loaded: help, missing inputs, environment and signal handlers."""

import argparse
import ctypes
import gc
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from transformers import HfArgumentParser

from sts_regression.basics.hub_access import check_model
from sts_regression.basics.hub_tokens import without_tokens
from sts_regression.basics.input_files import check_files
from sts_regression.basics.stopping import listen
from sts_regression.options.data_arguments import DataArguments
from sts_regression.options.model_arguments import ModelArguments
from sts_regression.options.training_options import TrainingOptions

PROGRAM = "run_sts.py"
RECIPE_SUFFIXES = (".yaml", ".yml")
LONGEST_MESSAGE = 1000  # characters
# Of glibc's malloc.h: no memory maps for large requests, nothing returned to the system, more requested at a time.
MALLOC_OPTIONS = ((-4, 0), (-1, 2**31 - 1), (-2, 2**28))  # M_MMAP_MAX, M_TRIM_THRESHOLD, M_TOP_PAD
TURNS_OF_WAITING = "3000"  # of a thread of GNU OpenMP before it sleeps; about 100 times fewer than its default
HELP, HELP_ALL = ("-h", "--help"), ("--help_all", "--help-all")
USAGE = "%(prog)s [RECIPE.yaml] [--OPTION VALUE …]"
DESCRIPTIONS = {
    "train": """\
Trains, evaluates and applies a model of graded similarity. Without options it trains on the bundled pairs.
Recipes for the bundled pairs and for pairs of your own change some of the defaults below.

  %(prog)s --train_file pairs.csv                                     train; development pairs are held out
  %(prog)s --train_file pairs.csv --grade_names low middle high       labels are names of grades
  %(prog)s --model_name_or_path RUN --predict_file new_pairs.csv      score new pairs
  %(prog)s --do_eval --model_name_or_path MODEL --test_file test.csv  evaluate
""",
    "evaluate": """\
Evaluates a model on labelled pairs or on the seven STS tasks.

  %(prog)s --model_name_or_path MODEL --test_file test.csv            your own labelled pairs
  %(prog)s --model_name_or_path MODEL --sts_data FOLDER               the STS tasks, for any encoder
""",
    "predict": """\
Scores new pairs with a trained model, and grades them.

  %(prog)s --model_name_or_path RUN --predict_file new_pairs.csv      writes predictions.csv in output_dir
""",
}
# Options that act on a finished model: those that the help of `sts-regression predict` and `evaluate` shows.
_SCORING = (
    *("model_name_or_path", "model_revision", "trust_remote_code", "max_seq_length", "encoding", "sentence1_column"),
    *("sentence2_column", "output_dir", "cpu_threads", "verbose", "overwrite_output_dir"),
)
PREDICTING = (*_SCORING, "predict_file", "predict_output", "predict_chunk_size", "backend")
EVALUATING = (
    *(*_SCORING, "pooling", "sentence1_prefix", "sentence2_prefix", "dataset_name", "dataset_config_name"),
    *("validation_file", "validation_dataset_name", "test_file", "sts_data", "sick_split", "stsb_version"),
    *("dev_leak_filter", "label_column", "label_values", "label_ranges", "grade_names", "strict", "max_eval_samples"),
    *("per_device_eval_batch_size",),
)
SHOWN = {"evaluate": EVALUATING, "predict": PREDICTING}  # names of options; else all of ours
MORE = "The options of transformers' TrainingArguments work, too: `%(prog)s --help_all` lists them."
MORE_OF_TRAINING = "`%(prog)s --help_all` lists the options of training, too."


class OptionParser(HfArgumentParser):
    """An HfArgumentParser that raises errors of one line instead of printing hundreds of lines of usage."""

    def error(self, message: str) -> NoReturn:
        """Raises `ValueError` with the message."""
        raise ValueError(without_tokens(" ".join(message.split()))[:LONGEST_MESSAGE])


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Each option under one name, with its default if it has one."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        text = action.help or ""
        is_told = action.default in (None, False, "", argparse.SUPPRESS) or "Default:" in text or "(default)" in text
        return text if is_told else f"{text} Default: %(default)s."

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings:
            return super()._format_action_invocation(action)
        values = "" if action.nargs == 0 else f" {self._format_args(action, 'VALUE')}"
        return f"{action.option_strings[0]}{values}"


def answer_help(words: Sequence[str] | None = None, prog: str = PROGRAM, command: str = "train") -> None:
    """
    Prints the help and exits if the options ask for it.

    Args:
        words: the words of the command line; `None` for those of this process.
        prog: the command's name.
        command: a key of `DESCRIPTIONS`.
    """
    words = sys.argv[1:] if words is None else words
    if set(HELP_ALL) & set(words):
        from sts_regression.training.training_arguments import OPTION_GROUPS

        make_help(OPTION_GROUPS, prog, DESCRIPTIONS[command]).print_help()
    elif set(HELP) & set(words):
        shown = SHOWN.get(command)
        parser = make_help(
            *((ModelArguments, DataArguments, TrainingOptions), prog, DESCRIPTIONS[command]),
            epilog=MORE if shown is None else MORE_OF_TRAINING,
        )
        if shown is not None:
            _show_only(parser, shown)
        parser.print_help()
    else:
        return
    sys.exit(0)


def _show_only(parser: OptionParser, names: Sequence[str]) -> None:
    """Hides the other options of a command that does not train."""
    for action in parser._actions:
        if action.dest not in names:
            action.help = argparse.SUPPRESS
    for group in parser._action_groups:
        if group.title == TrainingOptions._argument_group_name:
            group.title = "run"


def check_inputs(words: Sequence[str] | None = None, prog: str = PROGRAM) -> None:
    """
    Ends the process with an error of one line for a value that an option of ours does not take, a missing file or
    model, and a Hub that does not answer.

    This saves the seconds that torch takes to load. The command itself checks the files of recipes.

    Args:
        words: the words of the command line; `None` for those of this process.
        prog: the command's name.
    """
    words = sys.argv[1:] if words is None else words
    is_shown_whole = bool(os.environ.get("STS_REGRESSION_TRACEBACK"))
    if is_shown_whole or int(os.environ.get("RANK", "0")) > 0 or any(word.endswith(RECIPE_SUFFIXES) for word in words):
        return
    groups: list[Any] = [ModelArguments, DataArguments, TrainingOptions]
    parser = OptionParser(groups, add_help=False, allow_abbrev=False)
    try:
        options, _ = parser.parse_known_args(words)  # the rest are options of transformers, or unknown
        check_files(options)
        if options.model_name_or_path is not None:
            check_model(options.model_name_or_path, options.model_revision)
    except ValueError as error:
        sys.exit(f"{prog}: error: {without_tokens(str(error))}")


def prepare_process() -> None:
    """
    Sets up memory, the environment variables that torch reads on import, and the handlers of signals.

    Libraries are to be loaded between this and [`collect_garbage`].
    """
    gc.disable()  # the thousands of modules leave little garbage, and to look for it takes a sixth of the time
    keep_freed_memory()
    # Otherwise each of several processes warns about its setup by transformers.
    if not any(word.startswith("--verbose") for word in sys.argv):
        os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    # Beside other programs, a thread that waits must not take the core of the one that it waits for.
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", TURNS_OF_WAITING)
    listen()


def collect_garbage() -> None:
    """Collects garbage from now on, but not among the libraries' objects, which stay to the end."""
    gc.freeze()
    gc.enable()


def keep_freed_memory() -> None:
    """
    Makes glibc keep freed memory for the next request instead of returning it to the system.

    Training on a CPU allocates the gradients of large embeddings in every step. A page that the system gives anew
    costs more than the arithmetic on it. Without glibc, nothing changes.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # macOS, musl, Windows
        return
    for parameter, value in MALLOC_OPTIONS:
        mallopt(parameter, value)


def make_help(groups: Sequence[Any], prog: str, description: str, epilog: str | None = None) -> OptionParser:
    """A parser that prints the help of these groups of options, each in its positive form."""
    parser = OptionParser(
        list(groups),
        prog=prog,
        usage=USAGE,
        description=description,
        epilog=epilog,
        formatter_class=_HelpFormatter,
        allow_abbrev=False,
    )
    for action in parser._actions:
        if isinstance(action, argparse._StoreFalseAction):  # with the text of its opposite
            action.help = argparse.SUPPRESS
    return parser
