"""Receipts: what a request would have cost without ullage, and the ledger it is written into."""
