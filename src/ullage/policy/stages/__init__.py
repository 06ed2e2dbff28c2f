"""The stages, one plain function a file of the same name, and what they are made of."""
