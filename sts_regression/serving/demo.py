"""A web page to try a model: two sentences, a list against a query, a file of pairs.

    sts-regression demo --model_name_or_path outputs/pairs-smooth_k2

serves the page to this machine only, until Ctrl+C.
"""

import argparse
import importlib.util
import os
import tempfile

from sts_regression.basics.hub_tokens import CommandParser
from sts_regression.options.model_arguments import add_model_arguments
from sts_regression.serving.demo_scoring import load_demo_model


def main(argv: list[str] | None = None) -> None:
    """Runs the command."""
    parser = CommandParser(
        prog="sts-regression demo",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_model_arguments(parser, "a checkpoint or an encoder")
    parser.add_argument("--server_name", help="address to listen on; default: 127.0.0.1; 0.0.0.0: every network")
    parser.add_argument("--server_port", type=int, help="default: the first free port from 7860 on")
    parser.add_argument("--share", action="store_true", help="a public address, through a tunnel by gradio.live")
    args = parser.parse_args(argv)
    try:
        _run(args)
    except ValueError as error:
        parser.end(error)


def _run(args: argparse.Namespace) -> None:
    if importlib.util.find_spec("gradio") is None:
        raise ValueError('the web page needs gradio. Install it with `pip install ".[demo]"`.')
    # Gradio reads these when it is imported. The folder must be the page's own, since old files in it are deleted.
    with tempfile.TemporaryDirectory(prefix="sts-regression-demo-") as folder:
        os.environ.update(GRADIO_ANALYTICS_ENABLED="False", GRADIO_TEMP_DIR=folder)
        from sts_regression.serving.demo_page import build_page, launch_page

        model = load_demo_model(
            args.model_name_or_path, args.model_revision, args.trust_remote_code, args.max_seq_length
        )
        page = build_page(model)
        launch_page(page, server_name=args.server_name, server_port=args.server_port, share=args.share)
        page.block_thread()


if __name__ == "__main__":
    main()
