/**
 * The capture that runs or has just ended: started, polled, cancelled; found again after a reload; its run
 * opened when it is ready.
 */
import { computed, signal } from '@preact/signals';
import {
  fetchCaptureInfo,
  fetchCaptureStatus,
  postCancel,
  postCapture,
  type CaptureInfo,
  type CaptureRequest,
  type CaptureStatus,
} from '../api/capture';
import { ApiError } from '../api/client';
import { recall, remember } from '../base/storage';
import { loadRuns } from './catalog';
import { asApiError } from './payload';
import { choose, isTabShown, run, tool } from './selection';

const POLL_MS = 200;
const SLOWEST_POLL_MS = 5000;
/**
 * The capture that this browser tab started: others on the same server are shown, but their runs are not
 * opened automatically.
 */
const OWN_KEY = 'tpuprof.capture.own';

/** The server's capture options; null: not known yet. */
export const captureInfo = signal<CaptureInfo | null>(null);
export const captureInfoError = signal<ApiError | null>(null);
/** The last known state. Null: none, the form is shown. */
export const capture = signal<CaptureStatus | null>(null);
export const isStarting = signal(false);
/** Why the last start was refused. */
export const startError = signal<ApiError | null>(null);
/** The server has not answered for a while; polling continues. */
export const isSilent = signal(false);
export const isCaptureOpen = signal(false);
/** The capture ended while its dialog was hidden, and the outcome is unread. */
export const hasNews = signal(false);
export const isCapturing = computed(() => isStarting.value || capture.value?.state === 'running');
/** The page that monitors a running job; the URL treats it like a tool. */
export const MONITOR = 'monitor';

let followed = 0;

const sleep = (ms: number): Promise<void> => new Promise((resolve) => window.setTimeout(resolve, ms));

export async function loadCaptureInfo(): Promise<CaptureInfo | null> {
  try {
    captureInfo.value = await fetchCaptureInfo();
    captureInfoError.value = null;
    return captureInfo.value;
  } catch (error) {
    captureInfoError.value = asApiError(error);
    return null;
  }
}

/**
 * Runs `request` with the token; if it is refused, TensorBoard may have been restarted: retries once with a
 * new token.
 */
export async function withToken<T>(request: (token: string) => Promise<T>): Promise<T> {
  const info = captureInfo.value ?? (await loadCaptureInfo());
  try {
    return await request(info?.token ?? '');
  } catch (error) {
    if (!(error instanceof ApiError) || error.kind !== 'forbidden' || error.parameter) throw error;
    const fresh = await loadCaptureInfo();
    if (!fresh || fresh.token === info?.token) throw error;
    return request(fresh.token);
  }
}

function gone(id: string, error: ApiError): CaptureStatus {
  return {
    capture: id,
    state: 'failed',
    run: '',
    elapsed_ms: 0,
    message: error.message,
    remedy: error.remedy,
    targets: [],
  };
}

/** The page that the user was on when the capture began. */
interface Place {
  run: string;
  tool: string;
}

function openRun(name: string): void {
  choose({ run: name, hosts: [], params: {}, tool: tool.value === MONITOR ? '' : tool.value });
}

/**
 * Opens the captured run, unless the user has hidden the dialog and left the page meanwhile: then the chip
 * offers it.
 */
async function end(status: CaptureStatus, from: Place | null): Promise<void> {
  const isWhole = status.state === 'done' && status.targets.every((target) => target.state === 'saved');
  if (status.state === 'done') await loadRuns(true);
  const isHere =
    isTabShown.value &&
    (isCaptureOpen.value || (from !== null && run.value === from.run && tool.value === from.tool));
  if (status.state === 'done' && isHere) openRun(status.run);
  if (isWhole && isCaptureOpen.value) closeCapture();
  hasNews.value = !isCaptureOpen.value && status.state !== 'cancelled' && !(isWhole && isHere);
}

/** Polls a capture's state until it has ended. */
export async function followCapture(id: string): Promise<void> {
  const generation = ++followed;
  const from = recall(OWN_KEY, 'sessionStorage') === id ? { run: run.value, tool: tool.value } : null;
  for (let failures = 0; generation === followed;) {
    try {
      const status = await fetchCaptureStatus(id);
      if (generation !== followed) return;
      failures = 0;
      isSilent.value = false;
      if (status.state !== 'running') await end(status, from);
      capture.value = status;
      if (status.state !== 'running') return;
    } catch (error) {
      if (generation !== followed) return;
      const apiError = asApiError(error);
      if (apiError.status === 404) {
        capture.value = gone(id, apiError);
        return;
      }
      failures += 1;
      isSilent.value = failures > 2;
    }
    await sleep(Math.min(SLOWEST_POLL_MS, POLL_MS * 2 ** Math.min(failures, 8)));
  }
}

/** Starts a capture; false: it was refused, `startError` says why. */
export async function startCapture(request: CaptureRequest): Promise<boolean> {
  if (isCapturing.value) return false;
  isStarting.value = true;
  startError.value = null;
  try {
    const { capture: id } = await withToken((token) => postCapture(token, request));
    capture.value = {
      capture: id,
      state: 'running',
      run: '',
      elapsed_ms: 0,
      message: '',
      remedy: '',
      targets: [],
    };
    hasNews.value = false;
    remember(OWN_KEY, id, 'sessionStorage');
    void followCapture(id);
    return true;
  } catch (error) {
    startError.value = asApiError(error);
    // The capture may wait for one that another page started.
    if (startError.value.status === 409) await loadCaptureInfo();
    return false;
  } finally {
    isStarting.value = false;
  }
}

export async function cancelCapture(): Promise<void> {
  const id = capture.value?.capture;
  if (!id) return;
  try {
    await withToken((token) => postCancel(token, id));
  } catch (error) {
    startError.value = asApiError(error);
  }
}

/** Back to the form; its contents are kept. */
export function dismissCapture(): void {
  if (isCapturing.value) return;
  capture.value = null;
  startError.value = null;
}

/** Opens the dialog: on the running capture or its outcome, else on the form. */
export function openCapture(): void {
  if (!isCapturing.value && !hasNews.value) dismissCapture();
  hasNews.value = false;
  isCaptureOpen.value = true;
}

export function closeCapture(): void {
  isCaptureOpen.value = false;
}

/** Opens the run that the chip offers, if it was not opened automatically. */
export function openCaptured(): void {
  const name = capture.value?.run;
  hasNews.value = false;
  if (name) openRun(name);
}
