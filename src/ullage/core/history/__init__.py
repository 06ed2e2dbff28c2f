"""The history: what it is (chain), what it holds (transcript), how it is shown and counted.

canon       what a message is: digests, chain, refs
raw         what stands in a request: dicts, and objects of the vendors' SDKs
snapshots   how a change in somebody else's data is noticed
transcript  the messages as values, in step with the chain
ledger      what was decided and observed at each place of the chain
shown       a history with its edits in their places
window      the same counted against its limits: what a stage reads
measures    what is worked out of each message once
index       everything in a range of messages, by its words or its ref
chars       characters of a message, as it came and as it is shown
builder     what moves a window forward
layers      mappings of which the next one costs only what is new in it
frozen      a window and a history as they are at the end of a turn, for whoever reads them
"""
