// The pages of a site.

import { parseHTML } from 'k6/html';

const NO_PAGE =
  /\.(css|js|mjs|map|png|jpe?g|gif|webp|avif|svg|ico|woff2?|ttf|zip|gz|tgz|bz2|xz|zst|pdf|mp[34]|webm|xml|rss|json|txt)$/i;
const NO_VISITOR =
  /\/(wp-admin|wp-login\.php|wp-json|xmlrpc\.php|feed|install|admin\.php|logout)(\/|$)|[?&](replytocom|share|action|_wpnonce)=/i;
const MOST_ELSEWHERE = 1000; // that are remembered
const FEWEST_ELSEWHERE = 5; // a page that links only to itself may link to some others

// The pages that a visitor may request: in order, each once, up to `most`.
export class Pages {
  constructor(site, most) {
    this.site = site;
    this.most = most;
    this.list = [];
    this.seen = new Set();
    this.elsewhere = new Map(); // links to other origins, each once
  }

  get full() {
    return this.list.length >= this.most;
  }

  add(link, from) {
    const address = this.site.resolve(link, from);
    if (address === null) this.addElsewhere(link);
    if (address === null || this.full || this.seen.has(address)) return;
    const path = address.slice(this.site.origin.length);
    if (NO_PAGE.test(path.split('?')[0]) || NO_VISITOR.test(path)) return;
    this.seen.add(address);
    this.list.push(address);
  }

  addElsewhere(link) {
    const origin = this.site.elsewhere(link);
    if (origin === null) return;
    const links = this.elsewhere.get(origin) || new Set();
    if (links.size < MOST_ELSEWHERE && (links.size > 0 || this.elsewhere.size < MOST_ELSEWHERE)) {
      this.elsewhere.set(origin, links.add(link));
    }
  }

  // Where the site's own links lead if not to itself: the origin most linked to, and by how many links; null if the list
  // has more than the front page, or these are rather what any page links to.
  get led() {
    if (this.list.length > 1) return null;
    const host = (one) => one.replace(/^https?:\/\/(www\.)?/, '').replace(/:[0-9]+$/, '');
    const own = host(this.site.origin);
    const all = [...this.elsewhere].map(([origin, links]) => [origin, links.size]);
    const found = all.filter(([origin, count]) => host(origin) === own || count >= FEWEST_ELSEWHERE);
    return found.sort((a, b) => b[1] - a[1])[0] || null;
  }

  addLinks(html, from) {
    parseHTML(html)
      .find('a[href]')
      .each((_, element) => this.add(element.getAttribute('href'), from));
  }

  // The addresses in a sitemap or feed; those of further sitemaps are returned.
  addListed(xml, from) {
    const further = [];
    for (const found of xml.matchAll(/<(?:loc|link)>\s*(?:<!\[CDATA\[)?\s*([^<\]\s]+)/g)) {
      const link = found[1].replace(/&#0?38;|&amp;/g, '&');
      if (/\.xml(\.gz)?$/.test(link)) further.push(link);
      else this.add(link, from);
    }
    return further;
  }
}
