"""
Numbers as targets
==================

``MBKLRegressor`` predicts numbers, with intervals and the effect of each feature.
"""

# %%
# Friedman's function: two features act together, one is curved, two are straight, five are noise.

import matplotlib.pyplot as plt
from sklearn.datasets import make_friedman1
from sklearn.model_selection import train_test_split

from mbkl import MBKLRegressor
from mbkl.plot import PredictionDisplay, ShapeFunctionDisplay

X, y = make_friedman1(2_000, noise=1.0, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=1_000, random_state=0)
model = MBKLRegressor(random_state=0).fit(X_train, y_train)
lower, upper = model.predict_interval(X_test, coverage=0.9).T
print(f"R2 {model.score(X_test, y_test):.3f}")
print(f"{((lower <= y_test) & (y_test <= upper)).mean():.1%} are within their 90 % interval")

# %%
# Dots on the dashed line are predicted exactly. The width of the intervals comes from the residuals
# of held-out rows: here mostly noise, whose standard deviation is one.

PredictionDisplay.from_estimator(model, X_test, y_test)
plt.show()

# %%
# The effect of the curved and of a straight feature, in the unit of the target.

ShapeFunctionDisplay.from_estimator(model, X_train, features=[2, 3])
plt.show()
