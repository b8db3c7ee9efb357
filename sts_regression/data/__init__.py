"""From files and the Hub to pairs on one label scale, without test pairs among the training pairs.

`rows`, `columns`, `labels` and `ratings` parse files, and `pairs` turns them into pairs. `sources` reads the sets that
the options name, and `scales` maps their labels onto one scale. `splits` divides the pairs; `text_splits` keeps pairs
that share a text together. `leakage` finds test pairs among training pairs, and `data_report` lists suspicious
findings. `sts_tasks` reads the seven STS tasks. Imports only `basics`, the options and the shipped files.
"""
