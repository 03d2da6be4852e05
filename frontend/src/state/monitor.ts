/**
 * The monitor that runs or has just ended: started, polled while the page lives, stopped; its samples as they
 * arrive.
 */
import { computed, signal } from '@preact/signals';
import {
  fetchMonitor,
  postLeave,
  postMonitor,
  postStop,
  type MonitorAnswer,
  type MonitorRequest,
  type MonitorSample,
} from '../api/capture';
import type { ApiError } from '../api/client';
import { recall, remember } from '../base/storage';
import { captureInfo, withToken } from './capture';
import { asApiError } from './payload';

const POLL_MS = 1000;
const SLOWEST_POLL_MS = 10_000;
const OWN_KEY = 'tpuprof.monitor.own';
/** Older ones are dropped: an hour of four targets, one each second. */
const SAMPLES_KEPT = 14_400;

/** The last known state, without its samples. */
export const monitor = signal<Omit<MonitorAnswer, 'samples'> | null>(null);
export const samples = signal<readonly MonitorSample[]>([]);
export const isMonitorStarting = signal(false);
export const monitorError = signal<ApiError | null>(null);
export const isMonitorSilent = signal(false);
export const isMonitoring = computed(() => isMonitorStarting.value || monitor.value?.state === 'running');

let followed = 0;

const sleep = (ms: number): Promise<void> => new Promise((resolve) => window.setTimeout(resolve, ms));

/** Appends new samples; those that are already present are skipped. */
export function joined(
  old: readonly MonitorSample[],
  fresh: readonly MonitorSample[],
  most = SAMPLES_KEPT,
): readonly MonitorSample[] {
  const after = old.at(-1)?.n ?? -1;
  const added = fresh.filter(({ n }) => n > after);
  return added.length ? [...old, ...added].slice(-most) : old;
}

/** The monitor that this browser tab started; empty: none. */
export function ownMonitor(): string {
  const id = recall(OWN_KEY, 'sessionStorage');
  return typeof id === 'string' ? id : '';
}

/** Polls a monitor's samples until it has ended. */
export async function followMonitor(id: string): Promise<void> {
  const generation = ++followed;
  samples.value = [];
  for (let failures = 0; generation === followed;) {
    try {
      const { samples: fresh, ...answer } = await fetchMonitor(id, (samples.value.at(-1)?.n ?? -1) + 1);
      if (generation !== followed) return;
      failures = 0;
      isMonitorSilent.value = false;
      samples.value = joined(samples.value, fresh);
      monitor.value = answer;
      if (answer.state !== 'running') return;
    } catch (error) {
      if (generation !== followed) return;
      const apiError = asApiError(error);
      if (apiError.status === 404) {
        // A monitor from an earlier page may be long gone: nothing to report.
        if (monitor.value)
          monitor.value = {
            ...monitor.value,
            state: 'failed',
            message: apiError.message,
            remedy: apiError.remedy,
          };
        return;
      }
      failures += 1;
      isMonitorSilent.value = failures > 1;
    }
    await sleep(Math.min(SLOWEST_POLL_MS, POLL_MS * 2 ** Math.min(failures, 6)));
  }
}

/** Starts a monitor; false: it was refused, `monitorError` says why. */
export async function startMonitor(request: MonitorRequest): Promise<boolean> {
  if (isMonitoring.value) return false;
  isMonitorStarting.value = true;
  monitorError.value = null;
  try {
    const { monitor: id } = await withToken((token) => postMonitor(token, request));
    monitor.value = { monitor: id, state: 'running', message: '', remedy: '', source: 'profile' };
    remember(OWN_KEY, id, 'sessionStorage');
    void followMonitor(id);
    return true;
  } catch (error) {
    monitorError.value = asApiError(error);
    return false;
  } finally {
    isMonitorStarting.value = false;
  }
}

export async function stopMonitor(): Promise<void> {
  const id = monitor.value?.monitor;
  if (!id) return;
  try {
    await withToken((token) => postStop(token, id));
  } catch (error) {
    monitorError.value = asApiError(error);
  }
}

/**
 * The page closes: stop the monitor, so that it does not disturb the job for nothing. If the page only
 * reloads, polling resumes.
 */
export function leaveMonitor(): void {
  const current = monitor.value;
  if (current?.state !== 'running' || !captureInfo.value) return;
  postLeave(captureInfo.value.token, current.monitor).catch(() => undefined);
}
