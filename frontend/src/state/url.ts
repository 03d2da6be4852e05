/**
 * The selection as text in the URL's hash, next to TensorBoard's own plugin name:
 *
 *     #profile&p.profile.run=train%2F2026_11_20&p.profile.tool=trace_viewer&p.profile.start_ps=0
 *
 * Keys of the form p.<plugin>.<name> are TensorBoard's convention for a plugin's state. TensorBoard preserves
 * unknown pairs of the hash; but it restores the query string of load time on every Back and Forward, so
 * changing state cannot be stored there. A query is read only if the hash has no selection (hand-written
 * links).
 */

export interface Selection {
  run: string;
  tool: string;
  /** Empty: the server's default. */
  hosts: readonly string[];
  params: Readonly<Record<string, string>>;
}

export interface ParsedHash {
  /** The plugin that TensorBoard shows; empty: not known yet. */
  tab: string;
  /** Pairs that are not ours, kept as they are. */
  others: readonly (readonly [string, string])[];
  selection: Selection;
}

const RESERVED = new Set(['run', 'tool', 'hosts']);

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function hostList(text: string): string[] {
  return text ? text.split(',').map(decode) : [];
}

function select(pairs: Map<string, string>): Selection {
  const params = Object.fromEntries([...pairs].filter(([name]) => !RESERVED.has(name)));
  return {
    run: pairs.get('run') ?? '',
    tool: pairs.get('tool') ?? '',
    hosts: hostList(pairs.get('hosts') ?? ''),
    params,
  };
}

/** `hash` and `search` as `location` has them. */
export function parseUrl(hash: string, search: string, plugin: string): ParsedHash {
  const prefix = `p.${plugin}.`;
  const ownPairs = new Map<string, string>();
  const others: [string, string][] = [];
  let tab = '';
  for (const part of hash.replace(/^#/, '').split('&')) {
    const cut = part.indexOf('=');
    if (cut < 0) tab ||= part;
    if (cut < 0) continue;
    const name = decode(part.slice(0, cut));
    const value = decode(part.slice(cut + 1));
    if (name.startsWith(prefix)) ownPairs.set(name.slice(prefix.length), value);
    else others.push([name, value]);
  }
  if (!ownPairs.size)
    for (const [name, value] of new URLSearchParams(search))
      if (RESERVED.has(name)) ownPairs.set(name, value);
  return { tab, others, selection: select(ownPairs) };
}

/** The hash, with its "#". Names sorted so that equal selections give equal links. */
export function formatHash(selection: Selection, plugin: string, others: ParsedHash['others'] = []): string {
  const ownPairs: [string, string][] = [];
  if (selection.run) ownPairs.push(['run', selection.run]);
  if (selection.tool) ownPairs.push(['tool', selection.tool]);
  // A comma within a host's name must not split it.
  if (selection.hosts.length)
    ownPairs.push([
      'hosts',
      selection.hosts.map((host) => host.replace(/[%,]/g, encodeURIComponent)).join(','),
    ]);
  const params = Object.entries(selection.params).sort(([a], [b]) => (a < b ? -1 : 1));
  const pairs = [
    ...others,
    ...[...ownPairs, ...params].map(([name, value]): [string, string] => [`p.${plugin}.${name}`, value]),
  ];
  return `#${[plugin, ...pairs.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`)].join('&')}`;
}

/** `params` with the change applied; undefined or empty removes a name. */
export function changeParams(
  params: Selection['params'],
  change: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  const merged = { ...params, ...change };
  return Object.fromEntries(
    Object.entries(merged).filter(
      (pair): pair is [string, string] => pair[1] !== undefined && pair[1] !== '',
    ),
  );
}
