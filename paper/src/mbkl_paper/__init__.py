"""The paper behind mbkl: its rivals, data sets, image descriptors and experiments."""
