/**
 * Capturing and monitoring a running job: the server's requests and answers, as docs/http_api.md describes
 * them.
 */
import { fetchFresh, post } from './client';

interface CaptureChoice {
  value: number | string;
  title: string;
  /** What it costs the profiled job. */
  cost: string;
}

export interface CaptureOption {
  name: string;
  title: string;
  /** `lines` is text with one value per line. */
  kind: 'int' | 'float' | 'text' | 'lines' | 'choice';
  unit: string;
  default: number | string;
  min: number | null;
  max: number | null;
  choices: CaptureChoice[];
  help: string;
  placeholder: string;
}

export interface CaptureInfo {
  /** False: capture is switched off on this server; `reason` has the text. */
  enabled: boolean;
  reason: string;
  token: string;
  /** Patterns of targets that the owner allows; empty: all. */
  allowed_targets: string[];
  default_targets: string;
  logdirs: { name: string; path: string }[];
  options: CaptureOption[];
  continuous_options: CaptureOption[];
  monitor_options: CaptureOption[];
  /** The running capture, whoever started it. */
  running: string | null;
}

export interface TargetsRequest {
  targets?: string;
  tpu?: string;
  tpu_zone?: string;
  gcp_project?: string;
  workers_list?: string;
}

export interface CaptureRequest extends TargetsRequest {
  logdir?: string;
  options: Record<string, number | string>;
  /** Of jobs that are profiled continuously: save what they have recorded so far. */
  is_snapshot?: boolean;
}

export interface ContinuousRequest extends TargetsRequest {
  action: 'start' | 'stop';
  options: Record<string, number | string>;
}

/** A target that is profiled continuously, as far as calls from this server have shown. */
export interface ContinuousTarget {
  target: string;
  /** null: somebody else started it. */
  started_unix_ms: number | null;
}

export interface ContinuousOutcome {
  target: string;
  is_ok: boolean;
  message: string;
  remedy: string;
}

export interface ContinuousAnswer {
  running: ContinuousTarget[];
}

export interface ContinuousChange extends ContinuousAnswer {
  targets: ContinuousOutcome[];
}

export interface MonitorRequest extends TargetsRequest {
  interval_ms: number;
  options?: Record<string, number | string>;
}

export type TargetState =
  'waiting' | 'connecting' | 'profiling' | 'receiving' | 'retrying' | 'saved' | 'failed' | 'cancelled';

export interface TargetStatus {
  target: string;
  host: string;
  state: TargetState;
  attempt: number;
  n_attempts: number;
  profiling_ms: number;
  remaining_ms: number | null;
  received_bytes: number;
  size_bytes: number | null;
  message: string;
  remedy: string;
}

export interface CaptureStatus {
  capture: string;
  state: 'running' | 'done' | 'failed' | 'cancelled';
  /** The run's name in the list of runs, once it is known. */
  run: string;
  elapsed_ms: number;
  message: string;
  remedy: string;
  targets: TargetStatus[];
}

export interface MonitorSample {
  n: number;
  time_unix_ms: number;
  target: string;
  device_type: string;
  n_cores: number | null;
  matrix_unit_fraction: number | null;
  device_idle_fraction: number | null;
  step_time_avg_ps: number | null;
  step_time_min_ps: number | null;
  step_time_max_ps: number | null;
  n_steps: number | null;
  input_fraction_avg: number | null;
  input_fraction_min: number | null;
  input_fraction_max: number | null;
  error: string;
  remedy: string;
  /** With an error: the target answers, but has no data just now. */
  is_busy: boolean;
}

export interface MonitorAnswer {
  monitor: string;
  state: 'running' | 'stopped' | 'failed';
  message: string;
  remedy: string;
  /** Source of the numbers: the server's own counters, or short profiles that are analyzed here. */
  source: 'monitor_rpc' | 'profile';
  samples: MonitorSample[];
}

export const fetchCaptureInfo = (): Promise<CaptureInfo> => fetchFresh('capture');
export const fetchCaptureStatus = (capture: string): Promise<CaptureStatus> =>
  fetchFresh('capture/status', { capture });
export const fetchContinuous = (): Promise<ContinuousAnswer> => fetchFresh('continuous');
export const postContinuous = (token: string, body: ContinuousRequest): Promise<ContinuousChange> =>
  post('continuous', token, body);
export const fetchMonitor = (monitor: string, since: number): Promise<MonitorAnswer> =>
  fetchFresh('monitor', { monitor, since: String(since) });
export const postCapture = (token: string, body: CaptureRequest): Promise<{ capture: string }> =>
  post('capture', token, body);
export const postCancel = (token: string, capture: string): Promise<object> =>
  post('capture/cancel', token, { capture });
export const postMonitor = (token: string, body: MonitorRequest): Promise<{ monitor: string }> =>
  post('monitor', token, body);
export const postStop = (token: string, monitor: string): Promise<object> =>
  post('monitor/stop', token, { monitor });
/** Sent when the page is closed: the request outlives the page. */
export const postLeave = (token: string, monitor: string): Promise<object> =>
  post('monitor/leave', token, { monitor }, true);
