"""From words on the command line to the runs that they ask for.

`command_help` answers help, looks for missing files and prepares the process, before torch is loaded. `recipes` reads
recipes, `default_recipe` names the one that applies if the command names none, `arguments` parses recipe and command
line, and `stages` adds the inner runs. Imports `basics`, `options`, `data`, `models` and `training`.
"""
