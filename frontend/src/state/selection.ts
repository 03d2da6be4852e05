/**
 * The selection (run, tool, hosts, the tool's parameters) as signals, synchronized with the URL of
 * TensorBoard's window.
 */
import { batch, computed, signal } from '@preact/signals';
import { hostWindow } from '../base/frame';
import { changeParams, formatHash, parseUrl, type Selection } from './url';

export type How = 'push' | 'replace';

/**
 * Streams of small changes (zoom, typing) reach the URL at most this often; browsers refuse more than about 6
 * a second.
 */
const REPLACE_DELAY_MS = 250;

const chosen = signal<Selection>({ run: '', tool: '', hosts: [], params: {} });
let plugin = 'profile';
let pending: number | undefined;

export const run = computed(() => chosen.value.run);
export const tool = computed(() => chosen.value.tool);
export const hosts = computed(() => chosen.value.hosts);
export const toolParams = computed(() => chosen.value.params);
/** Whether TensorBoard shows our tab. */
export const isTabShown = signal(true);

function currentUrl(): ReturnType<typeof parseUrl> {
  const { hash, search } = hostWindow().location;
  return parseUrl(hash, search, plugin);
}

function write(how: How): void {
  window.clearTimeout(pending);
  pending = undefined;
  const { tab, others } = currentUrl();
  if (tab && tab !== plugin) return;
  const host = hostWindow();
  const url = new URL(host.location.href);
  url.hash = formatHash(chosen.value, plugin, others);
  if (url.href === host.location.href) return;
  // TensorBoard keeps a namespace id in the state: preserve it.
  if (how === 'push') host.history.pushState(host.history.state, '', url);
  else host.history.replaceState(host.history.state, '', url);
}

/** Changes the selection. `push`: Back undoes it. `replace`: the same step, written a little later. */
export function choose(change: Partial<Selection>, how: How = 'push'): void {
  if (how === 'push' && pending !== undefined) write('replace');
  chosen.value = { ...chosen.value, ...change };
  if (how === 'push') write('push');
  else pending ??= window.setTimeout(() => write('replace'), REPLACE_DELAY_MS);
}

/**
 * Goes to a tool; its parameters are reset. A parameter `hosts` selects hosts: it belongs to the page, not to
 * the tool.
 */
export function openTool(name: string, params: Readonly<Record<string, string>> = {}): void {
  const { hosts: names, ...ownParams } = params;
  choose({ tool: name, params: ownParams, ...(names ? { hosts: names.split(',') } : {}) });
}

export function setToolParams(
  change: Readonly<Record<string, string | undefined>>,
  { replace }: { replace: boolean },
): void {
  choose({ params: changeParams(chosen.value.params, change) }, replace ? 'replace' : 'push');
}

/** The URL of a selection, to be copied or opened in another window. */
export function linkTo(change: Partial<Selection> = {}): string {
  const url = new URL(hostWindow().location.href);
  // Removes a hand-written query once it has been copied into the hash.
  for (const name of ['run', 'tool', 'hosts']) url.searchParams.delete(name);
  url.hash = formatHash({ ...chosen.value, ...change }, plugin, currentUrl().others);
  return url.href;
}

function read(): void {
  const { tab, selection } = currentUrl();
  const isShown = !tab || tab === plugin;
  batch(() => {
    isTabShown.value = isShown;
    if (!isShown) return;
    window.clearTimeout(pending);
    pending = undefined;
    chosen.value = selection;
  });
}

/** Starts following the URL; returns a function that stops it. */
export function followUrl(pluginName: string): () => void {
  plugin = pluginName;
  const host = hostWindow();
  host.addEventListener('popstate', read);
  host.addEventListener('hashchange', read);
  read();
  return () => {
    host.removeEventListener('popstate', read);
    host.removeEventListener('hashchange', read);
  };
}
