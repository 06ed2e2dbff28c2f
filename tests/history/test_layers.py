"""A mapping in layers: nobody sees it change, and the next one costs what is new in it."""

from hypothesis import given
from hypothesis import strategies as st

from ullage.core.history.layers import Layers


@given(
    st.lists(st.dictionaries(st.integers(0, 30), st.integers()), max_size=30)
)
def test_layers_hold_what_a_dict_holds_and_few_of_them_do(changes):
    layers, plain, earlier = Layers(), {}, []
    for change in changes:
        layers = layers.with_changes(change)
        plain.update(change)
        earlier.append((layers, dict(plain)))
    assert all(one.merged() == expected for one, expected in earlier)
    assert len(layers._layers) <= 5


def test_layers_copy_an_entry_a_logarithmic_number_of_times():
    layers, before, copied = Layers(), (), 0
    for number in range(4_096):
        layers = layers.with_changes({number: number})
        copied += sum(
            len(layer)
            for layer in layers._layers
            if not any(layer is b for b in before)
        )
        before = layers._layers
    assert copied <= 4_096 * 13
