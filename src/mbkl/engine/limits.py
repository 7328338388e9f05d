"""All limits of size: which way is taken, and how many rows are looked at.

None of them changes a result's meaning.

A command shows the times that a limit was set by, on two cores (those of GPUs: on an H200 beside 16
cores): change the number here, run it again, and compare. Limits without one were set by hand.
"""

from __future__ import annotations

# Loops ----------------------------------------------------------------------------------------

# Codes times columns of a pass below which NumPy finishes in a few milliseconds, and loading
# compiled loops would take longer than the whole fit (python -m benchmarks.speed uci).
SMALL = 300_000
# Codes below which a share of the work costs less than handing it to a thread, which takes up
# to a hundred microseconds (python -m benchmarks.speed prediction).
SMALLEST_SHARE = 300_000
# Rows below which all comparisons with thresholds are made at once
# (python -m benchmarks.speed prediction).
FEW_ROWS_TO_BIN = 16
# Rows up to which prediction by stumps needs no compiled loop (the same command).
FEW_ROWS_TO_PREDICT = 4

# Where rows are -------------------------------------------------------------------------------

# Rows that codes in files are taken into memory for (python -m benchmarks.scale out_of_core).
FEW_ROWS_OF_A_FILE = 4_096
# Rows up to which the codes of ferns are read a few times only, to form the kernel matrix
# (python -m benchmarks.speed uci).
FEW_ROWS_OF_FERNS = 200

# Codes times columns of a pass below which a GPU would wait for its calls longer
# than the cores beside it take; all those of grown ferns, which are read once, and of rows that
# are predicted, which have to be sent there (python -m benchmarks.gpu).
CODES_ON_A_DEVICE = 100_000_000
GROWN_CODES_ON_A_DEVICE = 10_000_000
CODES_TO_PREDICT_ON_A_DEVICE = 10_000_000
# Columns from which on matrix products are faster there than look-ups.
MANY_COLUMNS_ON_A_DEVICE = 16
# Fewer bytes are copied to a device and back as they are (python -m benchmarks.gpu).
BYTES_WORTH_STAGING = 8_000_000

# Which maps, and how many (mbkl.maps, but for growth)

# Rows on which maps="auto" learns what to draw, and those that candidates are compared on.
ROWS_OF_A_CHOICE, ROWS_OF_CANDIDATES = 1_000, 500
# Differences of two values that are formed of a sample: so many take about a second.
DIFFERENCES_OF_A_SAMPLE = 400_000_000
# With so few rows errors of the choice are too small: it is made again without each of the folds.
FEWEST_ROWS_TO_CHOOSE_AGAIN, MOST_ROWS_TO_CHOOSE_AGAIN = 20, 300
# Features up to which products of two, and of three, are looked at: the more, the longer it takes.
FEATURES_FOR_PAIRS, FEATURES_FOR_TRIPLES = 300, 64
# Rows and values that give quantiles to less than a percent, and rows where features are many.
ROWS_OF_QUANTILES, VALUES_OF_QUANTILES, FEWEST_ROWS_OF_QUANTILES = 20_000, 20_000_000, 1_000
# The same for ferns: closer quantiles change no accuracy (python -m benchmarks.suite).
ROWS_OF_QUANTILES_OF_FERNS = 1_000
# Values from which all thresholds of the finest stumps are taken, and bounds of their rows.
VALUES_OF_THRESHOLDS, ROWS_OF_THRESHOLDS = 4_000_000, (4_000, 200_000)
# Up to this many codes the kernel matrix is what takes time, not the ferns: with them maps="auto"
# draws more than enough ferns, up to the most (python -m benchmarks.suite).
CHEAP_CODES, ENOUGH_FERNS, MOST_FERNS = 8_000_000, 1_000, 4_000
# Codes for which there is time and memory: of many rows fewer ferns are drawn, down to the fewest.
CODES_OF_FERNS, FEWEST_FERNS = 400_000_000, 200

# Which solver (mbkl.solvers.choose)

# Step 2 with the squared hinge, up to so many rows and with more weights than rows: through the
# kernel matrix of the rows, which serves all classes, costs and folds.
FEW_ROWS_GRAM = 5_000
# The same for losses of numbers that take several steps, and whose cost is searched for.
FEW_ROWS_OTHER_LOSSES = 1_500
# That search looks at so many rows: its time grows with their third power.
ROWS_OF_A_COST = 800
# A search over maps and costs looks at so many rows: each candidate takes the kernel matrix of
# every fold. Twice as many take twice as long and choose no better
# (python -m benchmarks.suite --methods MBKLClassifierCV).
ROWS_OF_A_SEARCH = 2_000
# Maps are drawn for so many rows with numbers, where grown ferns see all of them.
ROWS_DRAWN_FOR_NUMBERS = 4_000
# Step 2 with the hinge, up to so many rows: the interior-point method. Its kink other methods
# approach through a path of smooth losses.
FEW_ROWS_HINGE = 2_000
# The same for what rounding has stopped elsewhere.
FEW_ROWS_STUCK = 300

# Some of the rows (Step 2 with many rows)

# With more than FEW_ROWS_GRAM rows, probabilities come from the kernel matrix of the first number
# of rows; with other losses than the squared hinge from a fit to the second, some of them held out.
ROWS_TO_CALIBRATE, ROWS_OF_A_PART = 700, 3_000
# On a device all of many problems at once are solved for sooner than one after the other through
# that matrix: from so many on, and with so many rows of each class
# (python -m benchmarks.gpu.imagenet).
PROBLEMS_AT_ONCE, ROWS_OF_A_CLASS = 100, 8
# Curved rows are copied for a Newton system where they are less than this share of all rows.
# `python -m benchmarks.speed.growth`
WORTH_COPYING = 0.8

# Through the kernel matrix (mbkl.solvers.gram_newton)

# Fewer rows are solved for sooner than a thread starts. `python -m benchmarks.speed.uci`
WORTH_THREADS = 500
# From so many rows on, a third of them gives the common start of all columns.
# `python -m benchmarks.speed.growth`
WORTH_A_COMMON_PART = 600

# So many rows are scored by models that have not seen them: more take longer, for one temperature.
ROWS_LEFT_OUT = 500
# Fewer rows with numbers do not tell where intervals are to be wide.
FEWEST_ROWS_OF_A_SPREAD = 100
# Of many rows so many show whether a model says one class for all.
ROWS_TO_TRY = 20_000

# Some of the maps (mbkl.solvers.barrier)

# Step 1 with up to so many pairs is solved with the matrix of some of the maps.
# `python -m mbkl_paper.experiments.step_1 --sets osr`
FEW_PAIRS = 4_000

# Growth (mbkl.maps.grown_ferns)

# Rows above which maps="auto" grows ferns in place of random ones, and that in a search, which
# finds better random ones (python -m benchmarks.suite).
ROWS_OF_GROWTH, ROWS_OF_GROWTH_AFTER_A_SEARCH = FEW_ROWS_GRAM, 10_000
# The same for numbers, whose rows are here up to there; with a squared error drawn maps are mixed
# with grown ferns up to the second number: with more rows they gain nothing in the mean
# (python -m benchmarks.suite --task regression).
ROWS_OF_GROWTH_FOR_NUMBERS, ROWS_OF_MIXTURES_FOR_NUMBERS = 20_000, 10_000
# Rows from which on classifiers mix grown ferns with drawn maps: with fewer it takes longer for
# less.
ROWS_OF_MIXTURES = 2_000
# The same for searches and for numbers: fewer rows cannot tell how much of either model is best.
FEWEST_ROWS_TO_MIX = 200
# Growths that are averaged, at most, and how many rows all of them together see at least: on few
# rows one takes little time, and differs from the next (python -m benchmarks.suite; --all-rows).
MOST_GROWTHS, ROWS_OF_ALL_GROWTHS = 4, 20_000
# Most ferns beside drawn maps of classes, and of those that tell how much of a mixture for numbers
# is to be grown: two growths. Four are no better there, and take a third longer
# (python -m benchmarks.suite --methods MBKLClassifier).
FERNS_OF_A_MIXTURE = 2_000
# The same without each fold of few rows with classes: one growth, which ends sooner nearly always.
FERNS_OF_A_FOLD = 1_000
# Of more rows a fern sees half at most: those chosen side by side would else ask the same.
FEW_ROWS_OF_GROWTH = 4_000
# Rows that the stumps of a fern are chosen on, from the least depth to the largest.
ROWS_OF_A_FERN = (16_000, 130_000)
# Most rows that are held out to end a growth, and the fewest that choose how much cells are shrunk.
MOST_ROWS_TO_END_GROWTH, FEWEST_ROWS_TO_SHRINK = 50_000, 5_000
# Levels of a category that rows tell an order of.
MOST_LEVELS_IN_ORDER = 2**17
# Rows that tell which of very many features promise most.
ROWS_OF_A_LOOK = 4_000
# Entries of a table from which on threads find equal cells faster (python -m benchmarks.gpu).
ENTRIES_WORTH_THREADS = 10_000

# Explanations (mbkl.explain)

# Rows of a global explanation where more would take long.
FEWEST_ROWS_TO_EXPLAIN = 25
# Rows that tell the importances of columns: as many as such values fit, within these bounds.
VALUES_OF_IMPORTANCES, ROWS_OF_IMPORTANCES = 10_000_000, (8, 64)
