"""Recipes × settings × seeds: `runs` trains them, `summary` measures and tests them, `report` writes the tables.

Imports the command's options, `training` and the folders below it.
"""
