"""The folder of a run: checks before it is used, the records in it, and its cleaning when a run is replaced."""

import json
import logging
import shutil
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from transformers import TrainingArguments
from transformers.trainer import TRAINER_STATE_NAME

from sts_regression.basics.files import check_folder, files_of_others, is_same_place
from sts_regression.basics.seals import broken_file
from sts_regression.basics.tables import read_record, write_json
from sts_regression.evaluation.sts_evaluation import SCORES_FILE, TEST_SCORES_FILE, read_scores, read_test_scores
from sts_regression.evaluation.sts_report import REPORT_STEM
from sts_regression.models.sentence_transformers_files import CONFIG_FILE, check_encoder_folder, is_config_of_ours
from sts_regression.training.checkpoints import checkpoints, delete_checkpoint, is_whole
from sts_regression.training.lora import delete_adapter

logger = logging.getLogger(__name__)

RUN_FILE = "run.json"  # written at the end of a run
CARD_FILE = "README.md"  # written after run.json, plots and report, as the last file of a training run
CARD_TAG = "sts-regression"  # a tag in the card, which distinguishes it from any other README.md
PICTURES = ("loss_curve.png", "scores.png", "sts_tasks.png")
REPORT_PAGE = "report.html"  # quotes pairs, and is never published
INNER_SCORES_FILE = "development_scores.npz"  # the scores that an inner run leaves beside its record
INNER_WEIGHTS_FILE = "weights.safetensors"  # the weights that the first training of `refit` leaves for the second
OPTIONS_FILE = "options.json"  # written when training begins
INPUT_TITLES = {
    "train": "training pairs",
    "validation": "development pairs",
    "test": "test pairs",
    "model": "weights of the model that it starts from",
}
WEIGHT_PATTERNS = ("checkpoint-*", "*.safetensors")
# A run may be resumed with other values of these options, which do not change its result.
FREE_OPTIONS = {
    "output_dir",
    "overwrite_output_dir",
    "resume_from_checkpoint",
    "disable_tqdm",
    "cpu_threads",
    "report_to",
    "verbose",
    *("push_to_hub", "hub_model_id", "hub_private_repo", "hub_revision", "overwrite_repository"),
    *("license", "language"),
    "follow",  # an option of earlier versions: it chose between two forms of a recipe, whose options are recorded, too
}
LENGTH_OPTIONS = {"num_train_epochs", "max_steps"}  # a run may be resumed in another folder and train for longer


def check_output_dir(
    training_args: TrainingArguments,
    options: dict[str, Any],
    model_name_or_path: str | None = None,
    inputs: Collection[str | Path] = (),
    *,
    outer: Path | None = None,
) -> None:
    """
    Refuses a folder that cannot be used for a run.

    A folder with a trained model may be replaced, or resumed with the same options. In another folder, a resumed run
    may train for longer. A run may be resumed only from a complete checkpoint. Files of others are replaced only by
    files of the same names, and only if told to.

    Args:
        training_args: options that name the folder, and whether to replace or resume its run.
        options: options of the run that differ from their defaults, see `describe_arguments`.
        model_name_or_path: the model that the run begins with, which it must not overwrite.
        inputs: the files of pairs that it reads, likewise.
        outer: the folder of the run that this one is a part of, which messages then name.

    Raises:
        ValueError: for such a folder; the message names it and the remedies.
    """
    folder = Path(training_args.output_dir or "")
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"`output_dir` {str(folder)!r} is a file. Name a folder.")
    writes = training_args.do_train or training_args.do_eval
    if writes:
        _check_inputs(folder, model_name_or_path, inputs)
    if training_args.do_train:
        check_encoder_folder(folder, "output_dir", model_name_or_path)
    named = training_args.resume_from_checkpoint
    if named is not None and not resumes_last(training_args) and not is_whole(Path(named)):
        raise ValueError(
            f"`resume_from_checkpoint` {named!r} holds no complete checkpoint. Name another one, or give `true` for "
            "the last one in `output_dir`."
        )
    run = continued_run(training_args) or folder
    is_resumed = named is not None and (resumes_last(training_args) or is_same_place(run, folder))
    overwrites = getattr(training_args, "overwrite_output_dir", False)
    if named is not None and not is_resumed:
        _check_longer_run(run, named, options)
    elif is_resumed and overwrites:
        raise ValueError(
            "`overwrite_output_dir` deletes the checkpoint that `--resume_from_checkpoint` names. Leave one of "
            "them out, or resume in another `--output_dir`."
        )
    elif is_resumed:
        check_same_options(folder, options, outer)
    if overwrites:
        return
    if not is_resumed and (holds_weights(folder) or (folder / INNER_SCORES_FILE).is_file()):
        raise ValueError(
            f"`output_dir` {str(outer or folder)!r} already holds a run. Choose another with `--output_dir`, replace "
            "it with `--overwrite_output_dir`, or resume it with `--resume_from_checkpoint true`."
        )
    if writes:
        check_is_run(folder, "--overwrite_output_dir", inputs=inputs)


def _check_longer_run(run: Path, named: str, options: dict[str, Any]) -> None:
    """Raises `ValueError` if a run resumes another from a named checkpoint, with other options than its length."""
    if recorded_options(run) is None:
        raise ValueError(
            f"`resume_from_checkpoint` {named!r} lies in a folder without {OPTIONS_FILE}, the options of its run. "
            "Name a checkpoint in its run's folder, or start from the weights with `--model_name_or_path`."
        )
    if listed := _differing_options(run, options, FREE_OPTIONS | LENGTH_OPTIONS):
        raise ValueError(
            f"`resume_from_checkpoint` {named!r} belongs to a run with other options: {listed}. Give the same "
            "ones, or start from the weights with `--model_name_or_path`."
        )


def _check_inputs(folder: Path, model_name_or_path: str | None, inputs: Iterable[str | Path]) -> None:
    """Raises `ValueError` for the folder of a run that would replace its model or its pairs."""
    if model_name_or_path is not None:
        if any(is_same_place(model_name_or_path, place) for place in (folder, *checkpoints(folder))):
            raise ValueError(f"`output_dir` {str(folder)!r} is, or holds, the model that is read. Name another one.")
    tables = [folder / name for name in (SCORES_FILE, TEST_SCORES_FILE, f"{REPORT_STEM}.csv")]
    if read := [path.name for path in tables for other in inputs if is_same_place(path, other)]:
        raise ValueError(f"`output_dir` {str(folder)!r} holds {read[0]}, one of the files to read. Name another one.")


def check_is_run(
    folder: Path, remedy: str | None = None, option: str = "output_dir", inputs: Iterable[str | Path] = ()
) -> None:
    """
    Raises `ValueError` for a folder with files that neither a run nor a grader wrote, see [`check_folder`].

    The run's own `inputs` may lie there: none of its files has their names.
    """
    others = files_of_others(folder, _holds_run)
    others = (path for path in others if not any(is_same_place(path, read) for read in inputs))
    check_folder(option, folder, others, remedy)


def _holds_run(folder: Path) -> bool:
    """Whether a folder holds a run, begun or finished, or a model that was saved."""
    begun, ended = (_record(folder / name) for name in (OPTIONS_FILE, RUN_FILE))
    if is_config_of_ours(folder / CONFIG_FILE) or begun.keys() & {"inputs", "do_train"} or "seconds" in ended:
        return True
    with suppress(ValueError):  # an evaluation that was interrupted
        return read_test_scores(folder) is not None or len(read_scores(folder)) > 0
    return False


def _record(path: Path) -> dict[str, Any]:
    """A record that may be missing or another program's."""
    with suppress(ValueError):
        return read_record(path)
    return {}


def check_same_options(folder: Path, options: dict[str, Any], outer: Path | None = None) -> None:
    """
    Refuses a folder whose run has other options, or weights without recorded options.

    Args:
        folder: the folder of the run.
        options: options of the run that differ from their defaults.
        outer: see [`check_output_dir`].

    Raises:
        ValueError: for such a folder; the message names the options and both values.
    """
    if recorded_options(folder) is None and holds_weights(folder):
        raise ValueError(
            f"`output_dir` {str(folder)!r} holds weights, but no {OPTIONS_FILE} with the options of their training. "
            "Start from them in another `--output_dir` with `--model_name_or_path`."
        )
    if listed := _differing_options(folder, options, FREE_OPTIONS):
        raise ValueError(
            f"`output_dir` {str(outer or folder)!r} holds a run with other options: {listed}. Give the same ones, "
            "choose another `--output_dir`, or replace the run with `--overwrite_output_dir`."
        )


def _differing_options(folder: Path, options: dict[str, Any], free: Collection[str]) -> str:
    """The options that differ from those of a folder's run, with both values; empty if none do."""
    recorded = recorded_options(folder)
    if recorded is None:
        return ""
    recorded, options = _within_folder(recorded), _within_folder(json.loads(json.dumps(options)))  # as it is read back
    names = sorted((recorded.keys() | options.keys()) - set(free))
    return "; ".join(
        f"`{name}` {_shown(recorded, name)}, now {_shown(options, name)}"
        for name in names
        if recorded.get(name) != options.get(name)
    )


def _within_folder(options: dict[str, Any]) -> dict[str, Any]:
    """Options with paths within the run's folder, such as earlier stages, made relative: the folder may have moved."""
    own = f"{options.get('output_dir')}/"
    return {name: value.removeprefix(own) if isinstance(value, str) else value for name, value in options.items()}


def _shown(options: dict[str, Any], name: str) -> str:
    return repr(options[name]) if name in options else "the default"


def check_same_inputs(training_args: TrainingArguments, inputs: Mapping[str, Any], outer: Path | None = None) -> None:
    """
    Refuses to resume a run with other pairs or another model than it began with.

    Args:
        training_args: options that name the run to resume, if any.
        inputs: digests of pairs and model, see [`identify_inputs`].
        outer: see [`check_output_dir`].

    Raises:
        ValueError: for other inputs; the message names them.
    """
    if (folder := continued_run(training_args)) is None:
        return
    recorded, before = recorded_inputs(folder), (recorded_options(folder) or {}).get("max_steps", -1)
    changed = [name for name in INPUT_TITLES if name in recorded and recorded[name] != inputs.get(name)]
    is_same_file = inputs.get("files") == recorded.get("files")
    if "train" in changed and is_same_file and before != training_args.max_steps:
        raise ValueError(
            f"`max_steps` {training_args.max_steps} uses other random pairs of the many that there are than {before} "
            "did. Keep it, or start another run from the checkpoint with `--model_name_or_path`."
        )
    if changed:
        shown = outer if outer is not None and resumes_last(training_args) else folder
        raise ValueError(
            f"`resume_from_checkpoint`: {str(shown)!r} holds a run that began with other "
            f"{' and '.join(map(INPUT_TITLES.__getitem__, changed))}. "
            "Give the same ones, choose another `--output_dir`, or replace the run with "
            "`--overwrite_output_dir`."
        )


def recorded_inputs(folder: Path) -> dict[str, Any]:
    """The inputs of a folder's run, as [`begin_run`] recorded them; empty for runs of earlier versions."""
    return _recorded_beginning(folder).get("inputs", {})


def files_trained_on(folder: Path) -> set[str]:
    """SHA-256 of the files of training pairs of a folder's run; empty if there is no run, or none was recorded."""
    noted = _record(folder / OPTIONS_FILE)  # of a model that may be another program's
    options, digests = noted.get("options", {}), noted.get("inputs", {}).get("files", {})
    names = options.get("train_file") or []
    within = [str(Path(options["sts_data"]) / name) for name in names] if options.get("sts_data") else []
    return {digests[path] for path in (*names, *within) if path in digests}


def recorded_segments(folder: Path) -> list[dict[str, Any]]:
    """The commands that trained the run of a folder, in order, each with `from_step` and its environment."""
    return _recorded_beginning(folder).get("segments", [])


def _recorded_beginning(folder: Path) -> dict[str, Any]:
    """`options`, `inputs` and `segments` of a run; for runs of earlier versions, only the options."""
    path = folder / OPTIONS_FILE
    noted = read_record(path) if path.is_file() else {}
    return noted if "options" in noted or not noted else {"options": noted}


def recorded_options(folder: Path) -> dict[str, Any] | None:
    """The options that the run of a folder began with; `None` if there is no run."""
    if noted := _recorded_beginning(folder):
        return noted["options"]
    if (path := folder / RUN_FILE).is_file():  # a run that trained nothing
        return read_record(path).get("arguments")
    return None


def begin_run(
    training_args: TrainingArguments, options: dict[str, Any], inputs: Mapping[str, Any] | None = None
) -> None:
    """
    Records options and inputs of a run in its folder when training begins or resumes, and deletes its `run.json`.

    With `overwrite_output_dir`, checkpoints, adapter and results of the replaced run are deleted. Its weights stay
    until there are new ones. Before a run resumes, checkpoints that were left half written or half deleted are
    deleted.

    Args:
        training_args: options that name the folder.
        options: options that differ from their defaults.
        inputs: see [`identify_inputs`]; `None` for a later stage, which records its own when it begins.
    """
    folder = Path(training_args.output_dir or "")
    (folder / RUN_FILE).unlink(missing_ok=True)
    overwrites = getattr(training_args, "overwrite_output_dir", False)
    for checkpoint in checkpoints(folder) if overwrites or resumes_last(training_args) else []:
        if overwrites or not is_whole(checkpoint):
            delete_checkpoint(checkpoint)
            logger.info(f"{checkpoint} is deleted" + ("" if overwrites else ": it is incomplete"))
    if overwrites:
        delete_results(folder)
        delete_adapter(folder)
    continued = None if overwrites else continued_run(training_args)
    segments = [] if continued is None else recorded_segments(continued)
    noted = {"options": options, "inputs": dict(inputs or {}), "segments": segments}
    write_json(noted, folder / OPTIONS_FILE)


def delete_results(folder: Path) -> None:
    """Deletes record, card, report, plots and scores of a run, which might be taken for those of another model."""
    names = [RUN_FILE, REPORT_PAGE, *PICTURES, SCORES_FILE, TEST_SCORES_FILE]
    names += [f"{REPORT_STEM}.{suffix}" for suffix in ("json", "csv", "md")]
    if holds_card(folder):
        names.append(CARD_FILE)
    for name in names:
        (folder / name).unlink(missing_ok=True)


def replace_results(folder: Path, source: Path | None) -> None:
    """Deletes the results of the run of a folder whose model was replaced; copies those of the model from `source`."""
    delete_results(folder)
    (folder / OPTIONS_FILE).unlink(missing_ok=True)
    for name in (RUN_FILE, REPORT_PAGE):
        if source is not None and (source / name).is_file():
            shutil.copyfile(source / name, folder / name)


def note_segment(folder: Path, checkpoint: str | None, environment: Mapping[str, Any]) -> None:
    """
    Records that a command trains a run from a step on, and logs differences that may change the last bits of weights.

    Args:
        folder: the folder of the run, see [`begin_run`].
        checkpoint: the checkpoint from which the run resumes, if any.
        environment: see [`describe_environment`].
    """
    noted = _recorded_beginning(folder)
    before = noted["segments"][-1] if noted["segments"] else {}
    listed = [
        f"{name} {before[name]}, now {environment[name]}"
        for name in environment
        if name not in ("commit", "uncommitted_changes") and name in before and before[name] != environment[name]
    ]
    if listed:
        logger.info(f"resumed in another environment: {'; '.join(listed)}")
    step = 0 if checkpoint is None else read_record(Path(checkpoint) / TRAINER_STATE_NAME)["global_step"]
    noted["segments"].append({"from_step": step, **environment})
    write_json(noted, folder / OPTIONS_FILE)


def checkpoint_to_resume(training_args: TrainingArguments) -> str | None:
    """
    The checkpoint for `--resume_from_checkpoint`: the named folder, or for `true` the run's last complete one, if any.

    Raises:
        ValueError: for a named checkpoint that is damaged, and for one of another number of processes, since its
            steps held other pairs.
    """
    checkpoint = training_args.resume_from_checkpoint
    if resumes_last(training_args):
        whole = filter(is_whole, reversed(checkpoints(Path(training_args.output_dir or ""))))
        checkpoint = str(last) if (last := next(filter(_is_unbroken, whole), None)) else None
    elif checkpoint is not None and (broken := broken_file(Path(checkpoint))):
        raise ValueError(
            f"`resume_from_checkpoint`: {checkpoint}/{broken} is damaged or missing. Name an earlier checkpoint, or "
            "give `true` for the last complete one in `output_dir`."
        )
    num_processes = max(1, len(list(Path(checkpoint).glob("rng_state_*.pth")))) if checkpoint else None
    if num_processes not in (None, training_args.world_size):
        raise ValueError(
            f"`resume_from_checkpoint`: {checkpoint!r} was written by {num_processes} processes, but there are "
            f"{training_args.world_size} now. Launch {num_processes}, or start over with `--overwrite_output_dir`."
        )
    return checkpoint


def _is_unbroken(checkpoint: Path) -> bool:
    broken = broken_file(checkpoint)
    if broken is not None:
        logger.warning(f"{checkpoint / broken} is damaged or missing: using the previous checkpoint")
    return broken is None


def is_finished(training_args: TrainingArguments) -> bool:
    """Whether a training run is resumed that is already finished."""
    folder = Path(training_args.output_dir or "")
    return (
        training_args.do_train
        and resumes_last(training_args)
        and (folder / RUN_FILE).is_file()
        and (folder / CARD_FILE).is_file()
        and next(folder.glob("*.safetensors"), None) is not None
    )


def continued_run(training_args: TrainingArguments) -> Path | None:
    """The folder of the run to resume, this one or another; `None` for a new run."""
    if resumes_last(training_args):
        return Path(training_args.output_dir or "")
    named = training_args.resume_from_checkpoint
    return None if named is None else Path(named).resolve().parent


def resumes_last(training_args: TrainingArguments) -> bool:
    """Whether to resume the run of the output folder from its last checkpoint."""
    return (training_args.resume_from_checkpoint or "").lower() == "true"


def holds_card(folder: Path) -> bool:
    """Whether the README.md of a folder is the card of a run."""
    path = folder / CARD_FILE
    return path.is_file() and f"\n- {CARD_TAG}\n" in path.read_text(encoding="utf-8", errors="replace")


def holds_weights(folder: Path) -> bool:
    """Whether a folder holds model weights or checkpoints of Trainer."""
    return bool(checkpoints(folder)) or next(folder.glob("*.safetensors"), None) is not None
