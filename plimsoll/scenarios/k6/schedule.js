// When visits are due: k6's own arithmetic (its lib/executor), so that a visit can say how late it began.

import { seconds } from './settings.js';

// Visits a second as k6 wants them, in whole numbers a unit of time.
function whole(rates) {
  for (const [unit, times] of [
    ['1s', 1],
    ['1m', 60],
  ]) {
    if (rates.every((rate) => Number.isInteger(Math.round(rate * times * 1e6) / 1e6))) return [unit, times];
  }
  return ['1h', 3600];
}

// Stages '30s:10,2m:50': within 30 s to 10, within two more minutes to 50.
export function stages(text) {
  return text.split(',').map((part) => {
    const [duration, target] = part.split(':');
    const value = Number(target);
    if (target === undefined || !(value >= 0)) throw new Error(`${part}: is not a stage such as 30s:10`);
    return { duration_s: seconds(duration), target: value };
  });
}

export function upAndDown(duration_s, most) {
  return [
    [1, most],
    [2, most],
    [1, 0],
  ].map(([share, target]) => ({ duration_s: (duration_s * share) / 4, target }));
}

export const MODELS = {
  'constant-arrival-rate': (settings) => {
    const [timeUnit, times] = whole([settings.rate]);
    const rate = Math.max(Math.round(settings.rate * times), 1);
    const period_ms = Math.floor((times * 1e9) / rate) / 1e6; // k6 cuts off below a nanosecond
    return {
      options: { rate, timeUnit, duration: `${settings.duration_s * 1000}ms`, ...visitors(settings, settings.rate) },
      duration_ms: settings.duration_s * 1000,
      due_ms: (n) => n * period_ms,
      interval_ms: () => period_ms,
    };
  },
  'ramping-arrival-rate': (settings) => {
    const steps = settings.stages || upAndDown(settings.duration_s, settings.rate);
    const [timeUnit, times] = whole(steps.map((step) => step.target));
    const rounded = steps.map((step) => ({ ...step, target: Math.round(step.target * times) }));
    return {
      options: {
        startRate: 0,
        timeUnit,
        stages: forK6(rounded),
        ...visitors(settings, Math.max(...steps.map((step) => step.target))),
      },
      duration_ms: total_s(steps) * 1000,
      ...ramp(rounded.map((step) => ({ ...step, target: step.target / times }))),
    };
  },
  'ramping-vus': (settings) => {
    const steps = settings.stages || upAndDown(settings.duration_s, settings.visitors);
    const rounded = steps.map((step) => ({ ...step, target: Math.round(step.target) }));
    return { options: { startVUs: 0, stages: forK6(rounded) }, duration_ms: total_s(steps) * 1000 };
  },
};

// The visitors that are needed when each visit takes as long as its thinking and a second a page, and thrice as many.
function visitors(settings, rate) {
  const needed = Math.ceil(rate * settings.pages_per_visit * (settings.think_s + 1)) + 10;
  const most = settings.max_visitors || Math.min(3 * needed, Math.max(needed, 20000));
  return { preAllocatedVUs: Math.min(needed, most), maxVUs: most };
}

// Visit n (from 0) of a ramp is due when the area under the rates has reached n + 1.
function ramp(steps) {
  const find = (n) => {
    let before_s = 0;
    let from = 0;
    let area = n + 1;
    for (const { duration_s, target } of steps) {
      const all = (duration_s * (from + target)) / 2;
      if (area <= all) {
        const x =
          from === target
            ? area / target
            : (from * duration_s -
                Math.sqrt(Math.max(duration_s * (from * from * duration_s + 2 * area * (target - from)), 0))) /
              (from - target);
        return { at_s: before_s + x, rate: from + ((target - from) * x) / duration_s };
      }
      area -= all;
      before_s += duration_s;
      from = target;
    }
    return { at_s: before_s, rate: Math.max(from, 1) };
  };
  return { due_ms: (n) => find(n).at_s * 1000, interval_ms: (n) => 1000 / Math.max(find(n).rate, 1e-3) };
}

const total_s = (steps) => steps.reduce((sum, step) => sum + step.duration_s, 0);
const forK6 = (steps) =>
  steps.map((step) => ({ duration: `${Math.round(step.duration_s * 1000)}ms`, target: step.target }));
