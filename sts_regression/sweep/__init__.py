"""Recipes × settings × seeds: `runs` trains them, `summary` measures and tests them, `report` shows it.

Imports the command's options, `training` and what lies below it.
"""
