"""Training, scoring and search in Python: the same code as the command, on pairs in memory."""

import itertools
import logging
import operator
import reprlib
import tempfile
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch.nn.functional as F
from datasets import Dataset
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from sts_regression.basics.files import is_same_place
from sts_regression.basics.hub_names import Repository
from sts_regression.basics.quiet import PACKAGE, level_of, lines_on_screen, quiet_libraries
from sts_regression.basics.seals import seal_model
from sts_regression.basics.tables import read_record
from sts_regression.configuration_sts_regression import HEADLESS_LOSSES
from sts_regression.data.columns import PairColumns
from sts_regression.data.pairs import given_pairs
from sts_regression.data.splits import load_splits
from sts_regression.evaluation.measures import PairScores
from sts_regression.evaluation.split_measures import measure_splits
from sts_regression.evaluation.verdict import Verdict
from sts_regression.hub.publish import publish
from sts_regression.keywords import as_keywords, as_keywords_of_evaluate, as_words, keywords_in_errors
from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.models.encoding import encode_sentences, model_scorer, text_list
from sts_regression.models.loading import DEFAULT_ENCODER, find_model, load_model, prepare_for_scoring
from sts_regression.models.onnx_graphs import check_backend, on_backend
from sts_regression.models.sentence_transformers_files import check_encoder_folder, write_modules
from sts_regression.options.data_arguments import DataArguments
from sts_regression.outcome import reversal_of_scores
from sts_regression.pairs_in_memory import (
    COLUMNS,
    LABELLED,
    UNLABELLED,
    Pairs,
    as_dataset,
    column_names,
    is_one_pair,
    ordered_grades,
)
from sts_regression.pipeline_sts_regression import grades_of
from sts_regression.run_sts import run_stages
from sts_regression.search.exact import describe_hits, top_k
from sts_regression.serving.prediction import score_pairs
from sts_regression.training.run_folder import RUN_FILE, check_is_run, replace_results

logger = logging.getLogger(__name__)

FILE_OPTIONS = {"train_file", "validation_file", "test_file", "dataset_name", "validation_dataset_name"}


class PairGrader:
    """
    An encoder and a head that grades pairs of texts.

    Args:
        name_or_path: Hub id or folder of an encoder or of one of our checkpoints. Default: all-MiniLM-L6-v2 from the
            extra `quickstart`, or else from the Hub.
        revision: branch, tag or commit on the Hub.
        trust_remote_code: whether an encoder's own code from the Hub may run.
        max_seq_length: longest text in tokens. Default: the model's own limit.
        device: for example "cuda". Default: a GPU if there is one, else the CPU. Training uses the CPU if this is
            "cpu"; otherwise Trainer chooses among the devices that CUDA_VISIBLE_DEVICES allows.
        backend: engine that encodes texts: "torch", or "onnx-int8" for 8-bit weights in ONNX Runtime, faster on CPUs;
            scores change slightly, and depend on the texts encoded together. Needs the extra `onnx`. Training always
            uses torch.

    Raises:
        ValueError: if the model does not exist or cannot be loaded, and if `backend` cannot run here.

    Example:
    ```python
    >>> from sts_regression import PairGrader
    >>> grader = PairGrader().fit(frame, grades=["irrelevant", "relevant", "highly relevant"])
    >>> grader.grade([("how do I reset my password", "Changing your password")])
    [{'score': 1.8, 'grade': 'highly relevant', 'cosine': 0.71, 'unreliable': ''}]
    ```
    """

    @keywords_in_errors()
    def __init__(
        self,
        name_or_path: str | Path | None = None,
        *,
        revision: str = "main",
        trust_remote_code: bool = False,
        max_seq_length: int | None = None,
        device: str | None = None,
        backend: str = "torch",
    ) -> None:
        self.folder: Path | None = None  # the folder of the run that trained the model
        self.verdict: Verdict | None  # the comparison with the untouched encoder, if the model's folder records it
        self._scratch: tempfile.TemporaryDirectory[str] | None = None
        self._start: dict[str, Any] = {  # options that name the encoder from which `fit` starts
            "model_name_or_path": None if name_or_path is None else _independent_of_working_folder(str(name_or_path)),
            "model_revision": revision,
            "trust_remote_code": trust_remote_code,
            "max_seq_length": max_seq_length,
        }
        self._columns = PairColumns()  # those that `fit` was given
        self._device, self._backend = device, backend
        self._load(self._start["model_name_or_path"], revision, max_seq_length)

    def _load(self, name_or_path: str | None, revision: str = "main", max_seq_length: int | None = None) -> None:
        with quiet_libraries():
            model, tokenizer = load_model(find_model(name_or_path, revision, self._start["trust_remote_code"]), {})
        prepare_for_scoring(model, tokenizer, max_seq_length, self._device)
        self.name_or_path = name_or_path
        self.verdict = None if name_or_path is None else recorded_verdict(Path(name_or_path))
        self.model: STSRegressionModel = model
        self.tokenizer: PreTrainedTokenizerBase = tokenizer
        check_backend(self._backend, model.device)
        self._converted: STSRegressionModel | None = None

    def __repr__(self) -> str:
        name = self._start["model_name_or_path"] if self._scratch else self.name_or_path
        config = self.model.config
        grades = reprlib.repr(grades_of(config)) if config.head_is_trained else None
        return f"{type(self).__name__}({name or DEFAULT_ENCODER!r}, grades={grades})"

    @property
    def _scoring_model(self) -> STSRegressionModel:
        """The model on its backend, converted when it first scores."""
        if self._converted is None:
            self._converted = on_backend(self.model, self.tokenizer, self._backend)
        return self._converted

    @keywords_in_errors()
    def fit(
        self,
        pairs: Pairs,
        *,
        eval_pairs: Pairs | None = None,
        test_pairs: Pairs | None = None,
        grades: Sequence[str] | None = None,
        output_dir: str | Path | None = None,
        quiet: bool = False,
        **options: Any,
    ) -> "PairGrader":
        """
        Trains on graded pairs, as `run_sts.py` does, from the model that this object was made with.

        A second call starts from there, too. To continue an earlier call, make another object from its `output_dir`;
        development pairs must then be new to both.

        Args:
            pairs: training pairs: triples of two texts and a label, or a table (`pandas.DataFrame`,
                `datasets.Dataset`, a table of Arrow or Polars, a mapping of columns or a list of `dict`) with columns
                such as `sentence1`, `sentence2` and `label`.
            eval_pairs: development pairs. They decide whether the trained encoder is kept, and map scores to grades.
                Default: up to a fifth of `pairs`; none with the option `folds`.
            test_pairs: test pairs, scored before and after training. They never help choose anything.
            grades: names of the grades, lowest first, if labels are names. Default: those of an ordered
                `pandas.Categorical`.
            output_dir: folder of the run, for checkpoint, record and card. Default: a temporary folder, deleted with
                this object.
            quiet: whether to print nothing. Default: the lines of the command, among them the data report.
            **options: any option of `run_sts.py`, under its name there, such as `learning_rate`, `loss` or
                `sentence1_column`. Options that name files of pairs are refused.

        Returns:
            This object, with the trained model.

        Raises:
            ValueError: for pairs or options that cannot be used, before anything is trained.
        """
        if files := sorted(FILE_OPTIONS & options.keys()):
            raise ValueError(f"`{files[0]}` names pairs, but `fit` trains on the pairs that you pass. Leave it out.")
        given = {"train": as_dataset("pairs", pairs, LABELLED)}
        columns = PairColumns(*(column_names(options.get(f"{name}_column")) for name in COLUMNS))
        if grades is None:
            grades = ordered_grades(pairs, columns)
        for split, some in (("validation", eval_pairs), ("test", test_pairs)):
            if some is not None:
                given[split] = as_dataset(f"{split} pairs", some, LABELLED)
        scratch = None
        if output_dir is None:
            scratch = tempfile.TemporaryDirectory(prefix="sts-regression-")
            output_dir = scratch.name
        chosen = {
            **{name: value for name, value in self._start.items() if value not in (None, False, "main")},
            "grade_names": _as_list("grades", grades),
            "output_dir": str(output_dir),
            "report_to": "none",
            "use_cpu": True if self._device == "cpu" else None,
            "do_train": True,
            "do_eval": True,
            "disable_tqdm": True if quiet else None,
            **options,
        }
        with nullcontext() if quiet else lines_on_screen(as_keywords):
            self.folder = run_stages(as_words(chosen), given, is_read=True, speaks=not quiet).absolute()
        self._scratch = scratch  # deletes the temporary folder of an earlier `fit`, and keeps this one
        self._columns = columns
        self._load(str(self.folder))
        return self

    @keywords_in_errors()
    def grade(self, pairs: Pairs, *, sentence1_column: str | None = None, sentence2_column: str | None = None) -> Any:
        """
        Grades pairs, or one pair.

        Args:
            pairs: pairs of texts, or a table of them, see [`~PairGrader.fit`]; or one pair, as a tuple or list of two
                texts or as a `dict`. Labels are not needed.
            sentence1_column, sentence2_column: columns of a table. Default: those of `fit` if the table has them; else
                guessed.

        Returns:
            A `dict` for one pair, and a list of them for pairs: `score` (`float`, on the label scale), `grade` (its
            name, or else its value, an `int` if all grades are whole numbers), `low` and `high` (`float`, the interval
            of the label, if there were enough development pairs to learn it), `cosine` (`float`, of a bi-encoder) and
            `unreliable` (`str`, empty if the model can read both texts in full).

        Raises:
            ValueError: for inputs other than pairs of texts, and for a model whose head is not trained.
        """
        if not (config := self.model.config).head_is_trained:
            if config.loss_type in HEADLESS_LOSSES:
                raise ValueError(
                    f"the loss {config.loss_type} trains no head, so there are no grades. Fit with another loss, or "
                    "use the cosine of the embeddings of `encode`."
                )
            raise ValueError("the model has no trained head. Train it with `fit`, or load a trained checkpoint.")
        if is_one_pair(pairs):
            [graded] = self.grade([pairs], sentence1_column=sentence1_column, sentence2_column=sentence2_column)
            return graded
        given = as_dataset("pairs", pairs, UNLABELLED)
        if len(given) == 0:
            return []
        columns = self._columns_of(given, sentence1=sentence1_column, sentence2=sentence2_column)
        read = given_pairs("pairs", given, columns, labelled=False).pairs[:]
        scorer, sentences = model_scorer(self._scoring_model, self.tokenizer), (read["sentence1"], read["sentence2"])
        scored = score_pairs(scorer, self.tokenizer, self.model.config, *sentences)
        return [dict(zip(scored, values, strict=True)) for values in zip(*scored.values(), strict=True)]

    def _columns_of(self, given: Dataset, **named: Any) -> PairColumns:
        """The columns to read: those that are named, or else those of `fit` that the table has."""
        there = set(given.column_names)
        of_fit = {
            name: column
            for name, column in asdict(self._columns).items()
            if column is not None and there.issuperset([column] if isinstance(column, str) else column)
        }
        given_names = {name: column_names(column) for name, column in named.items() if column is not None}
        return PairColumns(**{**of_fit, **given_names})

    @keywords_in_errors()
    def encode(self, texts: str | Sequence[str] | np.ndarray, *, second: bool = False) -> np.ndarray:
        """
        Embeddings of texts.

        Args:
            texts: one text, or any number of texts.
            second: whether they are second texts of pairs, for models with two different prefixes.

        Returns:
            `np.ndarray` of shape `(texts, hidden)`, float32; `(hidden,)` for a single string. They have
            length 1 if `normalize_embeddings` is set in the configuration, as in sentence-transformers.

        Raises:
            ValueError: for inputs other than strings, and for a cross-encoder.
        """
        self._check_bi_encoder("encode")
        embeddings = self._embed(texts, second)
        if self.model.config.normalize_embeddings:
            embeddings = F.normalize(embeddings, dim=-1)
        return embeddings.numpy()[0] if isinstance(texts, str) else embeddings.numpy()

    def _embed(self, texts: str | Sequence[str] | np.ndarray, second: bool = False) -> Tensor:
        """Embeddings as the head reads them, not normalised."""
        return encode_sentences(self._scoring_model, self.tokenizer, texts, prefix=self.model.config.prefixes[second])

    @keywords_in_errors(as_keywords_of_evaluate)
    def evaluate(
        self,
        pairs: Pairs,
        *,
        grades: Sequence[str] | None = None,
        label_values: Sequence[float] | None = None,
        sentence1_column: str | None = None,
        sentence2_column: str | None = None,
        label_column: str | Sequence[str] | None = None,
        quiet: bool = False,
    ) -> dict[str, float]:
        """
        Measures the model on labelled pairs.

        Args:
            pairs: labelled pairs as for [`~PairGrader.fit`], on any label scale.
            grades: names of the grades, lowest first, if labels are names that the model does not know.
            label_values: the scale of the labels, lowest first. Default: the model's, unless the labels suggest
                another one, which a line then names.
            sentence1_column, sentence2_column, label_column: columns of a table; several labels are those of raters.
                Default: those of `fit` if the table has them; else guessed.
            quiet: whether to print nothing.

        Returns:
            Correlations of score and cosine with the labels, between -1 and 1; measures of grades, if labels are
            grades; and nDCG@10 for queries with many candidates, see [`measure_scores`].

        Raises:
            ValueError: for pairs that cannot be used.
        """
        given = {"test": as_dataset("pairs", pairs, LABELLED)}
        data_args = DataArguments(
            grade_names=_as_list("grades", grades),
            label_values=_as_list("label_values", label_values),
        )
        config = self.model.config if self.model.config.head_is_trained else None
        with level_of(PACKAGE, logging.ERROR) if quiet else lines_on_screen(as_keywords_of_evaluate):
            columns = self._columns_of(
                given["test"], sentence1=sentence1_column, sentence2=sentence2_column, label=label_column
            )
            splits = load_splits(data_args, columns, config, do_train=False, given=given)
            for note in itertools.chain.from_iterable(part.notes for part in splits.sets["test"]):
                logger.info(f"pairs: {note}")
        read = splits.pairs["test"][:]
        scores = model_scorer(self._scoring_model, self.tokenizer)(read["sentence1"], read["sentence2"])
        found = PairScores(scores.get("head"), scores.get("cosine"))
        measures, _ = measure_splits(splits, {"test": found}, self.model.config.cut_points)
        if not quiet:
            with lines_on_screen(as_keywords_of_evaluate):
                for finding in reversal_of_scores(found, measures["test"], "test"):
                    logger.info(finding)
        return measures["test"]

    @keywords_in_errors()
    def search(
        self, queries: str | Iterable[str], corpus: Iterable[str], k: int = 10, *, score: str | None = None
    ) -> list[list[dict[str, Any]]]:
        """
        The most similar texts of a corpus for each query.

        Args:
            queries: one query, or any number of queries.
            corpus: texts to search.
            k: the number of texts to find for each query.
            score: "head" or "cosine". Default: the head if it is trained.

        Returns:
            The hits of each query, best first, each a `dict` with `text`, `index` (in the corpus), `score` and
            `unreliable`, as in [`~PairGrader.grade`].

        Raises:
            ValueError: for a cross-encoder, an unknown score, and `k` below 1.
        """
        self._check_bi_encoder("search")
        score = score or ("head" if self.model.config.head_is_trained else "cosine")
        if isinstance(corpus, str | Mapping | pd.DataFrame):
            raise ValueError(f"`corpus` must be texts, but is a {type(corpus).__name__}. Pass a list or a column.")
        asked, searched = text_list("queries", queries), text_list("corpus", corpus)
        first, second = self._embed(asked), self._embed(searched, second=True)
        scores, indices = top_k(self.model, first, second, operator.index(k), score)
        rows = zip(indices.tolist(), scores.tolist(), strict=True)
        hits = [list(zip(*row, strict=True)) for row in rows]
        return describe_hits(asked, hits, searched, self.tokenizer, self.model.config)

    @keywords_in_errors()
    def save(self, folder: str | Path) -> None:
        """
        Writes the checkpoint, which loads here, in transformers and in sentence-transformers.

        The record and the report of the run that trained the model are copied beside it.

        Args:
            folder: created if it does not exist.

        Raises:
            ValueError: for the folder of the run that trained the model, which already holds the checkpoint, and for
                a folder with files that no run wrote.
        """
        if self.folder is not None and is_same_place(folder, self.folder):
            raise ValueError(
                f"`folder` {str(folder)!r} is the folder of the run, which already holds the checkpoint. Name another."
            )
        if Path(folder).is_file():
            raise ValueError(f"`folder` {str(folder)!r} is a file. Name a folder.")
        check_encoder_folder(Path(folder), "folder", self.name_or_path)
        check_is_run(Path(folder), option="folder")
        with quiet_libraries():
            self.model.save_pretrained(folder)
        write_modules(Path(folder), self.model.config, self.tokenizer)
        seal_model(Path(folder))
        source = None if self.name_or_path is None else Path(self.name_or_path)
        if source is None or not is_same_place(folder, source):
            replace_results(Path(folder), source)

    @keywords_in_errors()
    def push_to_hub(
        self, repo_id: str, *, private: bool = True, license: str | None = None, language: Sequence[str] | None = None
    ) -> str:
        """
        Publishes the model of [`~PairGrader.fit`] on the Hub: checkpoint, code, record and card, in one commit.

        Args:
            repo_id: USER/NAME, created if it does not exist.
            private: whether a new repository is private.
            license: licence of the model as an identifier of the Hub, for the card.
            language: language codes such as `en`, for the card.

        Returns:
            A line with the address of the repository.

        Raises:
            ValueError: if nothing was trained, and if the Hub refuses the files.
        """
        if self.folder is None:
            raise ValueError("there is no run to publish. Train with `fit`, or use `sts-regression publish FOLDER`.")
        return publish(self.folder, Repository(repo_id, private=private), license, language)

    def _check_bi_encoder(self, method: str) -> None:
        if self.model.config.encoder_type != "bi-encoder":
            raise ValueError(f"`{method}` needs a bi-encoder: a cross-encoder reads both texts of a pair together.")


def _independent_of_working_folder(name_or_path: str) -> str:
    """The absolute path of a folder; any other name as it is."""
    return str(Path(name_or_path).absolute()) if Path(name_or_path).is_dir() else name_or_path


def recorded_verdict(folder: Path) -> Verdict | None:
    """The verdict in the record of a run; `None` if there is no record, or nothing was compared."""
    found = read_record(folder / RUN_FILE).get("verdict") if (folder / RUN_FILE).is_file() else None
    return None if found is None else Verdict.from_dict(found)


def _as_list(name: str, values: Sequence[Any] | None) -> list[Any] | None:
    if isinstance(values, str | Mapping | Set):  # neither mappings nor sets are in the order of the grades
        raise ValueError(f"`{name}` must be a list, the lowest grade first, but is {values!r:.200}.")
    return None if values is None else list(values)
