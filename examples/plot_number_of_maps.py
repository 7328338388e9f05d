"""
How many maps, and which?
=========================

More random maps make a model better up to a point, and never much worse, because their kernel tends
to a limit. How many maps that takes depends on the family. The data are handwritten digits, 8 by 8
pixels.
"""

# %%
# The number of maps is per family: "auto" with 300 draws 300 stumps and 300 ferns.

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from mbkl import MBKLClassifier

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
numbers = (30, 100, 300, 1_000, 3_000)
families = ("auto", "ferns", "stumps", "projections")

accuracy = {}
for family in families:
    for number in numbers:
        model = MBKLClassifier(maps=family, n_maps=number, random_state=0).fit(X_train, y_train)
        accuracy[family, number] = 100 * model.score(X_test, y_test)

print(f"{'accuracy, %':14s}" + "".join(f"{number:>8,}" for number in numbers))
for family in families:
    print(f"{family:14s}" + "".join(f"{accuracy[family, number]:8.1f}" for number in numbers))

# %%
# Digits are shapes: pixels say more together than each by itself. So the error of stumps levels off
# above that of ferns. Projections start slowly because sixteen maps share a direction: thirty maps
# look in two directions only.

figure, axis = plt.subplots(figsize=(7, 3.8))
for family in families:
    errors = [100 - accuracy[family, number] for number in numbers]
    axis.loglog(numbers, errors, "o-", label=family)
ticks = (2, 5, 10, 20, 50)
axis.set_yticks(ticks, [f"{tick} %" for tick in ticks])
axis.minorticks_off()
axis.set(title="Error on new digits", xlabel="number of maps")
axis.legend()
plt.show()
