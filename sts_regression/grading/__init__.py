"""From a model's scores to grades, intervals and thresholds, fitted on held-out pairs.

`score_map` maps raw scores onto the label scale and keeps their order. `cut_points` divides the mapped scores into
grades, `intervals` gives intervals of the true label, and `thresholds` finds the score for a wanted precision or
recall. `grading` fits all of them and measures them by cross-fitting; `held_out` checks the pairs; `in_checkpoints`
puts the result into a model's configuration. The methods were chosen among several by `benchmarks/grading_choice.py`,
see `results/grading/choice.json`. Needs no torch, and imports nothing from the rest of the package.
"""
