"""The stages, one plain function a file of the same name; ``default`` strings them together.

truncate    first sight      one result is too large: a view of it
prune       pressure         old results, arguments and speech: digests, in rare deep batches
compact     pressure         a span becomes a summary a model may add to
emergency   guard            whatever it takes, never an illegal view
"""
