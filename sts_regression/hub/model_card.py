"""Model cards of finished runs, with metadata for the Hub, written from `run.json`.

No number is typed by hand: a record that lacks a number is an error. Names may come from untrusted files and options.
They enter the metadata through a YAML writer, and the text as code spans, in which Markdown has no effect.
"""

import json
import logging
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
import yaml
from huggingface_hub import EvalResult, ModelCard, ModelCardData

from sts_regression.basics.files import replacing
from sts_regression.basics.hub_names import check_language, check_license
from sts_regression.basics.hub_tokens import without_tokens
from sts_regression.basics.tables import SPLIT_TITLES, read_record, seconds_of_all
from sts_regression.configuration_sts_regression import GRADE_LOSSES, PIPELINE_TASK
from sts_regression.data.sources import held_out_of
from sts_regression.evaluation.verdict import Verdict, scored_by
from sts_regression.grading.grading import Grading
from sts_regression.grading.in_checkpoints import in_words
from sts_regression.hub.card_tables import (
    Record,
    average_of_tasks,
    code,
    correlations_table,
    coverage_table,
    data_table,
    has_head,
    label_scale,
    limits,
    listed_measures,
    measures_table,
    options_table,
    scored_pairs,
    scores_of_tasks,
    selection,
    tasks_table,
    thresholds_table,
    without_rare_hits,
)
from sts_regression.hub.public_record import public_record
from sts_regression.training.run_folder import CARD_FILE, CARD_TAG, PICTURES, RUN_FILE, holds_card

logger = logging.getLogger(__name__)

TEMPLATE = Path(__file__).parent / "card_template.md"
PIPELINE_TAGS = ("sentence-similarity", "feature-extraction", "text-classification", "text-ranking")
TASK_TYPE, TASK_NAME = "semantic-similarity", "Semantic Similarity"  # as in sentence-transformers
NO_HUB_DATASET = "unknown"  # as in sentence-transformers
EXAMPLE = '("One text.", "Another text.")'  # a card never quotes users' pairs
LONGEST_EXAMPLE = 60  # characters of a user's text in an example
BUNDLED = "bundled "  # prefix of the sources of the quick start's pairs, which are English
# Entries of a record that a card needs.
REQUIRED = (
    *("arguments", "seed", "seconds", "peak_memory_bytes.process"),
    *("environment.device", "environment.threads", "environment.torch", "environment.transformers"),
    *("model.parameters", "model.config.encoder_type", "model.config.loss_type", "model.config.score_function"),
    *("model.config.pair_features", "model.config.label_values", "data.train.pairs", "training.steps"),
    *("results.before training", "results.after training"),
)


class Markdown(str):
    """Text that is Markdown already; any other text becomes a code span."""


def write_model_card(folder: Path) -> None:
    """Writes the card of a finished run into its folder, as `README.md`, unless that file is not a model card."""
    path = folder / CARD_FILE
    if path.exists() and not holds_card(folder):
        logger.warning(f"{path} is not a model card and stays as it is; the card of this run is not written.")
        return
    with replacing(path) as file:
        file.write(model_card_of(folder).encode())


def model_card_of(
    folder: Path, name: str | None = None, license: str | None = None, language: Sequence[str] | None = None
) -> str:
    """The card of the finished run in a folder, with its plots. The default name is the folder's."""
    record = read_record(folder / RUN_FILE)
    pictures = [picture for picture in PICTURES if (folder / picture).is_file()]
    return model_card(record, name or folder.resolve().name, pictures, license, language)


def model_card(
    record: Record,
    name: str,
    pictures: Sequence[str] = (),
    license: str | None = None,
    language: Sequence[str] | None = None,
    untouched: Record | None = None,
) -> str:
    """
    Writes a model card.

    Args:
        record: the `run.json` of a finished run.
        name: the name with which the model is loaded: a Hub id, or the name of its folder.
        pictures: the files among [`PICTURES`] that lie beside the card.
        license: identifier of the Hub, in place of the licence in the record's options. If neither is given, the card
            states none.
        language: codes of the pairs' languages, in place of those in the record's options. The bundled pairs are
            English.
        untouched: the `run.json` of an evaluation of the untouched encoder on the STS tasks.

    Raises:
        ValueError: for an incomplete record, for an unknown licence or language, and if `untouched` is of another
            model or other pairs; the message names it.
    """
    missing = [place for place in REQUIRED if _lookup(record, place) is None]
    if missing:
        raise ValueError(
            f"the record of the run lacks {', '.join(f'`{place}`' for place in missing)}, and a model card "
            "needs them. Give the `run.json` of a finished run, or train again."
        )
    if untouched is not None:
        _check_untouched(record, untouched)
    public = public_record(record)
    trainings = [*public.get("stages", []), public]
    if _is_measured_from_a_stage(record):
        public |= {"results": from_the_start(trainings), "verdict": None}
    public["results"] = without_rare_hits(public["results"], public["model"]["config"])
    environment, model = public["environment"], public["model"]
    config, trains_head = model["config"], has_head(public["results"])
    base_model = f"[{code(model['base_model'])}](https://huggingface.co/{model['base_model']})"
    memory = max(training["peak_memory_bytes"]["process"] for training in trainings)
    commit = environment.get("commit") or "unknown"
    written = _template().render(
        metadata=Markdown(
            metadata(
                public,
                name,
                license or record["arguments"].get("license"),
                language or record["arguments"].get("language"),
            ).to_yaml()
        ),
        name=name,
        quoted_name=Markdown(json.dumps(name, ensure_ascii=False)),
        config=config,
        is_cross_encoder=config["encoder_type"] == "cross-encoder",
        has_head=trains_head,
        is_distribution=config["loss_type"] in GRADE_LOSSES,
        search_score=Markdown("head" if trains_head else "cosine"),
        label_scale=Markdown(label_scale(config)),
        pair_features=" ".join(config["pair_features"]),
        parameters=Markdown(f"{model['parameters']:,}"),
        base_model=Markdown(base_model if model["base_model"] else "an encoder without a Hub id"),
        usage_example=Markdown(textwrap.dedent(usage_example(name, trains_head))),
        selection=Markdown(selection(public)),
        correlations_table=Markdown(correlations_table(public["results"])),
        measures_table=Markdown(measures_table(listed_measures(public["results"]["after training"]))),
        verdict=Markdown(str(Verdict.from_dict(public["verdict"]))) if public.get("verdict") else None,
        scored_by=Markdown(scored_by(public)),
        grades=Markdown(_grades_in_words(public["grading"])) if public.get("grading") else None,
        is_cross_validated=bool((public.get("grading") or {}).get("report")),
        coverage_table=Markdown(coverage_table(public.get("grading"), config.get("label_names"))),
        thresholds_table=Markdown(thresholds_table(public.get("grading"), config.get("label_names"))),
        average_of_tasks=Markdown(average_of_tasks(public["sts_tasks"], untouched and untouched["sts_tasks"]))
        if "sts_tasks" in public
        else None,
        tasks_table=Markdown(tasks_table(public["sts_tasks"])) if "sts_tasks" in public else None,
        pictures=pictures,
        data_table=Markdown(data_table(trainings)),
        scored_pairs=Markdown(scored_pairs(public["data"])),
        options_table=Markdown(options_table(trainings)),
        limits=[Markdown(limit) for limit in limits(public, trainings)],
        steps=Markdown(f"{sum(training['training']['steps'] for training in trainings):,}"),
        seed=public["seed"],
        seconds=Markdown(f"{seconds_of_all(public):,.0f}"),
        has_license=bool(license or record["arguments"].get("license")),
        memory=Markdown(f"{memory / 2**30:.1f} GiB"),
        environment=environment,
        commit=Markdown(commit if commit.isalnum() else "unknown"),
    )
    text = without_tokens(written)
    check_card(text)
    return text


def _grades_in_words(grading: Record) -> str:
    source = grading.get("source")
    return in_words(Grading.from_dict({**grading, "source": None if source is None else code(source)}))


def _is_measured_from_a_stage(record: Record) -> bool:
    """
    Whether "before training" means before the last stage, and the verdict is on this stage.

    Earlier versions recorded the stage before as the base model.
    """
    folders = [stage["arguments"].get("output_dir") for stage in record.get("stages", [])]
    return record["model"].get("base_model") in folders


def from_the_start(trainings: Sequence[Record]) -> dict[str, Any]:
    """The results of several stages: before the first stage and after the last, on the same pairs."""
    first, last = trainings[0], trainings[-1]
    before = {
        split: measures
        for split, measures in first["results"]["before training"].items()
        if split in last["data"] and first["data"][split]["sha256"] == last["data"][split]["sha256"]
    }
    return {"before training": before, "after training": last["results"]["after training"]}


def _check_untouched(record: Record, untouched: Record) -> None:
    base_model, tasks = untouched["model"]["base_model"], record.get("sts_tasks", {}).get("tasks", {})
    is_same = all(untouched["data"][task]["sha256"] == record["data"][task]["sha256"] for task in tasks)
    if not tasks or not is_same or base_model != public_record(record)["model"]["base_model"]:
        raise ValueError(
            "`untouched` must be an evaluation of the untouched encoder on the same STS tasks, but is one of "
            f"{base_model!r}. Evaluate the encoder that the run began with, with the same `--sts_data` and "
            "`--sick_split`."
        )


def _lookup(record: Record, place: str) -> Any:
    value: Any = record
    for key in place.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _template() -> jinja2.Template:
    def show(value: object) -> object:
        return value if isinstance(value, (Markdown, int)) else code(value)

    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        finalize=show,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - it writes no HTML; `show` makes code spans of text that is not Markdown
    )
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8"))


def metadata(public: Record, name: str, license: str | None, language: Sequence[str] | None) -> ModelCardData:
    """
    The metadata that the Hub reads.

    Args:
        public: see [`public_record`].
        name: name of the model; the index of results has its last part.
        license: licence as an identifier of the Hub, if it is known.
        language: language codes, if they are known.
    """
    config = public["model"]["config"]
    parts = [part for training in (*public.get("stages", []), public) for part in training["data"]["train"]["parts"]]
    if language is None and all(part["source"].startswith(BUNDLED) for part in parts):
        language = ["en"]
    datasets = dict.fromkeys(part["hub_dataset"] for part in parts if part["hub_dataset"])
    kind = "cross-encoder" if config["encoder_type"] == "cross-encoder" else "sentence-embeddings"
    return ModelCardData(
        language=None if language is None else list(language),
        license=license,
        library_name="transformers",
        pipeline_tag=PIPELINE_TAGS[0],
        base_model=public["model"]["base_model"],
        datasets=list(datasets) or None,
        metrics=["spearmanr", "pearsonr"],
        tags=[
            CARD_TAG,
            "semantic-textual-similarity",
            "sentence-transformers",
            kind,
            f"loss:{config['loss_type']}",
        ],
        model_name=name.rsplit("/", maxsplit=1)[-1],
        eval_results=list(_eval_results(public)),
    )


def _eval_results(public: Record) -> Iterator[EvalResult]:
    """The measures of the development and test pairs, and Spearman's correlation on the STS tasks."""
    for split, measures in listed_measures(public["results"]["after training"]).items():
        sources = " + ".join(map(_source_in_words, public["data"][split]["parts"]))
        for name, value in measures.items():
            yield _eval_result(public, split, f"{sources} ({SPLIT_TITLES[split]})", split, name, value)
    if "sts_tasks" not in public:
        return
    for task, measures in public["sts_tasks"]["tasks"].items():
        for score in scores_of_tasks(public["sts_tasks"]):
            yield _eval_result(public, task, task, "test", f"spearman_{score}", measures[score]["all"]["spearman"])


def _source_in_words(part: Record) -> str:
    whole = held_out_of(part["source"])
    return part["source"] if whole is None else f"{part['pairs']:,} pairs held out of {whole}"


def _eval_result(public: Record, data: str, title: str, split: str, measure: str, value: float) -> EvalResult:
    hub_sets = {part["hub_dataset"] for part in public["data"][data]["parts"]}
    return EvalResult(
        task_type=TASK_TYPE,
        task_name=TASK_NAME,
        dataset_type=(hub_sets.pop() if len(hub_sets) == 1 else None) or NO_HUB_DATASET,
        dataset_name=title,
        dataset_config=data,
        dataset_split=split,
        metric_type=measure,
        metric_name=measure.replace("_", " ").capitalize(),
        metric_value=value,
    )


def check_card(text: str) -> None:
    """
    Refuses a card with metadata that the Hub would refuse, as far as this is known without asking the Hub.

    Raises:
        ValueError: for such a card; the message names the entry and the remedy.
    """
    try:
        data = ModelCard(text).data
    except (ValueError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(
            f"{CARD_FILE}: its metadata cannot be read ({reason}). Correct the block at its top."
        ) from error
    if not data.to_dict():
        raise ValueError(
            f"{CARD_FILE} has no metadata. Put a YAML block between two lines `---` at its "
            "top, or delete it for a new card."
        )
    if (tag := data.get("pipeline_tag")) not in PIPELINE_TAGS:
        raise ValueError(f"{CARD_FILE}: `pipeline_tag` must be one of {', '.join(PIPELINE_TAGS)}, but is {tag!r}.")
    check_license(data.get("license"))
    language = data.get("language")
    check_language([language] if isinstance(language, str) else language)


def usage_example(checkpoint: str, head_is_trained: bool, pair: tuple[str, str] | None = None) -> str:
    """
    Lines of Python that grade a pair with a checkpoint: by the head, or by the cosine if no head was trained.

    Args:
        checkpoint: a folder or a Hub id.
        head_is_trained: whether the head is trained, so that there is a score.
        pair: the two texts; long ones are shortened. Default: two placeholders.
    """
    shown = "score" if head_is_trained else "cosine"
    example = EXAMPLE if pair is None else repr(tuple(map(_shortened, pair)))
    return f"""\
    from transformers import pipeline

    grade = pipeline("{PIPELINE_TASK}", model={json.dumps(checkpoint, ensure_ascii=False)}, trust_remote_code=True)
    print(round(grade({example})["{shown}"], 2))"""


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    if len(text) <= LONGEST_EXAMPLE:
        return text
    whole_words, space, _ = text[: LONGEST_EXAMPLE - 1].rpartition(" ")
    return f"{whole_words} …" if space else f"{text[: LONGEST_EXAMPLE - 1]}…"
