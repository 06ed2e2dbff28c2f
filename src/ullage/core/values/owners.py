"""Owners: whom content belongs to. A tenant is one, and so is a conversation of it with a name.

What one owner set aside opens for no other. The name of a conversation stands behind that of its
tenant, so whatever is asked of a tenant as a whole finds both.
"""

from __future__ import annotations

PART = "\x1f"
"""Parts a tenant's name from what stands behind it: the unit separator of ASCII."""


def owner_of(tenant: str, name: str) -> str:
    """The owner that a conversation of a tenant is.

    Args:
        tenant: the tenant.
        name: of the conversation.
    """
    return f"{tenant}{PART}{name}"


def tenant_of(owner: str) -> str:
    """The tenant of an owner.

    Args:
        owner: a tenant, or a conversation of one.
    """
    return owner.partition(PART)[0]
