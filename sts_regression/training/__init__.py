"""From pairs and a model to a checkpoint.

`training_arguments` holds the options and their checks; `training_checks` checks them against a model and its pairs.
`trainer` trains, with `learning_rates`, `lora`, `weight_averaging` and `numerics`; `head_solver` solves for the head
of a frozen encoder. `checkpoints`, `run_folder` and `run_record` read and write the files of a run; `inner_runs` are
trained for their scores alone. Imports `evaluation`, `models`, `data` and the folders below them.
"""
