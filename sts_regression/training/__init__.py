"""From pairs and a model to a checkpoint.

`training_arguments` are its options, `option_checks` and `training_checks` refuse what cannot be. `trainer` trains,
with `learning_rates`, `lora`, `weight_averaging` and `numerics`; a frozen encoder is encoded once (`embedding_store`)
and its head solved for (`head_solver`). `checkpoints`, `run_folder` and `run_record` are what a run leaves. Imports
`evaluation`, `models`, `data` and what lies below them.
"""
