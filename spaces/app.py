"""The web page as a Space on the Hub, for the model that the variable `STS_REGRESSION_MODEL` names."""

import os
import sys

if __name__ == "__main__":
    model = os.environ.get("STS_REGRESSION_MODEL")
    if not model:
        sys.exit("app.py: error: set the variable `STS_REGRESSION_MODEL` to the Hub id of a model.")
    # Proxies of the Hub have been seen to reach a Space from this private network; this page was not tried there.
    # They pass on whose request it is. Without it all visitors would count as one client.
    os.environ.setdefault("FORWARDED_ALLOW_IPS", "10.0.0.0/8")
    from sts_regression.serving.demo import main

    main(["--model_name_or_path", model, "--server_name", "0.0.0.0"])  # noqa: S104 - a Space is served to everybody
