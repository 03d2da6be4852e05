/**
 * The request for the first picture, sent as soon as run and tool are known: while the server still reads the
 * file for the list of tools, before this tool's code and layout have loaded. It is small, because it is
 * loaded with the page itself.
 */

import { fetchPayload } from '../../../api/client';

export const TOOL = 'trace_viewer';

/** If no host is chosen, this many are opened; more are a click away in the side bar. */
export const FIRST_HOSTS = 4;

const MIN_WIDTH_PX = 500;
const MAX_WIDTH_PX = 4000;

/**
 * The width next to the timeline, in CSS pixels: as it was last time; initially the side bar, the margin, the
 * names.
 */
const BESIDE_KEY = 'tpuprof.trace_viewer.beside';
const FIRST_BESIDE_PX = 486;

/** A picture requested at another width is good enough between these shares of the displayed width. */
const LEAST_SHARE = 0.8;
const MOST_SHARE = 1.5;

let askedPx = 0;

function firstWidth(devicePx: number): number {
  return Math.min(MAX_WIDTH_PX, Math.max(MIN_WIDTH_PX, Math.round(devicePx)));
}

/** The pixels to request the whole trace for: those of the prefetched picture, if it is good enough. */
export function widthOfWhole(devicePx: number): number {
  const width = firstWidth(devicePx);
  return askedPx >= LEAST_SHARE * width && askedPx <= MOST_SHARE * width ? askedPx : width;
}

export function rememberWidth(widthPx: number): void {
  window.localStorage.setItem(BESIDE_KEY, String(Math.round(window.innerWidth - widthPx)));
}

/** `nHosts`: of the run. Failures are ignored: the page repeats the request and reports the error. */
export function askAhead(run: string, hosts: readonly string[], nHosts: number): void {
  if (nHosts === 0 || (hosts.length === 0 && nHosts > FIRST_HOSTS)) return;
  const besidePx = Number(window.localStorage.getItem(BESIDE_KEY) ?? FIRST_BESIDE_PX);
  askedPx = firstWidth((window.innerWidth - besidePx) * (window.devicePixelRatio || 1));
  void fetchPayload({ tool: TOOL, run, hosts, params: { width_px: String(askedPx) } }, 'columns').catch(
    () => undefined,
  );
}
