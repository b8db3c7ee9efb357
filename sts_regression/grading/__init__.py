"""From a model's score to a grade that one can act on, fitted on held-out pairs.

`score_map` maps raw scores onto the label scale and keeps their order, `cut_points` parts the mapped scores into
grades, `intervals` says between which grades the true one lies, `thresholds` which score to ask for, for a wanted
precision or recall. `grading` fits all of it and measures it by cross-fitting; `held_out` checks the pairs. Which of
several methods each file holds was chosen by `benchmarks/grading_choice.py`, see `results/grading/choice.json`. Needs
no torch, and imports nothing of the package.
"""
