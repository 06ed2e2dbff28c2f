"""What a user decides of a window: what is meant, what it would cost, and how it is kept."""
