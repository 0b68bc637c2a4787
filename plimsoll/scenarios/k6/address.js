// Addresses of one site. Whatever a page links to, only paths are taken from it: the host is always the target's.

const PARTS = /^(https?):\/\/([^/?#\\]+)([^?#]*)(\?[^#]*)?/i;
const PORTS = { http: ':80', https: ':443' };

function origin(scheme, authority) {
  const host = authority.toLowerCase();
  const usual = PORTS[scheme.toLowerCase()];
  return `${scheme.toLowerCase()}://${host.endsWith(usual) ? host.slice(0, -usual.length) : host}`;
}

export class Site {
  constructor(base) {
    const found = PARTS.exec(base);
    if (!found)
      throw new Error(`PLIMSOLL_TARGET: ${base || 'nothing'} is not a base URL such as http://127.0.0.1:8080`);
    this.origin = origin(found[1], found[2]);
    this.front = `${this.origin}${found[3].replace(/\/+$/, '')}/`;
  }

  // Where a whole address of http or https leads that is not on this site: its origin; null for others.
  elsewhere(link) {
    const given = String(link).trim();
    const whole = PARTS.exec(given.startsWith('//') ? `${/^[a-z]+:/.exec(this.origin)[0]}${given}` : given);
    const led = whole && !/[\x00-\x20]/.test(given) ? origin(whole[1], whole[2]) : null;
    return led === this.origin ? null : led;
  }

  // The absolute address that `link` on the page `from` leads to; null if that is not on this site.
  resolve(link, from = this.front) {
    const given = String(link).trim().replace(/#.*$/s, '');
    if (given === '' || /[\x00-\x20\\]/.test(given)) return null;
    const whole = PARTS.exec(given.startsWith('//') ? `${/^[a-z]+:/.exec(this.origin)[0]}${given}` : given);
    if (whole)
      return origin(whole[1], whole[2]) === this.origin ? this.origin + tidy(whole[3] || '/') + (whole[4] || '') : null;
    if (/^[a-z][a-z0-9+.-]*:/i.test(given) || given.startsWith('//')) return null; // mailto:, data:, javascript:
    const base = PARTS.exec(from);
    if (given.startsWith('?')) return this.origin + (base[3] || '/') + given;
    const [path, query] = halves(given);
    const folder = (base[3] || '/').replace(/[^/]*$/, '');
    return this.origin + tidy(path.startsWith('/') ? path : folder + path) + query;
  }
}

function halves(given) {
  const at = given.indexOf('?');
  return at < 0 ? [given, ''] : [given.slice(0, at), given.slice(at)];
}

function tidy(path) {
  const kept = [];
  const parts = path.split('/').slice(1);
  parts.forEach((part, i) => {
    const last = i === parts.length - 1;
    if (part === '..') kept.pop();
    if (part === '.' || part === '..') {
      if (last) kept.push('');
    } else kept.push(part);
  });
  return `/${kept.join('/')}`;
}
