"""The report: tables, pictures, what was not reached, and how it was measured."""

from __future__ import annotations

import csv
import datetime
from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from mbkl_paper.experiments import figures, shortfall, tables
from mbkl_paper.experiments.collection import Collection
from mbkl_paper.experiments.common import machine, markdown_table, say, versions
from mbkl_paper.experiments.sets import SEED
from mbkl_paper.experiments.systems import COSTS, MBKL, SWEPT, SYSTEMS
from mbkl_paper.experiments.tables import Row

PAGE = "REPORT.md"


class Page:
    """A page of Markdown in a folder, with its tables as CSV and its pictures as PNG."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pieces: list[str] = []
        folder.mkdir(parents=True, exist_ok=True)

    def add(self, *paragraphs: str, notes: Sequence[str] = ()) -> None:
        """Add paragraphs and a list."""
        self.pieces += paragraphs
        if notes:
            self.pieces.append("\n".join(f"- {note}" for note in notes))

    def add_table(self, rows: list[Row], name: str) -> None:
        """Add a table, and write it as CSV."""
        self.pieces.append(markdown_table(rows))
        self.write_csv(rows, name)

    def add_picture(self, figure: Figure, name: str, what: str) -> None:
        """Save a picture and add it."""
        figure.savefig(self.folder / f"{name}.png", dpi=100)
        self.pieces.append(f"![{what}]({name}.png)")

    def write_csv(self, rows: list[Row], name: str) -> None:
        """Write rows as a CSV file, without the marks of Markdown."""
        with (self.folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(rows[0])
            writer.writerows(
                [str(value).replace("**", "") for value in row.values()] for row in rows
            )

    def write(self) -> Path:
        """Write the page."""
        path = self.folder / PAGE
        path.write_text("\n\n".join(self.pieces) + "\n", encoding="utf-8")
        return path


def write(collection: Collection, folder: Path, command: str, analysed: str | None) -> Path | None:
    """Write the report of what is measured, and return its path.

    Parameters
    ----------
    collection : Collection
    folder : Path
    command : str
        What repeats the measurement.
    analysed : str or None
        The set of Figures 2 and 3.
    """
    if not collection.cells:
        say("nothing is measured yet, so there is no report")
        return None
    page = Page(folder)
    _head(page, collection, command)
    _data_sets(page, collection)
    _accuracy(page, collection)
    _learning(page, collection)
    if analysed is not None and collection.has(analysed, MBKL.name):
        _kernels(page, collection, analysed)
    if analysed is not None and any(collection.sizes(analysed, system) for system in SWEPT):
        _number_of_maps(page, collection, analysed)
    _test_time(page, collection)
    _shortfall(page, collection)
    page.add("## How it was measured", notes=_METHOD)
    say(f"the report is {page.write()}")
    return folder / PAGE


def _head(page: Page, collection: Collection, command: str) -> None:
    page.add(
        "# The experiments of the paper",
        "G. Roig, X. Boix, L. Van Gool, *Random Decision Stumps for Kernel Learning and Efficient "
        "SVM*, ACCV 2014, with this library and the data at hand. Printed figures stand in "
        "parentheses after ours.",
        f"`{command}`",
        f"{datetime.date.today().isoformat()}; {machine()}.  \n{versions()}.",
    )
    if collection.n_outdated:
        page.add(
            f"{collection.n_outdated} results of mbkl were measured with another state of its "
            "source; the command measures them again."
        )


def _data_sets(page: Page, collection: Collection) -> None:
    page.add("## Data sets")
    page.add_table(tables.data_sets(collection), "data_sets")
    stand_ins = [
        f"{problem.title}: {problem.benchmark.stand_in}"
        for problem in collection.problems.values()
        if problem.benchmark.stand_in
    ]
    note = (
        "Sizes are those of one split. The paper's row of test images is permuted and has a typing "
        "error; what stands in parentheses is corrected. Minutes are those of choosing costs, "
        "fitting and testing, without the descriptors of images."
    )
    page.add(notes=[note, *stand_ins])


def _accuracy(page: Page, collection: Collection) -> None:
    page.add("## Accuracy")
    page.add_table(tables.accuracy(collection), "accuracy")
    failures = [
        f"{SYSTEMS[system].label} failed on {collection.problems[name].title}: {message}"
        for (name, system), message in collection.failures.items()
        if system in SYSTEMS
    ]
    notes = [
        "Per cent of the test rows, mean ± standard deviation over splits, and the printed figure; "
        "our best in bold, - where it is not measured yet. Stand-ins do not compare with the "
        "printed figures. Empty cells are left out on purpose: on ImageNet there are the systems "
        "that the paper has there, and on Daimler with several HOGs those that scale.",
        "MBKL is this library's form of the paper's: stumps, θ learned as the minimum with θ >= 0 "
        "and moved towards equal weights, where folds gain by it. MBKL (as published) is "
        "Algorithm 1 as its authors ran it: liblinear's l1 SVM without θ >= 0, tolerance 0.01, one "
        "cost a sample for both steps, weights that are not positive dropped; signs by shares and "
        "√θ in Step 2, other readings are under 'Other forms'. MBKL (default) is "
        "MBKLClassifierCV() without any choice by the user, which the paper does not have: it "
        "joins stumps with ferns and does not learn θ. MBKL proj. has 10,000 maps at most.",
    ]
    page.add(notes=[*notes, *failures])
    page.add("The same as a mean over the classes:")
    page.add_table(tables.accuracy(collection, "balanced_accuracy"), "accuracy_by_class")
    page.add("Every measurement, with its costs and times, is a line of `results.jsonl`.")


def _learning(page: Page, collection: Collection) -> None:
    rows = tables.learning(collection)
    if not rows:
        return
    page.add("## Learning parameters of MBKL")
    page.add_table(rows, "learning")
    notes = [
        "Times are medians over splits, of one thread here and of four cores in the paper, at the "
        "chosen costs. Kept maps are a mean over splits; in our form maps that divide the training "
        "rows alike are one, and a shrinkage of θ above zero keeps all of them.",
        "'Auto', where the paper does not say how many maps: 64 a feature, at least 2,000.",
        "The gap is the relative duality gap at which Step 1 ended, the largest over splits. Above "
        "the tolerance, 0.001, its iterations were used up and θ is not the optimum.",
    ]
    page.add(notes=notes)


def _kernels(page: Page, collection: Collection, name: str) -> None:
    problem = collection.problems[name]
    data, settings = problem.part(0), problem.settings
    kernels = figures.compare(
        data.X_train,
        data.y_train,
        n_maps=settings.n_maps,
        negatives_per_positive=settings.negatives_per_positive,
        random_state=SEED,
    )
    page.add(f"## Figure 2: distances and kernels, {problem.title}")
    picture = figures.figure_2(kernels, problem.benchmark.class_names, problem.title)
    page.add_picture(picture, "figure_2", "distances and kernel matrices")
    ones, learned = kernels.contrast(kernels.ones), kernels.contrast(kernels.learned)
    notes = [
        "Contrast: by how many standard deviations of pairs of two classes the kernel is larger "
        f"for pairs of one class. Learning θ changes it from {ones:.2f} to {learned:.2f}, on the "
        "rows that it learned from; here θ is not moved towards equal weights.",
        "Rows are sorted by class; colours span the 1st to the 99.5th percentile off the diagonal.",
    ]
    page.add(notes=notes)


def _number_of_maps(page: Page, collection: Collection, name: str) -> None:
    page.add(f"## Figure 3: number of initial maps, {collection.problems[name].title}")
    page.add_picture(figures.figure_3(collection, name), "figure_3", "number of initial maps")
    note = (
        f"Means over the first {collection.n_swept_splits(name)} of "
        f"{len(collection.problems[name].splits)} splits, one thread, at the costs chosen with the "
        "number of maps of the tables; systems that are not drawn are not measured yet. "
        "Maps kept by the l1-SVM are those that any class uses; θ = 1 keeps all that differ."
    )
    page.add(notes=[note])


def _test_time(page: Page, collection: Collection) -> None:
    names = [
        name
        for name, problem in collection.problems.items()
        if collection.has(name, MBKL.name) and not problem.settings.squash
    ]
    if not names:
        return
    page.add("## Figure 4: test time and accuracy relative to MBKL")
    page.add_picture(figures.figure_4(collection, names), "figure_4", "test time and accuracy")
    note = (
        "One thread each; medians over splits of the time of predicting all test rows from their "
        "features. In the shaded corner a system is faster and more accurate than MBKL in the "
        "paper's form. Liver and Sonar are left out, as in the paper."
    )
    page.add(notes=[note])


def _shortfall(page: Page, collection: Collection) -> None:
    page.add("## What was not reached, and what was tried")
    for rows, name, before, note in (
        (shortfall.targets(collection), "targets", (), _TARGETS),
        (shortfall.orderings(collection), "orderings", ("Where only the order compares:",), ""),
        (
            shortfall.descriptors(collection),
            "descriptors",
            ("What the descriptor does on Daimler:",),
            _DESCRIPTORS,
        ),
        (shortfall.tried(collection), "tried", ("Other forms of MBKL:",), _TRIED),
    ):
        if rows:
            page.add(*before)
            page.add_table(rows, name)
            page.add(notes=[note] if note else ())


_TARGETS = (
    "The target is the printed accuracy of MBKL, and a distance to the best rival of the paper's "
    "table as measured here. The other forms of MBKL are held against the same. The "
    "standard error is that of the mean over splits, as if they were independent."
)
_DESCRIPTORS = (
    "The length of 558 is that of the 31-channel HOG with 6 x 3 cells; its other parameters are in "
    "a supplement that we do not have. Here images are enlarged to 42 x 96 pixels, with 6 "
    "more on each side, cells of 18 pixels and the logarithm of the grey values, as a linear SVM "
    "liked it best on training images. Several HOGs have cells of 6, 9 and 12 pixels, "
    "differences over 1, 2 and 4 pixels, and the logarithm of the grey values."
)
_TRIED = (
    "Each has its costs chosen on training rows; 'choice' is the accuracy in that "
    "cross-validation. The last row of a set takes in every split the form whose choice was best: "
    "test rows have no part in it. 'θ as learned' is not moved towards equal weights, nor are "
    "the forms of Steps 0 and 2."
)
_METHOD = (
    f"C is one of {', '.join(f'{cost:g}' for cost in COSTS)} for every system, by accuracy in "
    "stratified cross-validation on training rows alone (5 folds; 3 for a-PASCAL and sets of "
    "images), the smallest of equals. At most 2,000 training rows (1,000 for ImageNet, all for "
    "Daimler) take part in the choice, drawn by class; all are fitted with it. Kernel matrices and "
    "explicit maps are computed once for all costs. On Daimler, where neighbours are shifted and "
    "mirrored copies, costs are learned on one training set and judged on the other.",
    "C does not mean the same everywhere: in liblinear and libsvm it is the cost of a row. In MBKL "
    "losses are averaged and θ sums to one, so that the same grid reaches other strengths; its C "
    "is the usual one at 1,000 rows. In its form of the paper C is chosen with equal weights, and "
    "θ is learned with C_kernel = 1 and moved nine tenths of the way to equal weights, where folds "
    "gain by it at that C; an older version chose among more shrinkages. The same folds choose its "
    "thresholds, with θ learned and with θ = 1: drawn as in the paper, uniformly and at random, or "
    "spread evenly over the stumps of a feature and every other one at a quantile; older results "
    "have the former. θ as learned has C_kernel of 0.01, 0.1 or 1 chosen with C. Costs of MBKL "
    "found on a part of the rows stay as they are; "
    "those of others, which are costs of a row, too.",
    "Random forests have 100 trees of depth 50, on Liver and Sonar 50 of depth 10, and AdaBoost "
    "has 500 rounds, as in the paper. PmSVM has the grid like all others; the paper takes its "
    "default.",
    "Liver and Sonar: attributes go through a logistic function after standardising by the "
    "training rows; OSR: its six attributes through the logistic function, those of training "
    "images by models that have not seen them. Visual words and the like are learned from the "
    "training images of each split.",
    "Kernel SVMs are one-vs-rest, as MBKL is. MBKL has the signs of Step 0 corrected, √θ in Step 2 "
    "and the squared hinge in both steps.",
    "Times were taken with up to four such measurements side by side on two cores, and on a "
    "machine that others may use: seconds are upper bounds.",
)
