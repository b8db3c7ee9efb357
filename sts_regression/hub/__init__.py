"""Model cards, the public part of a run's record, and publishing on the Hub.

`model_card` writes cards with the tables of `card_tables`, `public_record` selects the public part of a record,
`repository` checks a repository on the Hub, and `publish` fills it. Imports `training` and the folders below it.
"""
