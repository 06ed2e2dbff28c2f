"""The history: what it is (chain), what it holds (transcript), how it is shown and counted.

canon       what a message is: digests, chain, refs
snapshots   how a change in somebody else's data is noticed
transcript  the messages as values, in step with the chain
ledger      what was decided and observed at each place of the chain
view        a history with its edits in their places
window      a view counted against its limits
"""
