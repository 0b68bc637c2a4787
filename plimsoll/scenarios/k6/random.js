// Seeded random numbers: visit n of a seed reads the same pages with the same pauses, whichever visitor makes it.

export function generator(seed, n) {
  let state = (Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(n + 1, 0xc2b2ae35)) >>> 0;
  return () => {
    // mulberry32, by Tommy Ettinger (public domain)
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

// Chooses indexes 0 … count − 1 so that number i is asked for in proportion to 1 / (i + 1)^skew, as Zipf found.
export function skewed(count, skew) {
  const sums = [];
  let sum = 0;
  for (let i = 0; i < count; i++) {
    sum += (i + 1) ** -skew;
    sums.push(sum);
  }
  return (chance) => {
    const at = chance() * sum;
    let low = 0;
    let high = count - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (sums[middle] > at) high = middle;
      else low = middle + 1;
    }
    return low;
  };
}
