"""Every option of the command once, with its default and its checks.

`model_arguments`, `data_arguments` and `training_options` hold a group each, and `fields` makes their fields;
`training/training_arguments.py` adds the options of transformers' `TrainingArguments`. Choices that other modules
share stand beside their option. Loads no torch, so that help and misspelt options are answered at once. Imports
nothing from the rest of the package.
"""
