// The files of a page, as a browser with a screen of some width fetches them.

import { parseHTML } from 'k6/html';
import { chosen, matches } from './srcset.js';

const NAMED = /(^|\s)(stylesheet|preload|modulepreload)(\s|$)/i;
const ICON = /(^|\s)icon(\s|$)/i;
const WANTED_ICON_PX = 32; // of a tab, on a screen of two pixels to a point
// What <picture> may offer; browsers pass over other types.
const IMAGE_TYPE = /^(image\/(avif|jxl|webp|jpeg|png|gif|apng|svg\+xml|x-icon|bmp))?$/i;
// WordPress loads this script where the browser lacks an emoji.
const EMOJI_SCRIPT = /"(?:concatemoji|twemoji|wpemoji)":("(?:[^"\\]|\\.)*")/g;
const KINDS = [
  [/\.(css|m?js)$/i, 'css-js'],
  [/\.(woff2?|ttf|otf|eot)$/i, 'font'],
  [/\.(png|jpe?g|gif|webp|avif|svg|ico|bmp)$/i, 'image'],
];

// The files of the same host, in the order in which a browser meets them, the icon last: `usualIcon` (or null) where the
// page names none. `screen` has `width_px`, as CSS counts, and `pixel_ratio`.
export function filesOf(html, address, site, screen, usualIcon) {
  const found = new Set();
  const add = (link) => {
    const file = link && site.resolve(link, address);
    if (file && file !== address) found.add(file);
  };
  const icons = [];
  parseHTML(html)
    .find('link[href], link[imagesrcset], script[src], img')
    .each((_, element) => {
      const kind = element.nodeName();
      if (kind === 'script') add(attribute(element, 'src'));
      else if (kind === 'img') add(image(element, screen));
      else if (ICON.test(attribute(element, 'rel'))) icons.push(element);
      else if (NAMED.test(attribute(element, 'rel'))) {
        const { href, imagesrcset, imagesizes } = attributes(element, ['href', 'imagesrcset', 'imagesizes']);
        add(imagesrcset ? chosen(imagesrcset, imagesizes, screen, href) : href);
      }
    });
  for (const [, script] of html.matchAll(EMOJI_SCRIPT)) add(text(script));
  add(icon(icons) || usualIcon);
  return [...found];
}

export function kindOf(address) {
  const path = address.split('?')[0];
  const known = KINDS.find(([pattern]) => pattern.test(path));
  return known ? known[1] : 'other file';
}

// What a browser takes for an <img>: of the sources of its <picture> the first that fits, else its own.
function image(element, screen) {
  const { src, srcset, sizes } = attributes(element, ['src', 'srcset', 'sizes']);
  const parent = element.parentElement();
  if (parent && parent.nodeName() === 'picture') {
    for (const child of parent.children()) {
      const source = attributes(child, ['srcset', 'sizes', 'media', 'type']);
      const fits = IMAGE_TYPE.test(source.type) && (!source.media || matches(source.media, screen));
      const address = child.nodeName() === 'source' && fits ? chosen(source.srcset, source.sizes, screen) : null;
      if (address) return address;
    }
  }
  return srcset ? chosen(srcset, sizes, screen, src) : src;
}

// The smallest icon that is large enough for a tab, else the largest; of equals the last, as the standard has it.
function icon(elements) {
  let best = null;
  for (const element of elements) {
    const { href, sizes } = attributes(element, ['href', 'sizes']);
    const edge_px = sizes.toLowerCase() === 'any' ? WANTED_ICON_PX : Number.parseInt(sizes, 10) || 0;
    const enough = edge_px >= WANTED_ICON_PX;
    const rank = enough ? 1 / edge_px : edge_px - WANTED_ICON_PX;
    if (best === null || rank >= best.rank) best = { href, rank };
  }
  return best && best.href;
}

function text(json) {
  try {
    return JSON.parse(json);
  } catch (_) {
    return null;
  }
}

function attributes(element, names) {
  return Object.fromEntries(names.map((name) => [name, attribute(element, name)]));
}

function attribute(element, name) {
  const found = element.getAttribute(name);
  return found === undefined || found === null ? '' : String(found);
}
