"""Pieces of C99 from which headers are made; $names are filled in."""

from __future__ import annotations

from string import Template

BEGINNING = Template("""\
/* Written by mbkl $version.
 *
$about\
 * x has ${name}_n_features values, NAN where one is missing.
 * Include this file in one place: it holds the tables of the model.
 */
#ifndef MBKL_${name}_INCLUDED
#define MBKL_${name}_INCLUDED

#include <math.h>
#include <stdint.h>
#include <string.h>

enum {
    ${name}_n_features = $n_features,
    ${name}_n_scores = $n_columns
};
""")

ABOUT_CLASSES = Template("""\
 * A classifier. ${name}_predict returns the number of a class, the label of which is
 * ${name}_labels[number].
""")

ABOUT_NUMBERS = Template("""\
 * A regression. ${name}_predict gives ${name}_n_scores numbers.
""")

CLASSES = Template("""\
enum { ${name}_n_classes = $n_classes };
""")

# Adds the table entries of stumps; $value is what the thresholds of a group divide.
STUMPS = Template("""\
static inline void ${own}_add(const float *x, float *scores)
{
    uint32_t group;
$before\
    for (group = 0; group < ${n_groups}u; group++) {
        const float value = $value;
        uint32_t low = ${own}_offsets[group], high = ${own}_offsets[group + 1u];
        uint32_t column;
        const float *entry;
        while (low < high) {
            const uint32_t middle = low + (high - low) / 2u;
            if (value > ${own}_thresholds[middle])
                low = middle + 1u;
            else
                high = middle;
        }
        entry = ${own}_tables + ${n_columns}u * (low + group);
        for (column = 0; column < ${n_columns}u; column++)
            scores[column] += entry[column];
    }
}
""")

# Whether the level of a category, which x holds the number of, is in the set of a stump.
IN_SET = Template("""\
static inline int ${own}_in_set(const float *x, uint32_t stump)
{
    const float value = x[${own}_features[stump]];
    const uint32_t n_levels = ${own}_n_levels[${own}_features[stump]];
    uint32_t cell = 0, place;
    if (value >= (float)n_levels)
        cell = n_levels + 1u;
    else if (!isnan(value))
        cell = value < 0.0f ? 1u : (uint32_t)value + 1u;
    place = (uint32_t)${own}_sets[stump] - 1u + cell;
    return (${own}_members[place >> 3] >> (place & 7u)) & 1;
}
""")

# $answer is that of a row to a stump.
FERNS = Template("""\
static inline void ${own}_add(const float *x, float *scores)
{
    uint32_t fern, stump = 0, raw = 0, cell = 0;
    for (fern = 0; fern < ${n_groups}u; fern++) {
        const uint32_t depth = ${own}_depths[fern], bits = ${own}_bits[fern];
        const uint32_t end = stump + depth;
        uint64_t outcome = 0;
        uint32_t column;
        const float *entry;
        for (; stump < end; stump++) {
            const int yes = $answer;
            outcome = (outcome << 1) | (uint64_t)yes;
        }
        if (depth > bits)
            outcome = (outcome * ${own}_factors[fern]) >> (64u - bits);
        entry = ${own}_tables + ${n_columns}u * (cell + ${own}_numbers[raw + (uint32_t)outcome]);
        for (column = 0; column < ${n_columns}u; column++)
            scores[column] += entry[column];
        raw += (uint32_t)1 << bits;
        cell += ${own}_n_cells[fern];
    }
}
""")

# What projections add to before the stumps on them.
PROJECTIONS = Template("""\
static inline void ${own}_prepare(const float *x, double *inputs)
{
    uint32_t feature;
    for (feature = 0; feature < ${n_features}u; feature++) {
        double value = ((double)x[feature] - ${own}_centre[feature]) / ${own}_scale[feature];
        if (isnan(value))
            value = 0.0;
$set_inputs\
    }
}

static inline float ${own}_project(const double *inputs, uint32_t group)
{
    double sum = 0.0;
    uint32_t place;
    for (place = $first; place < $end; place++)
        sum += $term;
    return (float)sum;
}
""")

SCORES = Template("""\
/* Scores: one for each class, of two classes one which is positive for the second; or the
 * predicted numbers, of counts their logarithms. */
static inline void ${name}_scores(const float *x, float *scores)
{
    uint32_t column;
    (void)x;
    for (column = 0; column < ${n_columns}u; column++)
        scores[column] = 0.0f;
$calls\
    for (column = 0; column < ${n_columns}u; column++)
        scores[column] += ${name}_intercept[column];
}
""")

PREDICT = Template("""\
/* Number of the predicted class. */
static inline int ${name}_predict(const float *x)
{
    float scores[${name}_n_scores];
    int best = 0, number;
    ${name}_scores(x, scores);
    if (${name}_n_scores == 1)
        return scores[0] > 0.0f;
    for (number = 1; number < ${name}_n_scores; number++)
        if (scores[number] > scores[best])
            best = number;
    return best;
}
""")

# $link is a function, or nothing.
PREDICT_NUMBER = Template("""\
/* The predicted number. */
static inline float ${name}_predict(const float *x)
{
    float score;
    ${name}_scores(x, &score);
    return $link(score);
}
""")

PREDICT_NUMBERS = Template("""\
/* The predicted number of each target. */
static inline void ${name}_predict(const float *x, float *predictions)
{
    float scores[${name}_n_scores];
    int number;
    ${name}_scores(x, scores);
    for (number = 0; number < ${name}_n_scores; number++)
        predictions[number] = $link(scores[number]);
}
""")

SOFTPLUS = Template("""\
/* What the probability of a class is in proportion to. */
static inline float ${name}_odds(float score)
{
    float scaled = (score + $offset) / $temperature;
    return (scaled > 0.0f ? scaled : 0.0f) + log1pf(expf(-fabsf(scaled)));
}

""")

# $term is a function of scores[number], of which each class has one, and the highest score.
PROBABILITIES = Template("""\
/* Probabilities of the classes. */
static inline void ${name}_probabilities(const float *x, float *probabilities)
{
    float scores[${name}_n_classes], highest = -INFINITY, sum = 0.0f;
    int number;
    ${name}_scores(x, scores);
    if (${name}_n_classes == 2) {
        scores[1] = scores[0];
        scores[0] = -scores[0];
    }
    for (number = 0; number < ${name}_n_classes; number++)
        if (scores[number] > highest)
            highest = scores[number];
    for (number = 0; number < ${name}_n_classes; number++) {
        probabilities[number] = $term;
        sum += probabilities[number];
    }
    for (number = 0; number < ${name}_n_classes; number++)
        probabilities[number] /= sum;
}
""")

FIND = Template("""\
static inline int ${name}_find(const char *text, const char *const *categories, int n)
{
    int place;
    for (place = 0; text != NULL && place < n; place++)
        if (strcmp(text, categories[place]) == 0)
            return place;
    return -1;
}
""")

FIND_NUMBER = Template("""\
static inline float ${name}_find_number(float value, const float *levels, int n)
{
    int place;
    for (place = 0; place < n; place++)
        if (value == levels[place])
            return (float)place;
    return isnan(value) ? NAN : (float)n;
}
""")

ENCODE = Template("""\
/* Features of a row of a table. numbers are the columns ${name}_numbers, NAN where one is
 * missing, and texts the columns ${name}_texts, NULL or "" where one is missing. True is 1,
 * a date the days since 1970-01-01, a time or a duration its seconds. */
static inline void ${name}_encode(const float *numbers, const char *const *texts, float *x)
{
    int place;
    (void)numbers;
    (void)texts;
    for (place = 0; place < ${name}_n_features; place++)
        x[place] = 0.0f;
$lines\
    (void)place;
}
""")
