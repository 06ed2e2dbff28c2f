"""Making a broken history legal without losing any of it (`ullage.wires.repair.apply`)."""
