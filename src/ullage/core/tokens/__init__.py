"""Counting tokens: exact where a tokeniser exists offline, elsewhere estimated and corrected.

models     which model counts how: ``counter_for(model)`` counts a text
exact      exact counts of OpenAI's encodings
estimate   the other families, from what the bytes are
media      what a picture or a document costs; payload
meter      all of these, for messages and what stands around their texts
calibrate  what reported usage teaches about them
catalog    windows, output limits and prices of models

Nothing here touches the network.
"""
