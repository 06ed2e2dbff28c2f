"""The day of a fleet: users, proxies that are killed, budgets and accounts."""
