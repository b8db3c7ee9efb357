"""From scores to measures, intervals, tests, tables and pictures.

`measures` are those of one set of pairs, `sts_metric` the same for the `evaluate` library, `sts_evaluation` and
`sts_report` those of the seven STS tasks; `bootstrap`, `significance` and `compare` say what a difference is worth,
`verdict` what a training gained and what more pairs would bring; `plots` draws, `report_page` and `report_charts` are
the page of a run. Imports `models`, `grading`, `data` and what lies below them.
"""
