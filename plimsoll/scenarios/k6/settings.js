// A script's settings: one JSON document, made from the scenario's Python model and passed in PLIMSOLL_SETTINGS.
// A script that is run alone has no document. It takes the defaults that were written from the same model, changed by
// variables such as PLIMSOLL_RATE=20.

const READERS = {
  text: (name, text) => text,
  flag: (name, text) => ['1', 'true', 'yes'].includes(text.toLowerCase()),
  json: (name, text) => JSON.parse(text),
  number: (name, text) => {
    const value = Number(text);
    if (!Number.isFinite(value)) throw new Error(`${name}: ${text} is not a number`);
    return value;
  },
};

// `defaults` is the text of a file of k6/defaults/.
export function readSettings(defaults) {
  if (__ENV.PLIMSOLL_SETTINGS) return JSON.parse(__ENV.PLIMSOLL_SETTINGS);
  const settings = {};
  for (const [key, { kind, value }] of Object.entries(JSON.parse(defaults))) {
    const name = `PLIMSOLL_${key.toUpperCase()}`;
    settings[key] = __ENV[name] ? READERS[kind](name, __ENV[name]) : value;
  }
  return settings;
}

// Seconds of '90', '90s', '2m' or '1h'.
export function seconds(text) {
  const found = /^([0-9.]+)(s|m|h)?$/.exec(text.trim());
  if (!found) throw new Error(`${text}: is not a duration such as 30s or 2m`);
  return Number(found[1]) * { s: 1, m: 60, h: 3600 }[found[2] || 's'];
}

// The statistics of k6's own summary, on the terminal and in k6-summary.json.
export const SUMMARY = ['avg', 'min', 'med', 'max', 'p(90)', 'p(99)', 'p(99.9)', 'count'];
