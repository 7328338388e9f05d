"""A frame with categories: bars for levels, steps for numbers, and who interacts."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from mbkl import MBKLClassifier
from mbkl.plot import ShapeFunctionDisplay

generator = np.random.default_rng(0)
n = 1_000
flats = pd.DataFrame(
    {
        "quarter": generator.choice(["harbour", "hills", "old town", "station", "west end"], n),
        "size": generator.choice(["S", "M", "L"], n),
        "furnished": generator.random(n) < 0.4,
        "year": generator.integers(1900, 2020, n).astype(float),
    }
)
flats["size"] = pd.Categorical(flats["size"], ["S", "M", "L"], ordered=True)
wanted = flats["quarter"].isin(["hills", "old town"]) * 1.5 + (flats["size"] == "L") * 1.0
wanted += ((flats["size"] == "S") & flats["furnished"]) * 1.5
rent = np.where(wanted + 0.4 * generator.normal(size=n) > 1.2, "high", "low")
flats.loc[generator.random(n) < 0.1, "quarter"] = None
flats.loc[generator.random(n) < 0.2, "year"] = np.nan

explanation = MBKLClassifier(random_state=0).fit(flats, rent).explain_global(flats)
widths = {"width_ratios": [3, 2, 2, 3, 3]}
figure, axes = plt.subplots(1, 5, figsize=(13, 3.2), layout="constrained", gridspec_kw=widths)
ShapeFunctionDisplay.from_explanation(
    explanation, ["quarter", "size", "furnished", "year"], ax=axes[:4]
)
names = [explanation.feature_names[feature] for feature in explanation.pair_features]
axes[4].imshow(explanation.pair_strengths, cmap="Blues")
axes[4].set_xticks(range(4), names, rotation=40, ha="right")
axes[4].set_yticks(range(4), names)
axes[4].set_title("Strength of pairs")
plt.show()
