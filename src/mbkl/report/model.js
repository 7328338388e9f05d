"use strict";

// The model: every score is a sum of table entries, as in Python.

function unpack(packed) {
  const text = atob(packed.bytes);
  const bytes = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
  return new globalThis[packed.array](bytes.buffer);
}

function unpackAll(part) {
  return Object.fromEntries(Object.entries(part).map(([name, value]) => [name, value.bytes === undefined ? value : unpack(value)]));
}

// The number of thresholds from first to last - 1 below x; 0 for a missing value.
function countBelow(thresholds, first, last, x) {
  const value = Math.fround(x);
  let low = first, high = last;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (value > thresholds[middle]) low = middle + 1;
    else high = middle;
  }
  return low - first;
}

const families = {
  StumpMaps(part, row, add) {
    for (let group = 0; group + 1 < part.offsets.length; group += 1) {
      const first = part.offsets[group];
      const code = countBelow(part.thresholds, first, part.offsets[group + 1], row[part.features[group]]);
      add(part.tables, first + group + code);
    }
  },

  FernMaps(part, row, add) {
    let stump = 0, raw = 0, cell = 0;
    part.depths.forEach((depth, fern) => {
      const bits = part.bits[fern];
      add(part.tables, cell + part.numbers[raw + cellOf(part, row, fern, stump, stump + depth, bits)]);
      stump += depth;
      raw += 2 ** bits;
      cell += part.n_cells[fern];
    });
  },

  ProjectionMaps(part, row, add) {
    const n = part.centre.length;
    const places = Float32Array.from({ length: part.offsets.length - 1 }, (_, projection) => {
      let place = 0;
      for (let i = 0; i < n; i += 1) {
        const value = (row[i] - part.centre[i]) / part.scale[i];
        if (!Number.isNaN(value)) place += part.directions[projection * n + i] * value;
      }
      return place;
    });
    families.StumpMaps({ ...part, features: [...places.keys()] }, places, add);
  },
};
families.CategoryMaps = families.StumpMaps;

// The outcomes of a fern's stumps are the bits of a number; long numbers are hashed.
function cellOf(part, row, fern, first, last, bits) {
  const isRight = (k) => (part.sets && part.sets[k] ? isInSet(part, row, k)
    : Math.fround(row[part.features[k]]) > part.thresholds[k]);
  if (last - first <= bits) {
    let number = 0;
    for (let k = first; k < last; k += 1) number = 2 * number + isRight(k);
    return number;
  }
  let number = 0n;
  for (let k = first; k < last; k += 1) number = 2n * number + (isRight(k) ? 1n : 0n);
  return Number(BigInt.asUintN(64, number * part.factors[fern]) >> BigInt(64 - bits));
}

// Whether the level of a category, whose number is in the row, is in the set of a stump.
function isInSet(part, row, k) {
  const level = row[part.features[k]], most = part.n_levels[part.features[k]];
  const cell = Number.isNaN(level) ? 0 : Math.min(Math.trunc(level), most) + 1;
  const place = part.sets[k] - 1 + cell;
  return ((part.members[place >> 3] >> (place & 7)) & 1) === 1;
}

function makeModel(packed) {
  const parts = packed.parts.map(unpackAll);
  const n = packed.intercept.length;
  return function scores(row) {
    const total = new Float64Array(n);
    for (const part of parts) {
      families[part.kind](part, row, (tables, cell) => {
        for (let column = 0; column < n; column += 1) total[column] += tables[cell * n + column];
      });
    }
    return total.map((value, column) => value + packed.intercept[column]);
  };
}
