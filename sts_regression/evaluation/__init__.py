"""From scores to measures, intervals, tests, tables and plots.

`measures` measures the scores of pairs, and `split_measures` those of a run's splits; `sts_metric` is a metric for the
`evaluate` library. `sts_evaluation` and `sts_report` cover the seven STS tasks. `bootstrap`, `significance` and
`compare` test differences, and `verdict` estimates the gain from training and from more pairs. `plots` draws PNG
files; `report_page` and `report_charts` make the report of a run. Imports `models`, `grading`, `data` and the folders
below them.
"""
