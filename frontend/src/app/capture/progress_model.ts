/** A capture's state as texts, icons and lengths of bars. Pure. */
import type { CaptureStatus, TargetState, TargetStatus } from '../../api/capture';
import { format, plural } from '../../base/units';

export interface Row {
  icon: string;
  words: string;
  /** Length of the bar, 0–1; null: in progress, fraction unknown. */
  fraction: number | null;
  level: 'good' | 'bad' | 'idle' | 'active';
}

const ICONS: Record<TargetState, string> = {
  waiting: '○',
  connecting: '◌',
  profiling: '●',
  receiving: '↓',
  retrying: '↻',
  saved: '✓',
  failed: '✕',
  cancelled: '–',
};
const PS_PER_MS = 1e9;

/** "0.8 s", "12 s", "2 min 5 s": a countdown that does not jump between units. */
export function secondsText(ms: number): string {
  const seconds = Math.max(0, ms) / 1000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  return whole < 120 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

export function durationText(ms: number): string {
  return format(ms * PS_PER_MS, 'ps');
}

function receivingWords({ received_bytes: received, size_bytes: size }: TargetStatus): string {
  if (!received) return 'Waiting for the profile';
  return size
    ? `Receiving ${format(received, 'bytes')} of ${format(size, 'bytes')}`
    : `Receiving ${format(received, 'bytes')}`;
}

function ofAttempts({ attempt, n_attempts: n }: TargetStatus): string {
  return attempt > 1 && n > 1 ? `, attempt ${attempt} of ${n}` : '';
}

const WORDS: Record<TargetState, (target: TargetStatus) => string> = {
  waiting: () => 'Waiting',
  connecting: (target) => `Connecting${ofAttempts(target)}`,
  profiling: (target) =>
    target.remaining_ms
      ? `Profiling, ${secondsText(target.remaining_ms)} left${ofAttempts(target)}`
      : `Profiling${ofAttempts(target)}`,
  receiving: receivingWords,
  retrying: ({ attempt, n_attempts: n }) => `Waiting, then attempt ${Math.min(attempt + 1, n)} of ${n}`,
  saved: ({ received_bytes: received }) => (received ? `Saved, ${format(received, 'bytes')}` : 'Saved'),
  failed: ({ attempt }) => (attempt > 1 ? `Failed after ${plural(attempt, 'attempt')}` : 'Failed'),
  cancelled: () => 'Cancelled',
};

function fractionOf(target: TargetStatus): number | null {
  const {
    state,
    profiling_ms: total,
    remaining_ms: remaining,
    received_bytes: received,
    size_bytes: size,
  } = target;
  if (state === 'waiting' || state === 'cancelled') return 0;
  if (state === 'saved' || state === 'failed') return 1;
  if (state === 'profiling' && remaining && total > 0) return Math.min(1, Math.max(0, 1 - remaining / total));
  if (state === 'receiving' && size) return Math.min(1, received / size);
  return null;
}

export function rowOf(target: TargetStatus): Row {
  const { state } = target;
  const level =
    state === 'saved'
      ? 'good'
      : state === 'failed'
        ? 'bad'
        : state === 'waiting' || state === 'cancelled'
          ? 'idle'
          : 'active';
  return { icon: ICONS[state], words: WORDS[state](target), fraction: fractionOf(target), level };
}

function count(status: CaptureStatus, state: TargetState): number {
  return status.targets.filter((target) => target.state === state).length;
}

/** The heading of the dialog: the progress or the outcome. */
export function titleOf(status: CaptureStatus): string {
  const n = status.targets.length;
  if (status.state === 'running') return n > 1 ? `Capturing ${n} targets` : 'Capturing';
  if (status.state === 'cancelled') return 'Capture cancelled';
  if (status.state === 'failed')
    return n > 1 ? `Nothing was captured: all ${n} targets failed` : 'Nothing was captured';
  const failed = n - count(status, 'saved');
  return failed ? `Profile saved, but ${failed} of ${n} targets failed` : 'Profile saved';
}

/** Screen-reader text: changes with the states, not with every byte and tick. */
export function newsOf(status: CaptureStatus): string {
  if (status.state !== 'running') return titleOf(status);
  const plain = (target: TargetStatus): string =>
    WORDS[target.state]({
      ...target,
      remaining_ms: null,
      received_bytes: target.state === 'receiving' ? 0 : target.received_bytes,
    });
  return status.targets.map((target) => `${target.target}: ${plain(target)}`).join('. ');
}

/** Overall progress, 0–1, for the chip: receiving counts as the last tenth. */
export function wholeFraction(status: CaptureStatus): number {
  const parts = status.targets.map((target) => {
    if (target.state === 'saved' || target.state === 'failed' || target.state === 'cancelled') return 1;
    if (target.state === 'receiving') return 0.9 + 0.1 * (fractionOf(target) ?? 0);
    return target.state === 'profiling' ? 0.9 * (fractionOf(target) ?? 1) : 0;
  });
  return parts.length ? parts.reduce((sum, part) => sum + part, 0) / parts.length : 0;
}

export function failedTargets(status: CaptureStatus): TargetStatus[] {
  return status.targets.filter((target) => target.state === 'failed');
}
