"""From files and the Hub to pairs on one label scale, no test pair among them.

`rows`, `columns`, `labels` and `ratings` read what a file holds, `pairs` makes pairs of it. `sources` gathers the sets
that the options name, `scales` maps their labels onto one scale, `splits` parts them, `text_splits` keeping the pairs
of a text together; `leakage` finds test pairs among them, `data_report` says what looks wrong. `sts_tasks` are the
seven STS tasks. Imports the options, files and tables alone.
"""
