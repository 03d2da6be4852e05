/** A place in source code becomes an address on the web, by the rules of the server's owner. Pure. */

interface Rule {
  readonly prefix: string;
  readonly address: string;
}

const PLACE = /^(.+?):(\d{1,7})(?::\d{1,7})?$/;
const MOST = 4096;

/** The part of a path below a prefix, null if it is elsewhere. The empty prefix is every relative path. */
function below(path: string, prefix: string): string | null {
  if (!prefix) return path.startsWith('/') ? null : path;
  return path.startsWith(`${prefix}/`) ? path.slice(prefix.length + 1) : null;
}

/**
 * The address of `file:line`, or null. Paths come from traces: each part is escaped, and a path with `.` or
 * `..` gets no link, since it could lead out of the folder that the rule names.
 */
export function sourceLink(place: string, rules: readonly Rule[]): string | null {
  const match = place.length <= MOST ? PLACE.exec(place) : null;
  const [, path = '', line = ''] = match ?? [];
  if (!match) return null;
  for (const { prefix, address } of rules) {
    const rest = below(path, prefix);
    if (rest === null) continue;
    const parts = rest.split('/');
    if (parts.some((part) => !part || part === '.' || part === '..' || part.includes('\\'))) return null;
    if (!/^https?:\/\//.test(address)) return null;
    let escaped: string;
    try {
      escaped = parts.map(encodeURIComponent).join('/');
    } catch {
      return null; // half of a surrogate pair
    }
    // As functions: `$` in a path is not a pattern.
    return address.includes('{path}')
      ? address.replaceAll('{path}', () => escaped).replaceAll('{line}', () => line)
      : `${address.replace(/\/$/, '')}/${escaped}#L${line}`;
  }
  return null;
}

const TORCH_FRAME = /^([^():]+\.pyx?)\((\d+)\): /;

/** `/app/train.py:15` of PyTorch's frame `/app/train.py(15): step`; empty for other names. */
export function placeOfFrame(name: string): string {
  const match = TORCH_FRAME.exec(name);
  return match ? `${match[1]}:${match[2]}` : '';
}
