"""Turns that are hidden from a client and put back: what every wire has to say of them."""
