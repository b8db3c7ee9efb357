"""The commands of an installed package: `sts-regression COMMAND …`, or `python -m sts_regression COMMAND …`."""

import importlib
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager

from sts_regression.basics.hub_tokens import without_tokens
from sts_regression.command.command_help import (
    RECIPE_SUFFIXES,
    answer_help,
    check_inputs,
    collect_garbage,
    prepare_process,
)

INSTALLED_PROGRAM = "sts-regression"
# For each command: the module whose `main` takes its arguments, arguments put in front of them, and its purpose.
COMMANDS = {
    "train": ("run_sts", (), "train on graded pairs; by default, on the bundled ones"),
    "evaluate": ("run_sts", ("--do_eval=true",), "score a model on labelled pairs or on the STS tasks"),
    "predict": ("run_sts", ("--do_predict=true",), "score new pairs, with grades"),
    "search": ("search.exact", (), "find the most similar texts of a corpus for each query"),
    "export": ("serving.export", (), "write a checkpoint as ONNX"),
    "publish": ("hub.publish", (), "publish a finished run on the Hub"),
    "sweep": ("sweep.runs", (), "run recipes × settings × seeds, and summarise them"),
    "compare": ("evaluation.compare", (), "test the difference between two evaluations"),
    "leakage": ("data.leakage", (), "find training pairs that are test pairs"),
    "demo": ("serving.demo", (), "serve a web page that grades pairs"),
}


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the command that the first word names. Options or a recipe without a command mean `train`."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] in ("-h", "--help"):
        width = max(map(len, COMMANDS))
        lines = [f"  {name:<{width}}  {purpose}" for name, (_, _, purpose) in COMMANDS.items()]
        sys.stdout.write("usage: sts-regression COMMAND [--help] […]\n\n" + "\n".join(lines) + "\n")
        return
    prog, name = INSTALLED_PROGRAM, "train"
    if words[0] in COMMANDS:
        name = words.pop(0)
        prog += f" {name}"
    elif not (words[0].startswith("-") or words[0].endswith(RECIPE_SUFFIXES)):
        word = without_tokens(words[0])
        sys.exit(f"{prog}: error: unknown command {word!r:.80}. Known commands: {', '.join(COMMANDS)}.")
    module, given, _ = COMMANDS[name]
    if module == "run_sts":
        answer_help(words, prog, name)
        check_inputs(words, prog)
    prepare_process()
    command = importlib.import_module(f"sts_regression.{module}").main
    collect_garbage()
    first_option = 1 if words and words[0].endswith(RECIPE_SUFFIXES) else 0  # a recipe comes before all options
    words[first_option:first_option] = given
    if module == "run_sts":
        command(words, prog)
    else:
        with _quiet():  # run_sts has an option `--verbose`
            command(words)


def _quiet() -> AbstractContextManager[None]:
    from sts_regression.basics.quiet import quiet_libraries  # loads transformers

    return quiet_libraries()


if __name__ == "__main__":
    main()
