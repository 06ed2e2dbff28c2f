"""What calls cost and what may be spent: usage, prices, budgets, metrics."""
