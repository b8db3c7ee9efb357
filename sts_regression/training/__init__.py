"""From pairs and a model to a checkpoint.

`training_arguments` are its options and what is refused of them, `training_checks` refuses what cannot be with a model
and its pairs. `trainer` trains, with `learning_rates`, `lora`, `weight_averaging` and `numerics`; `head_solver` solves
for the head of a frozen encoder. `checkpoints`, `run_folder` and `run_record` are what a run leaves, `inner_runs`
those that are trained for their scores alone. Imports `evaluation`, `models`, `data` and what lies below them.
"""
