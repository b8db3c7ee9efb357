"""Tools for every folder.

`files` writes complete files and locks folders, and `seals` stores digests of checkpoints. `input_files` finds the
files that options name. `parquet_files` and `excel_files` read these formats; `tables` formats tables and writes JSON.
`hub_names` checks names of repositories and licences, `hub_tokens` hides tokens, and `hub_access` checks whether the
Hub answers. `quiet` silences libraries, `stopping` handles signals, and `distributed` deals with several processes.
Imports nothing from the rest of the package.
"""
