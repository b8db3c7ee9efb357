"""The web page itself, in Gradio: its elements, and the settings under which it is served to strangers.

Texts of visitors and models are shown as text, never as HTML or Markdown: `demo_panels.py` escapes them. Messages of
`gr.Error` are HTML, and are escaped here.
"""

import html
import json
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
from sts_regression.serving.demo_panels import (
    PALETTE,
    header_panel,
    hint_panel,
    limits_panel,
    list_panel,
    page_style,
    pair_panel,
)
from sts_regression.serving.demo_scoring import FILE_SUFFIXES, MAX_FILE_BYTES, DemoModel, rank, score_file, score_two

MAX_WAITING = 20  # requests in the queue
MAX_BODY_BYTES = 2 * MAX_FILE_BYTES  # holds the longest list of sentences, too
MAX_CONNECTIONS = 500  # of all clients; a client's answers come over one that it holds open
MAX_MESSAGE_CHARACTERS = 500
TRUSTED_PROXIES = "FORWARDED_ALLOW_IPS"  # the environment variable that uvicorn reads
SYSTEM_FONTS = ("system-ui", "sans-serif")  # Gradio's own are fetched
COLUMN_WIDTH = 280  # pixels, at least; on a phone boxes stand one below the other
FILE_HEIGHT = 180  # pixels
EXAMPLE_PAIRS = {
    "Close": ("My parcel has not arrived yet.", "I am still waiting for my package."),
    "Related": ("How do I reset my password?", "I would like to change my email address."),
    "Unrelated": ("The invoice shows the wrong amount.", "Does the blender come with a spare lid?"),
}
EXAMPLE_QUERY = "I would like to return a pair of shoes."
EXAMPLE_LIST = (
    "Where is my parcel?",
    "Can I send these trainers back?",
    "Do you ship to Norway?",
    "The shoes arrived in the wrong size.",
    "When do I get my money back?",
    "I cannot log in.",
)
PAIR_HINT = "Write two sentences or choose an example, then press Score."
LIST_HINT = "Write a query and a list or choose the example, then press Rank."


def build_page(model: DemoModel) -> gr.Blocks:
    """The page of a model, not yet served."""

    def on_two(sentence1: str, sentence2: str) -> str:
        with _errors_shown():
            return pair_panel(model, score_two(model, sentence1, sentence2))

    def on_list(query: str, sentences: str) -> str:
        with _errors_shown():
            return list_panel(model, query, rank(model, query, sentences))

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

    # One request at a time, from all tabs: tokenizers are not made for several threads.
    event_options: dict[str, Any] = {"concurrency_id": "model", "concurrency_limit": 1, "api_visibility": "private"}
    delete_files = (DELETION_SECONDS, FILE_SECONDS)
    with gr.Blocks(title="Graded similarity", analytics_enabled=False, delete_cache=delete_files) as page:
        _panel(header_panel(model))
        with gr.Tab("Two sentences"):
            with gr.Row():
                pair = [
                    gr.Textbox(label=f"{name} sentence", lines=2, min_width=COLUMN_WIDTH)
                    for name in ("First", "Second")
                ]
            with gr.Row(elem_classes="examples"):
                examples = [_example_button(f"{name} pair") for name in EXAMPLE_PAIRS]
            button = gr.Button("Score", variant="primary")
            result = _panel(hint_panel(PAIR_HINT))
            for example, texts in zip(examples, EXAMPLE_PAIRS.values(), strict=True):
                _fill_on_click(example, {**dict(zip(pair, texts, strict=True)), result: hint_panel(PAIR_HINT)})
            button.click(on_two, pair, result, **event_options)
        with gr.Tab("A list"):
            query = gr.Textbox(label="Query", lines=2)
            sentences = gr.Textbox(label="Sentences, one per line", lines=8)
            with gr.Row(elem_classes="examples"):
                example = _example_button("Example list")
            button = gr.Button("Rank", variant="primary")
            ranking = _panel(hint_panel(LIST_HINT))
            values = {query: EXAMPLE_QUERY, sentences: "\n".join(EXAMPLE_LIST), ranking: hint_panel(LIST_HINT)}
            _fill_on_click(example, values)
            button.click(on_list, [query, sentences], ranking, **event_options)
        with gr.Tab("A file"):
            file = gr.File(label="File of pairs, .csv or .tsv", file_types=list(FILE_SUFFIXES), height=FILE_HEIGHT)
            # On the object, here and below: a class of its own would have Gradio write a file beside this one.
            file.preprocess = lambda payload: None if payload is None else payload.path
            with gr.Row():
                columns = [
                    gr.Textbox(
                        label=f"--{name}_column", placeholder=f"{name}, or another name in use", min_width=COLUMN_WIDTH
                    )
                    for name in ("sentence1", "sentence2")
                ]
            button = gr.Button("Score the file", variant="primary")
            scored_file = gr.File(label="Scores", interactive=False, elem_classes="scores")
            button.click(on_file, [file, *columns], scored_file, **event_options)
        _panel(limits_panel())
    for block in page.blocks.values():  # Gradio would fetch addresses for a text, too
        _refuse_addresses(block)
    return page.queue(max_size=MAX_WAITING, api_open=False)


def launch_page(
    page: gr.Blocks, *, server_name: str | None, server_port: int | None, share: bool, quiet: bool = False
) -> None:
    """
    Serves the page, in threads of its own.

    Args:
        page: from [`build_page`].
        server_name: address to listen on; `None` for this machine only.
        server_port: `None` for the first free one from 7860 on.
        share: whether to ask for a public address.
        quiet: whether to print nothing.

    Raises:
        ValueError: if the address or port is not available, or if every proxy is trusted.
    """
    # By default, uvicorn trusts programs on this machine, such as a tunnel that passes on the headers of strangers.
    if os.environ.setdefault(TRUSTED_PROXIES, "") == "*":
        raise ValueError(
            f"`{TRUSTED_PROXIES}` is '*', which lets each client choose the address that it is counted under. Name "
            "the addresses of your proxies, such as '10.0.0.0/8', or none."
        )
    # Gradio limits files only, and would read any other request into memory as a whole.
    limits = [Middleware(RequestBodyLimitMiddleware, max_body_size=MAX_BODY_BYTES), Middleware(Gate)]
    try:
        page.launch(
            server_name=server_name,
            server_port=server_port,
            share=share,
            quiet=quiet,
            prevent_thread_lock=True,
            show_error=False,  # of errors that are not ours, visitors see only that they occurred
            max_file_size=MAX_FILE_BYTES,
            theme=_theme(),
            css=page_style(),
            app_kwargs={"middleware": limits, "lifespan": deleting_leftovers},
            footer_links=[],
            run_history=False,  # else browsers keep the visitor's texts
            enable_monitoring=False,
            ssr_mode=False,
            pwa=False,
            mcp_server=False,
        )
    except (OSError, OverflowError) as error:
        raise ValueError(
            f"`server_port`: cannot serve on port {server_port} of {server_name or 'this machine'} ({error}). Give "
            "another, or none for the first free one."
        ) from error
    page.server.config.limit_concurrency = MAX_CONNECTIONS  # uvicorn's; Gradio has no option for it


def _panel(content: str) -> gr.HTML:
    """A place for HTML of `demo_panels.py`."""
    return gr.HTML(content, apply_default_css=False, js_on_load=None)


def _example_button(text: str) -> gr.Button:
    return gr.Button(text, size="sm", scale=0, min_width=0)


def _fill_on_click(button: gr.Button, values: dict[Any, str]) -> None:
    """Makes a button fill components in the browser, without a request."""
    script = f"() => {json.dumps(list(values.values()))}"
    button.click(None, None, list(values), js=script, api_visibility="private")


def _theme() -> gr.themes.Default:
    """Gradio's theme in the colours of the panels, each for a light page and for a dark one."""
    colours = {
        "body_background_fill": "paper",
        "background_fill_primary": "card",
        "background_fill_secondary": "paper",
        "block_background_fill": "card",
        "block_label_background_fill": "card",
        "input_background_fill": "card",
        "body_text_color": "ink",
        "body_text_color_subdued": "soft",
        "block_title_text_color": "soft",
        "block_label_text_color": "soft",
        "input_placeholder_color": "soft",
        "border_color_primary": "rule",
        "button_primary_background_fill": "after",
        "button_primary_background_fill_hover": "after",
        "button_primary_text_color": "card",
        "button_secondary_background_fill": "rule",
        "button_secondary_background_fill_hover": "rule",
        "button_secondary_text_color": "ink",
    }
    theme = gr.themes.Default(font=SYSTEM_FONTS, font_mono=("ui-monospace", "monospace"))
    shades = (("", 0), ("_dark", 1))
    return theme.set(**{name + end: PALETTE[colour][i] for name, colour in colours.items() for end, i in shades})


def _refuse_addresses(block: Any) -> None:
    """Keeps a component from fetching addresses that come in place of files."""
    move = block.async_move_resource_to_block_cache

    async def move_upload(path: str | Path | None) -> str | None:
        if path is not None and "://" in str(path):
            raise ValueError("a file must be uploaded, not named by an address.")
        return await move(path)

    block.async_move_resource_to_block_cache = move_upload


@contextmanager
def _errors_shown() -> Iterator[None]:
    """Shows visitors the messages of our errors, as text."""
    try:
        yield
    except ValueError as error:
        raise gr.Error(error_message(error), print_exception=False) from error


def error_message(error: ValueError) -> str:
    """The message of an error, shortened and escaped for the page."""
    message = str(error)
    if len(message) > MAX_MESSAGE_CHARACTERS:
        message = f"{message[:MAX_MESSAGE_CHARACTERS]}…"
    return html.escape(message)
