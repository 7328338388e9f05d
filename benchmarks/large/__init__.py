"""Many rows: accuracy, log loss and time at full size, beside boosting and forests."""
