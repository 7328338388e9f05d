/* Pieces of the header that `export_c` writes, with $names to be filled in. */

//// beginning
/* Written by mbkl $version.
 *
 * $about
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

//// stumps: Adds the table entries of stumps; $value is compared with the thresholds of a group.
static inline void ${family}_add(const float *x, float *scores)
{
$before    for (uint32_t group = 0; group < ${n_groups}u; group++) {
        const float value = $value;
        uint32_t low = ${family}_offsets[group], high = ${family}_offsets[group + 1u];
        while (low < high) {
            const uint32_t middle = low + (high - low) / 2u;
            if (value > ${family}_thresholds[middle])
                low = middle + 1u;
            else
                high = middle;
        }
        const int32_t *entry = ${family}_tables + ${n_columns}u * (low + group);
        for (uint32_t column = 0; column < ${n_columns}u; column++)
            scores[column] += ${family}_units[column] * (float)entry[column];
    }
}

//// in_set: Whether the level of a category, whose number is in x, is in the set of a stump.
static inline int ${family}_in_set(const float *x, uint32_t stump)
{
    const float value = x[${family}_features[stump]];
    const uint32_t n_levels = ${family}_n_levels[${family}_features[stump]];
    uint32_t cell = 0, place;
    if (value >= (float)n_levels)
        cell = n_levels + 1u;
    else if (!isnan(value))
        cell = value < 0.0f ? 1u : (uint32_t)value + 1u;
    place = (uint32_t)${family}_sets[stump] - 1u + cell;
    return (${family}_members[place >> 3] >> (place & 7u)) & 1;
}

//// ferns: $answer is the answer of a stump for a row.
static inline void ${family}_add(const float *x, float *scores)
{
    uint32_t stump = 0, raw = 0, cell = 0;
    for (uint32_t fern = 0; fern < ${n_groups}u; fern++) {
        const uint32_t depth = ${family}_depths[fern], bits = ${family}_bits[fern];
        const uint32_t end = stump + depth;
        uint64_t outcome = 0;
        for (; stump < end; stump++)
            outcome = (outcome << 1) | (uint64_t)($answer);
        if (depth > bits)
            outcome = (outcome * ${family}_factors[fern]) >> (64u - bits);
        const uint32_t number = ${family}_numbers[raw + (uint32_t)outcome];
        const int32_t *entry = ${family}_tables + ${n_columns}u * (cell + number);
        for (uint32_t column = 0; column < ${n_columns}u; column++)
            scores[column] += ${family}_units[column] * (float)entry[column];
        raw += (uint32_t)1 << bits;
        cell += ${family}_n_cells[fern];
    }
}

//// projections: Computes the projections on which stumps then work.
static inline void ${family}_prepare(const float *x, double *inputs)
{
    for (uint32_t feature = 0; feature < ${n_features}u; feature++) {
        const double value = ((double)x[feature] - ${family}_centre[feature]) / ${family}_scale[feature];
        inputs[feature] = isnan(value) ? 0.0 : value;
    }
}

static inline float ${family}_project(const double *inputs, uint32_t group)
{
    double sum = 0.0;
    for (uint32_t place = ${family}_starts[group]; place < ${family}_starts[group + 1u]; place++)
        sum += inputs[${family}_inputs[place]] * ${family}_weights[place];
    return (float)sum;
}

//// scores
/* Scores: one for each class, of two classes one which is positive for the second; or the
 * predicted numbers, of counts their logarithms. */
static inline void ${name}_scores(const float *x, float *scores)
{
    (void)x;
    for (uint32_t column = 0; column < ${n_columns}u; column++)
        scores[column] = 0.0f;
$calls    for (uint32_t column = 0; column < ${n_columns}u; column++)
        scores[column] += ${name}_intercept[column];
}

//// predict
enum { ${name}_n_classes = $n_classes };

/* Number of the predicted class. */
static inline int ${name}_predict(const float *x)
{
    float scores[${name}_n_scores];
    int best = 0;
    ${name}_scores(x, scores);
    if (${name}_n_scores == 1)
        return scores[0] > 0.0f;
    for (int number = 1; number < ${name}_n_scores; number++)
        if (scores[number] > scores[best])
            best = number;
    return best;
}

//// predict_number: $link is a function, or empty for the identity.
/* The predicted number. */
static inline float ${name}_predict(const float *x)
{
    float score;
    ${name}_scores(x, &score);
    return $link(score);
}

//// predict_numbers
/* The predicted number of each target. */
static inline void ${name}_predict(const float *x, float *predictions)
{
    float scores[${name}_n_scores];
    ${name}_scores(x, scores);
    for (int number = 0; number < ${name}_n_scores; number++)
        predictions[number] = $link(scores[number]);
}

//// softplus
/* What the probability of a class is in proportion to. */
static inline float ${name}_odds(float score)
{
    float scaled = (score + $offset) / $temperature;
    return (scaled > 0.0f ? scaled : 0.0f) + log1pf(expf(-fabsf(scaled)));
}

//// probabilities: $term is a function of scores[number], the score of a class, and the highest score.
/* Probabilities of the classes. */
static inline void ${name}_probabilities(const float *x, float *probabilities)
{
    float scores[${name}_n_classes], highest = -INFINITY, sum = 0.0f;
    ${name}_scores(x, scores);
    if (${name}_n_classes == 2) {
        scores[1] = scores[0];
        scores[0] = -scores[0];
    }
    for (int number = 0; number < ${name}_n_classes; number++)
        if (scores[number] > highest)
            highest = scores[number];
    for (int number = 0; number < ${name}_n_classes; number++) {
        probabilities[number] = $term;
        sum += probabilities[number];
    }
    for (int number = 0; number < ${name}_n_classes; number++)
        probabilities[number] /= sum;
}

//// find: The number of the level of a value: NAN if it is missing, the count of levels if it is new.
static inline float ${name}_find_$kind($type value, $type const *levels, int n)
{
    int place = 0;
    if ($is_missing)
        return NAN;
    while (place < n && $is_other)
        place++;
    return (float)place;
}

//// encode
/* Features of a row of a table. numbers are the columns ${name}_numbers, NAN where one is
 * missing, and texts the columns ${name}_texts, NULL or "" where one is missing. True is 1,
 * a date the days since 1970-01-01, a time or a duration its seconds. */
static inline void ${name}_encode(const float *numbers, const char *const *texts, float *x)
{
    (void)numbers;
    (void)texts;
$lines}
