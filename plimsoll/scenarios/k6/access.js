// What a guarded site asks for: headers, cookies, a certificate. `plimsoll scenario` has read it from files, of which it has
// refused those that others may read; a script that is run alone reads them itself.

import encoding from 'k6/encoding';

const HOST = /^https?:\/\/(?:[^@/]*@)?(\[[^\]]*\]|[^/:]+)/i;

// To be called while a script is loaded: only then can k6 open files.
export function accessOf(settings) {
  if (/^https?:\/\/[^/]*@/i.test(settings.target))
    throw new Error('PLIMSOLL_TARGET: must not contain a user or password; set PLIMSOLL_BASIC_AUTH_FILE');
  const given = settings.access || {};
  const headers = { ...given.headers };
  const cookies = { ...given.cookies };
  if (settings.header_file) {
    for (const [name, value] of pairs(settings.header_file, ':')) headers[name] = value;
  }
  if (settings.basic_auth_file) {
    const [line] = open(settings.basic_auth_file).split(/\r?\n/);
    headers.Authorization = `Basic ${encoding.b64encode(line)}`;
  }
  if (settings.cookie_file) {
    for (const [name, value] of pairs(settings.cookie_file, '=')) cookies[name] = value;
  }
  const cert = settings.client_cert ? open(settings.client_cert) : given.cert;
  const key = settings.client_cert ? open(settings.client_key || settings.client_cert) : given.key;
  const domains = [HOST.exec(settings.target || '')?.[1]];
  return { headers, cookies, tlsAuth: cert ? [{ domains, cert, key }] : [] };
}

// The two halves of each line that is neither empty nor a comment.
function pairs(path, sign) {
  return open(path)
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line && !line.startsWith('#'))
    .map((line, i) => {
      const at = line.indexOf(sign);
      if (at < 1) throw new Error(`${path}: entry ${i + 1} has no ${sign}`); // never what it says
      return [line.slice(0, at).trim(), line.slice(at + 1).trim()];
    });
}
