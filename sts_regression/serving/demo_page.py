"""The web page itself, in Gradio: what visitors see, and the settings under which it is served to strangers.

What visitors or models bring is shown by components that show text as text, never as HTML or Markdown. A message of
`gr.Error` is HTML, and is escaped.
"""

import html
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gradio as gr
from starlette.middleware import Middleware
from starlette.middleware.body_limit import RequestBodyLimitMiddleware

from sts_regression.data.columns import PairColumns
from sts_regression.serving.demo_gate import DELETION_SECONDS, FILE_SECONDS, FULL, Gate, deleting_leftovers, has_room
from sts_regression.serving.demo_scoring import (
    FILE_SUFFIXES,
    MAX_FILE_BYTES,
    DemoModel,
    describe_limits,
    describe_model,
    rank,
    score_file,
    score_two,
    shown_score,
)

MAX_WAITING = 20  # requests in the queue
MAX_BODY_BYTES = 2 * MAX_FILE_BYTES  # holds the longest list of sentences, too
MAX_CONNECTIONS = 500  # of all clients; a client's answers come over one that it holds open
MAX_MESSAGE_CHARACTERS = 500
TRUSTED_PROXIES = "FORWARDED_ALLOW_IPS"  # the environment variable that uvicorn reads
SYSTEM_FONTS = ("system-ui", "sans-serif")  # Gradio's own are fetched
COLUMN_TYPES = {"score": "number", "grade": "str", "cosine": "number"}


def build_page(model: DemoModel) -> gr.Blocks:
    """The page of a model, not yet served."""

    def on_two(sentence1: str, sentence2: str) -> list[str]:
        with _errors_shown():
            scores = score_two(model, sentence1, sentence2)
            return [shown_score(score) for score in scores.values()]

    def on_list(query: str, sentences: str) -> list[list[Any]]:
        with _errors_shown():
            return rank(model, query, sentences)

    def on_file(path: str | None, sentence1_column: str, sentence2_column: str) -> Iterator[str]:
        with tempfile.TemporaryDirectory() as folder:
            with _errors_shown():
                if path is None:
                    raise ValueError("`File` is missing. Upload one first.")
                if not has_room():
                    raise ValueError(FULL)
                columns = PairColumns(sentence1_column or None, sentence2_column or None)
                scores = Path(folder) / "scores.csv"
                scores.write_text(score_file(model, Path(path), columns), encoding="utf-8")
            yield str(scores)  # is copied before the folder is deleted

    # One request at a time, whatever the tab: tokenizers are not made for several threads.
    event_options: dict[str, Any] = {"concurrency_id": "model", "concurrency_limit": 1, "api_visibility": "private"}
    delete_files = (DELETION_SECONDS, FILE_SECONDS)
    with gr.Blocks(title="Graded similarity", analytics_enabled=False, delete_cache=delete_files) as page:
        gr.Markdown(f"# Graded similarity\n\n{describe_limits()}")
        gr.Textbox(describe_model(model), label="Model", interactive=False, lines=2)
        with gr.Tab("Two sentences"):
            pair = [gr.Textbox(label=f"{name} sentence", lines=2) for name in ("First", "Second")]
            button = gr.Button("Score", variant="primary")
            with gr.Row():
                outputs = [gr.Textbox(label=name.capitalize(), interactive=False) for name in model.shown]
            button.click(on_two, pair, outputs, **event_options)
        with gr.Tab("A list"):
            query = gr.Textbox(label="Query", lines=2)
            sentences = gr.Textbox(label="Sentences, one a line", lines=8)
            button = gr.Button("Rank", variant="primary")
            table = gr.Dataframe(
                headers=["rank", "sentence", *model.shown],
                datatype=["number", "str", *(COLUMN_TYPES[name] for name in model.shown)],
                interactive=False,
                wrap=True,
                label="Best first",
            )
            button.click(on_list, [query, sentences], table, **event_options)
        with gr.Tab("A file"):
            file = gr.File(label="File of pairs, .csv or .tsv", file_types=list(FILE_SUFFIXES))
            # On the object, here and below: a class of its own would have Gradio write a file beside this one.
            file.preprocess = lambda payload: None if payload is None else payload.path
            with gr.Row():
                columns = [
                    gr.Textbox(label=f"--{name}_column", placeholder=f"{name}, or another name in use")
                    for name in ("sentence1", "sentence2")
                ]
            button = gr.Button("Score the file", variant="primary")
            scored_file = gr.File(label="Scores", interactive=False)
            button.click(on_file, [file, *columns], scored_file, **event_options)
    for block in page.blocks.values():  # Gradio would fetch addresses for a text, too
        _refuse_addresses(block)
    return page.queue(max_size=MAX_WAITING, api_open=False)


def launch_page(
    page: gr.Blocks, *, server_name: str | None, server_port: int | None, share: bool, quiet: bool = False
) -> None:
    """
    Serves the page, in threads of its own.

    Args:
        page: of [`build_page`].
        server_name: address to listen at; `None` for this machine alone.
        server_port: `None` for the first free one from 7860 on.
        share: whether to ask for a public address.
        quiet: whether to keep the address to itself.

    Raises:
        ValueError: if address or port cannot be had, or every proxy is trusted.
    """
    # By itself uvicorn believes whatever runs on this machine, such as a tunnel that passes on what strangers write.
    if os.environ.setdefault(TRUSTED_PROXIES, "") == "*":
        raise ValueError(
            f"`{TRUSTED_PROXIES}` is '*', which lets each client choose the address that it is counted under. Name "
            "the addresses of your proxies, such as '10.0.0.0/8', or none."
        )
    # Gradio limits files alone, and would read any other request into memory whole.
    limits = [Middleware(RequestBodyLimitMiddleware, max_body_size=MAX_BODY_BYTES), Middleware(Gate)]
    try:
        page.launch(
            server_name=server_name,
            server_port=server_port,
            share=share,
            quiet=quiet,
            prevent_thread_lock=True,
            show_error=False,  # of errors that are not ours visitors see no more than that there was one
            max_file_size=MAX_FILE_BYTES,
            theme=gr.themes.Default(font=SYSTEM_FONTS, font_mono=("ui-monospace", "monospace")),
            app_kwargs={"middleware": limits, "lifespan": deleting_leftovers},
            footer_links=[],
            run_history=False,  # else browsers keep what was typed
            enable_monitoring=False,
            ssr_mode=False,
            pwa=False,
            mcp_server=False,
        )
    except (OSError, OverflowError) as error:
        raise ValueError(
            f"`server_port`: cannot serve at port {server_port} of {server_name or 'this machine'} ({error}). Give "
            "another, or none for the first free one."
        ) from error
    page.server.config.limit_concurrency = MAX_CONNECTIONS  # uvicorn's; Gradio has no option for it


def _refuse_addresses(block: Any) -> None:
    """Keeps a component from fetching addresses that come in place of files."""
    move = block.async_move_resource_to_block_cache

    async def move_upload(path: str | Path | None) -> str | None:
        if path is not None and "://" in str(path):
            raise ValueError("a file must be uploaded, but is an address.")
        return await move(path)

    block.async_move_resource_to_block_cache = move_upload


@contextmanager
def _errors_shown() -> Iterator[None]:
    """Shows the visitor what our errors say, as text."""
    try:
        yield
    except ValueError as error:
        raise gr.Error(error_message(error), print_exception=False) from error


def error_message(error: ValueError) -> str:
    """What an error says, shortened and escaped for a page."""
    message = str(error)
    if len(message) > MAX_MESSAGE_CHARACTERS:
        message = f"{message[:MAX_MESSAGE_CHARACTERS]}…"
    return html.escape(message)
