"""ONNX graphs of a model: written, checked against torch, quantised and run. Needs the extra `onnx`."""

import copy
import importlib.util
import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import PretrainedConfig, PreTrainedTokenizerBase

from sts_regression.basics.files import first_line_of
from sts_regression.modeling_sts_regression import STSRegressionModel
from sts_regression.models.tokenization import pair_collator
from sts_regression.options.data_arguments import BACKENDS
from sts_regression.packing_sts_regression import is_prepared
from sts_regression.pipeline_sts_regression import tokenize_texts

logger = logging.getLogger(__name__)

ONNX_PACKAGES = ("onnx", "onnxruntime", "onnxscript")
ONNX_TOLERANCE = 1e-4  # largest difference from torch, in the unit of the output
HEAD_WEIGHT = "head.weight"  # the end of its name in a graph
LARGEST_FILE = 1 << 30  # bytes; larger weights go into a file beside the graph, which must stay below 2 GiB
EXAMPLES = ("Water.", "A man is playing a guitar.", "It rains. " * 20)  # on which a converted encoder is checked


def check_onnx_is_installed() -> None:
    """Raises `ValueError` if the extra `onnx` is not installed."""
    missing = [name for name in ONNX_PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise ValueError(f'ONNX needs {", ".join(missing)}. Install the extra with `pip install ".[onnx]"`.')


class HiddenStatesGraph(nn.Module):
    """
    Maps texts, tensors of shape (batch, length), to `last_hidden_state` of shape (batch, length, hidden).

    Padding is 0, because attention windows without a single token are computed differently in every runtime.
    """

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        self.output_names = ["last_hidden_state"]

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        """The outputs, in the order of their names."""
        segments = {} if token_type_ids is None else {"token_type_ids": token_type_ids}
        hidden_states = self.encoder(input_ids, attention_mask=attention_mask, **segments)[0]
        return (hidden_states.masked_fill(attention_mask[..., None] == 0, 0.0),)


class EncoderGraph(nn.Module):
    """
    Maps sentences, tensors of shape (batch, length), to `sentence_embedding` of shape (batch, hidden).

    Embeddings are scaled to length 1 if `normalize_embeddings` of the configuration is true.
    """

    def __init__(self, model: STSRegressionModel) -> None:
        super().__init__()
        self.model = model
        self.output_names = ["sentence_embedding"]

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        """The outputs, in the order of their names."""
        embeddings = self.model.get_text_features(input_ids, attention_mask, token_type_ids)
        return (F.normalize(embeddings, dim=-1) if self.model.config.normalize_embeddings else embeddings,)


class ScorerGraph(nn.Module):
    """
    Maps pairs to `score`, on the label scale, and, for a bi-encoder, `cosine`, both of shape (batch,).

    The inputs are those of the model: shape (batch, 2, length), or (batch, length) for a cross-encoder, which takes
    the pair as one sequence.
    """

    def __init__(self, model: STSRegressionModel) -> None:
        super().__init__()
        self.model = model
        self.output_names = ["score"] if model.config.encoder_type == "cross-encoder" else ["score", "cosine"]

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        """The outputs, in the order of their names."""
        output = self.model(input_ids, attention_mask, token_type_ids)
        if output.embeddings is None:
            return (output.scores,)
        return output.scores, F.cosine_similarity(output.embeddings[:, 0], output.embeddings[:, 1], dim=-1)


Graph = HiddenStatesGraph | EncoderGraph | ScorerGraph


def encoder_inputs(
    model: STSRegressionModel,
    tokenizer: PreTrainedTokenizerBase,
    texts: list[str],
    second: list[str] | None = None,
) -> dict[str, Tensor]:
    """A batch of texts, or of pairs in one sequence, as inputs of the model's encoder: shape (texts, length)."""
    tokenized = tokenize_texts(texts, tokenizer, second)
    rows = [dict(zip(tokenized, values, strict=True)) for values in zip(*tokenized.values(), strict=True)]
    batch = pair_collator(tokenizer)(rows)
    if not model._encoder_accepts_token_types:
        batch.pop("token_type_ids", None)
    return batch


def write_graph(graph: Graph, inputs: Mapping[str, Tensor], path: Path) -> None:
    """
    Writes a graph with variable batch size and length.

    Args:
        graph: the graph, on the CPU.
        inputs: an example batch of at least three items, which determines the dimensions.
        path: the file to write.

    Raises:
        ValueError: if the encoder cannot be converted.
    """
    dimensions = {0: "batch", inputs["input_ids"].dim() - 1: "length"}
    size = sum(parameter.numel() * parameter.element_size() for parameter in graph.parameters())
    try:
        with _quiet():
            torch.onnx.export(
                graph.eval(),
                kwargs=dict(inputs),
                f=path,
                input_names=list(inputs),
                output_names=graph.output_names,
                dynamic_shapes=dict.fromkeys(inputs, dimensions),
                external_data=size > LARGEST_FILE,
                dynamo=True,
                verbose=False,
            )
    except Exception as error:  # of any kind: an encoder may use operations that the exporter does not know
        reason = first_line_of(error.__cause__ or error)
        raise ValueError(
            f"torch cannot convert this encoder to ONNX ({reason:.200}). Run it in torch, the default `backend`."
        ) from error


def quantize_graph(path: Path, target: Path) -> None:
    """
    Writes a graph with the encoder's weights as 8-bit integers. Activations are quantised at run time.

    The head keeps its precision: 8-bit activations of a batch would tie most of its scores.
    """
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    graph = onnx.load(path)
    del graph.graph.value_info[:]  # the quantiser transposes weights, and fails on their old shapes
    head = [node.name for node in graph.graph.node if any(name.endswith(HEAD_WEIGHT) for name in node.input)]
    kept = [*head, *(f"{name}_MatMul" for name in head)]  # as the quantiser renames it
    with _quiet():
        # Without `reduce_range`, sums overflow on x86 processors that lack VNNI instructions.
        quantize_dynamic(
            graph, target, weight_type=QuantType.QInt8, per_channel=True, reduce_range=True, nodes_to_exclude=kept
        )


class GraphSession:
    """A graph in ONNX Runtime on the CPU, called with tensors like the original module."""

    def __init__(self, path: Path) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()  # processes of a command share the cores
        self.session: Any = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.input_names = {node.name for node in self.session.get_inputs()}
        self.output_names = [node.name for node in self.session.get_outputs()]

    def __call__(self, **inputs: Tensor) -> dict[str, np.ndarray]:
        """Outputs by name."""
        feed = {name: tensor.numpy() for name, tensor in inputs.items() if name in self.input_names}
        return dict(zip(self.output_names, self.session.run(None, feed), strict=True))


class GraphEncoder(nn.Module):
    """Stands for an encoder whose hidden states a graph computes; has its configuration but no weights."""

    def __init__(self, path: Path, config: PretrainedConfig) -> None:
        super().__init__()
        self.session, self.config = GraphSession(path), config

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        """The last hidden states, of shape (batch, length, hidden)."""
        segments = {} if token_type_ids is None else {"token_type_ids": token_type_ids}
        outputs = self.session(input_ids=input_ids, attention_mask=attention_mask, **segments)
        return tuple(torch.from_numpy(array) for array in outputs.values())


def check_backend(backend: str, device: torch.device) -> None:
    """
    Raises `ValueError` for an unknown backend, and for one on which a model on this device cannot score.

    Args:
        backend: see [`on_backend`].
        device: the device of the model.
    """
    if backend not in BACKENDS:
        raise ValueError(f"`backend` must be one of {', '.join(BACKENDS)}, but is {backend!r:.80}.")
    if backend == "torch":
        return
    check_onnx_is_installed()
    if device.type != "cpu":
        raise ValueError(f"`backend` {backend} needs a CPU, but the model is on {device.type}. Leave it out there.")


def on_backend(model: STSRegressionModel, tokenizer: PreTrainedTokenizerBase, backend: str) -> STSRegressionModel:
    """
    The model that scores on a backend.

    Args:
        model: the model, in evaluation mode.
        tokenizer: the model's tokenizer.
        backend: `"torch"`, or `"onnx-int8"` for an encoder with 8-bit weights in ONNX Runtime. Its scores differ
            slightly from torch's, and with the other texts of a batch: activations have one scale per batch.

    Returns:
        The model itself for torch; otherwise another one with the same head. It cannot be trained or saved.

    Raises:
        ValueError: as [`check_backend`], and if the encoder cannot be converted.
    """
    check_backend(backend, model.device)
    if backend == "torch":
        return model
    logger.info("Converting the encoder to ONNX with 8-bit weights")
    encoder: Any = copy.deepcopy(model.encoder)
    if is_prepared(encoder):
        encoder.set_attn_implementation("sdpa")
    inputs = encoder_inputs(model, tokenizer, list(EXAMPLES))
    with TemporaryDirectory() as folder:
        path = Path(folder, "encoder.onnx")
        graph = HiddenStatesGraph(encoder)
        write_graph(graph, inputs, path)
        largest_difference(graph, path, [inputs])
        quantize_graph(path, path.with_stem("int8"))
        converted: Any = GraphEncoder(path.with_stem("int8"), encoder.config)
    config = copy.copy(model.config)
    config.encoding = "padded"
    quantized = STSRegressionModel(config, converted)
    quantized.head = model.head
    quantized._encoder_accepts_token_types = model._encoder_accepts_token_types
    return quantized.eval()


@torch.no_grad()
def largest_difference(graph: Graph, path: Path, batches: list[dict[str, Tensor]]) -> float:
    """
    The largest difference between the written graph and torch on the given batches.

    Raises:
        ValueError: if it is larger than 1e-4.
    """
    session = GraphSession(path)
    largest = 0.0
    for batch in batches:
        written = session(**batch)
        for name, expected in zip(graph.output_names, graph(**batch), strict=True):
            largest = max(largest, float(np.abs(written[name] - expected.numpy()).max()))
    if not largest <= ONNX_TOLERANCE:
        raise ValueError(
            f"{path.name}: its output differs from torch by {largest:.1e}, more than {ONNX_TOLERANCE:.0e}. These "
            "versions of torch and onnxruntime do not convert this encoder correctly. Try others."
        )
    return largest


@contextmanager
def _quiet() -> Iterator[None]:
    """Hides warnings of exporter and quantiser on which users cannot act, and the graph that torch cannot convert."""
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), redirect_stderr(StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)
