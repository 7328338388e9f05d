"""All limits of size: which algorithm is used, and on how many rows.

None of them changes a result's meaning.

The command beside a limit measures the times that set it, on two cores (for GPUs: on an H200 with
16 cores): change the number, run it again and compare. Limits without a command were set by hand.
"""

from __future__ import annotations

# Loops ----------------------------------------------------------------------------------------

# Codes times columns below which a pass takes NumPy a few milliseconds, and loading the compiled
# loops would take longer than the whole fit (python -m benchmarks.speed uci).
SMALL = 300_000
# Fewest codes that are worth handing to a thread, which takes up to a hundred microseconds
# (python -m benchmarks.speed prediction).
SMALLEST_SHARE = 300_000
# Rows below which NumPy makes all comparisons with thresholds at once
# (python -m benchmarks.speed prediction).
FEW_ROWS_TO_BIN = 16
# Rows up to which prediction by stumps needs no compiled loop (the same command).
FEW_ROWS_TO_PREDICT = 4

# Files and devices ----------------------------------------------------------------------------

# Most rows whose codes `take` always reads into memory (python -m benchmarks.scale out_of_core).
FEW_ROWS_OF_A_FILE = 4_096
# Rows up to which the codes of ferns are only read to form the kernel matrix, a few times
# (python -m benchmarks.speed uci).
FEW_ROWS_OF_FERNS = 200

# Work below which the CPU is faster than a GPU, whose calls take time: codes times columns of a
# pass over drawn maps; all codes of grown ferns, each read once; all codes of rows to predict,
# which must be copied there first (python -m benchmarks.gpu).
CODES_ON_A_DEVICE = 100_000_000
GROWN_CODES_ON_A_DEVICE = 10_000_000
CODES_TO_PREDICT_ON_A_DEVICE = 10_000_000
# Columns from which on a GPU multiplies matrices faster than it looks up table entries.
MANY_COLUMNS_ON_A_DEVICE = 16
# Fewest bytes that are copied through page-locked memory (python -m benchmarks.gpu).
BYTES_WORTH_STAGING = 8_000_000

# Which maps, and how many (mbkl.maps, but for growth)

# Rows on which maps="auto" learns rates and ridge, and on which it compares candidate kernels.
ROWS_OF_A_CHOICE, ROWS_OF_CANDIDATES = 1_000, 500
# Differences between two values of a feature in a sample, which take about a second.
DIFFERENCES_OF_A_SAMPLE = 400_000_000
# Range of rows where the errors of the choice are too optimistic: cross-validation repeats it.
FEWEST_ROWS_TO_CHOOSE_AGAIN, MOST_ROWS_TO_CHOOSE_AGAIN = 20, 300
# Features up to which interactions of two, and of three, are searched for.
FEATURES_FOR_PAIRS, FEATURES_FOR_TRIPLES = 300, 64
# Most rows and values that quantiles are estimated from (to less than a percent), and fewest rows.
ROWS_OF_QUANTILES, VALUES_OF_QUANTILES, FEWEST_ROWS_OF_QUANTILES = 20_000, 20_000_000, 1_000
# The same for ferns, where finer quantiles do not improve accuracy (python -m benchmarks.suite).
ROWS_OF_QUANTILES_OF_FERNS = 1_000
# Values that the thresholds of fine stumps are taken from, and fewest and most rows of them.
VALUES_OF_THRESHOLDS, ROWS_OF_THRESHOLDS = 4_000_000, (4_000, 200_000)
# Up to this many codes the kernel matrix takes more time than the ferns, so that maps="auto" draws
# more ferns than enough, up to the most (python -m benchmarks.suite).
CHEAP_CODES, ENOUGH_FERNS, MOST_FERNS = 8_000_000, 1_000, 4_000
# Most codes of ferns: for many rows fewer ferns are drawn, down to the fewest.
CODES_OF_FERNS, FEWEST_FERNS = 400_000_000, 200

# Which solver (mbkl.solvers.choose)

# Rows up to which Step 2 with the squared hinge, and more weights than rows, uses the kernel matrix
# of the rows, which serves all classes, costs and folds.
FEW_ROWS_GRAM = 5_000
# The same for regression losses that take several Newton steps, and whose cost is searched for.
FEW_ROWS_OTHER_LOSSES = 1_500
# Rows of that search for a cost, whose time grows with their third power.
ROWS_OF_A_COST = 800
# Rows of a search over maps and costs: each candidate takes the kernel matrix of every fold. Twice
# as many rows take twice as long and choose no better
# (python -m benchmarks.suite --methods MBKLClassifierCV).
ROWS_OF_A_SEARCH = 2_000
# Rows of a regression that maps are drawn for in a mixture, where grown ferns see all rows.
ROWS_DRAWN_FOR_NUMBERS = 4_000
# Rows up to which Step 2 with the hinge uses the interior-point method. Other methods approach its
# kink through a path of smooth losses.
FEW_ROWS_HINGE = 2_000
# The same for problems where rounding has stopped another solver.
FEW_ROWS_STUCK = 300

# Some of the rows (Step 2 with many rows)

# With more than FEW_ROWS_GRAM rows, probabilities are calibrated by the kernel matrix of the first
# number of rows; for losses other than the squared hinge by a fit to part of the second number.
ROWS_TO_CALIBRATE, ROWS_OF_A_PART = 700, 3_000
# Problems, and rows of each class, from which on a device solves all problems at once sooner than
# one after the other through that matrix (python -m benchmarks.gpu.imagenet).
PROBLEMS_AT_ONCE, ROWS_OF_A_CLASS = 100, 8
# Rows with curvature are copied for a Newton system if they are less than this share of all rows
# (python -m benchmarks.speed.growth).
WORTH_COPYING = 0.8

# Through the kernel matrix (mbkl.solvers.gram_newton)

# Rows from which on a solver uses threads (python -m benchmarks.speed.uci).
WORTH_THREADS = 500
# Rows from which on a third of them gives all columns a common start
# (python -m benchmarks.speed.growth).
WORTH_A_COMMON_PART = 600

# Most rows with cross-validated scores, by which one temperature is calibrated.
ROWS_LEFT_OUT = 500
# Fewest rows of a regression on which the width of its intervals is learned.
FEWEST_ROWS_OF_A_SPREAD = 100
# Rows on which a model is checked for predicting the same class everywhere.
ROWS_TO_TRY = 20_000

# Some of the maps (mbkl.solvers.barrier)

# Pairs up to which Step 1 is solved with the matrix of some of the maps
# (python -m mbkl_paper.experiments.step_1 --sets osr).
FEW_PAIRS = 4_000

# Growth (mbkl.maps.grown_ferns)

# Rows above which maps="auto" grows ferns in place of random ones; the limit is higher in a search,
# which finds better random ones (python -m benchmarks.suite).
ROWS_OF_GROWTH, ROWS_OF_GROWTH_AFTER_A_SEARCH = FEW_ROWS_GRAM, 10_000
# The same for regression. With a squared error, drawn maps are mixed with grown ferns up to the
# second number of rows: with more, mixing gains nothing on average
# (python -m benchmarks.suite --task regression).
ROWS_OF_GROWTH_FOR_NUMBERS, ROWS_OF_MIXTURES_FOR_NUMBERS = 20_000, 10_000
# Rows from which on classifiers mix grown ferns with drawn maps: fewer are not worth the time.
ROWS_OF_MIXTURES = 2_000
# The same for searches and for regression: with fewer rows the best mixture cannot be estimated.
FEWEST_ROWS_TO_MIX = 200
# Most growths that are averaged, and how many rows they see together at least: on few rows a growth
# takes little time and has a large variance (python -m benchmarks.suite; --all-rows).
MOST_GROWTHS, ROWS_OF_ALL_GROWTHS = 4, 20_000
# Most ferns in a mixture with drawn maps for classes, and in the growths that estimate the mixture
# for regression: two growths. Four are no better and take a third longer
# (python -m benchmarks.suite --methods MBKLClassifier).
FERNS_OF_A_MIXTURE = 2_000
# The same in each fold of cross-validation: one growth, which nearly always ends sooner.
FERNS_OF_A_FOLD = 1_000
# With more rows a fern sees half at most, or ferns chosen side by side would ask the same.
FEW_ROWS_OF_GROWTH = 4_000
# Rows that the stumps of a fern are chosen on, at the smallest and at the largest depth.
ROWS_OF_A_FERN = (16_000, 130_000)
# Most validation rows for early stopping, and the fewest that can choose the ridge.
MOST_ROWS_TO_END_GROWTH, FEWEST_ROWS_TO_SHRINK = 50_000, 5_000
# Levels up to which a category is put in order by its gradients.
MOST_LEVELS_IN_ORDER = 2**17
# Rows on which very many features are compared, to find those worth asking.
ROWS_OF_A_LOOK = 4_000
# Mean entries of a table from which on threads merge equal cells (python -m benchmarks.gpu).
ENTRIES_WORTH_THREADS = 10_000

# Explanations (mbkl.explain)

# Fewest rows of a global explanation.
FEWEST_ROWS_TO_EXPLAIN = 25
# Values and bounds that set the number of rows for the importances of columns.
VALUES_OF_IMPORTANCES, ROWS_OF_IMPORTANCES = 10_000_000, (8, 64)
