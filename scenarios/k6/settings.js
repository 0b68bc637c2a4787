// What a script is told: environment variables PLIMSOLL_…, so that `k6 run` alone can use it as well.

export function text(name, otherwise = '') {
  return __ENV[`PLIMSOLL_${name}`] || otherwise;
}

export function number(name, otherwise) {
  const given = text(name);
  const value = given === '' ? otherwise : Number(given);
  if (!Number.isFinite(value)) throw new Error(`PLIMSOLL_${name}: ${given} is no number`);
  return value;
}

export function flag(name) {
  return ['1', 'true', 'yes'].includes(text(name).toLowerCase());
}

// Seconds of '90', '90s', '2m' or '1h'.
export function seconds(given) {
  const found = /^([0-9.]+)(s|m|h)?$/.exec(given.trim());
  if (!found) throw new Error(`${given}: is no duration such as 30s or 2m`);
  return Number(found[1]) * { s: 1, m: 60, h: 3600 }[found[2] || 's'];
}
