"""A tenant, and a conversation of it that is an owner of its own."""

from hypothesis import given
from hypothesis import strategies as st

from ullage.core.values.owners import PART, owner_of, tenant_of

tenants = st.text().filter(lambda name: PART not in name)


@given(tenants, st.text())
def test_an_owner_has_the_tenant_that_it_was_made_of(tenant, name):
    assert tenant_of(owner_of(tenant, name)) == tenant_of(tenant) == tenant


@given(tenants, st.text(), st.text())
def test_what_stands_behind_a_conversation_is_of_the_same_tenant(
    tenant, name, more
):
    assert tenant_of(owner_of(owner_of(tenant, name), more)) == tenant


@given(tenants, st.text(), st.text())
def test_conversations_of_two_names_are_two_owners(tenant, one, other):
    assert (owner_of(tenant, one) == owner_of(tenant, other)) == (one == other)
