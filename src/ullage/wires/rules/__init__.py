"""The providers' wire rules as one strict judge (`ullage.wires.rules.checker`)."""
