"""What every room uses, and what knows none of them.

`files` whole or not there, and locked; `seals`, what the files of a checkpoint must hold; `parquet_files` in parts
that fit into memory; `excel_files` as text; `tables` of numbers, and JSON; `hub_names` of repositories and licences;
`hub_tokens` that nobody sees; `hub_access`, whether the Hub answers; `quiet` libraries; `stopping`, how a command ends
at a signal; `distributed`, other processes. Imports nothing else of the package.
"""
