// Which image of a `srcset` a browser takes: https://html.spec.whatwg.org/multipage/images.html. The choice among those
// that would do is the browser's; Chromium takes the smallest that has enough pixels, else the largest. A `screen` has
// `width_px`, as CSS counts, and `pixel_ratio`.

const CANDIDATE = /[\s,]*(\S*[^\s,])(?:\s+([^,]*))?(?:,|$)/g;
const LENGTH = /^([+-]?[0-9.]+)(px|em|rem|vw)$/i;
const WIDTH = /^\(\s*(min-width\s*:|max-width\s*:|width\s*[<>]=?)\s*(calc\([^()]*\)|[^()]+?)\s*\)$/;
const LIMITS = {
  'min-width:': (width, px) => width >= px,
  'max-width:': (width, px) => width <= px,
  'width>=': (width, px) => width >= px,
  'width<=': (width, px) => width <= px,
  'width>': (width, px) => width > px,
  'width<': (width, px) => width < px,
};
const EM_PX = 16; // of media queries and `sizes`, whatever the page's font
const ANY = { all: true, screen: true };

// Returns the address; null where the set names none. An image's own address (`fallback`) counts as one of one pixel for
// each of CSS.
export function chosen(srcset, sizes, screen, fallback = null) {
  const width_px = slot(sizes, screen);
  const offered = candidates(srcset, width_px);
  if (fallback && !offered.some((one) => one.wide || one.density === 1)) {
    offered.push({ address: fallback, density: 1 });
  }
  offered.sort((a, b) => a.density - b.density);
  const found = offered.find((one) => one.density >= screen.pixel_ratio) || offered[offered.length - 1];
  return found ? found.address : fallback;
}

// Each address once, with the pixels that it has for one of CSS; of equals the first counts.
function candidates(srcset, width_px) {
  const found = new Map();
  for (const [, address, descriptor] of srcset.matchAll(CANDIDATE)) {
    const [, number, unit] = /^([0-9.]+)([wx])$/.exec((descriptor || '1x').trim()) || [];
    const wide = unit === 'w';
    const density = wide ? Number(number) / width_px : Number(number);
    if (density > 0 && !found.has(density)) found.set(density, { address, density, wide });
  }
  return [...found.values()];
}

// The width in CSS pixels that the image gets: the first of `sizes` whose condition holds, else the whole screen.
function slot(sizes, screen) {
  for (const part of sizes.split(/,(?![^(]*\))/)) {
    const [, condition, length] = /^\s*(.*?)\s*(calc\([^()]*\)|[^\s()]+)\s*$/s.exec(part) || [];
    if (length === undefined || (condition && !matches(condition, screen))) continue;
    const width_px = pixels(length, screen);
    if (width_px !== null) return Math.max(width_px, 1);
  }
  return screen.width_px;
}

// Whether a media query holds on a screen; what it does not know does not.
export function matches(query, screen) {
  return query
    .toLowerCase()
    .split(',')
    .some((all) =>
      all
        .trim()
        .replace(/^only\s+/, '')
        .split(/\s+and\s+/)
        .every((one) => holds(one.trim(), screen)),
    );
}

function holds(condition, screen) {
  const [, limit, length] = WIDTH.exec(condition) || [];
  if (limit === undefined) return ANY[condition] === true;
  const px = pixels(length, screen);
  return px !== null && LIMITS[limit.replace(/\s/g, '')](screen.width_px, px);
}

// A length, or a sum of lengths in calc(), in CSS pixels; null for another.
function pixels(length, screen) {
  const sum = /^calc\(([^()]*)\)$/i.exec(length.trim());
  if (sum) {
    const terms = sum[1].trim().split(/\s+([+-])\s+/);
    const parts = terms.filter((_, i) => i % 2 === 0).map((term) => pixels(term, screen));
    if (parts.includes(null)) return null;
    return parts.reduce((total, part, i) => total + (terms[2 * i - 1] === '-' ? -part : part));
  }
  if (length.trim() === '0') return 0;
  const [, number, unit] = LENGTH.exec(length.trim()) || [];
  if (unit === undefined || Number.isNaN(Number(number))) return null;
  const each = { px: 1, em: EM_PX, rem: EM_PX, vw: screen.width_px / 100 };
  return Number(number) * each[unit.toLowerCase()];
}
