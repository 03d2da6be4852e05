import { describe, expect, it } from 'vitest';
import type { CaptureOption, MonitorSample } from '../../api/capture';
import { joined } from '../../state/monitor';
import { linesAt } from '../../widgets/time_chart';
import { toCsv } from '../../widgets/table/model';
import { NO_TARGETS } from '../capture/model';
import {
  checkMonitor,
  monitorParams,
  monitorRequest,
  restoreMonitor,
  seriesOf,
  tableOf,
  tilesOf,
  verdictOf,
} from './model';

const INTERVAL: CaptureOption = {
  name: 'interval_ms',
  title: 'Interval',
  kind: 'int',
  unit: 'ms',
  default: 2000,
  min: 100,
  max: 60_000,
  choices: [],
  help: '',
  placeholder: '',
};
const sample = (n: number, change: Partial<MonitorSample> = {}): MonitorSample => ({
  n,
  time_unix_ms: 1_000_000_000_000 + n * 1000,
  target: 'a:1',
  device_type: 'TPU v4',
  n_cores: 4,
  matrix_unit_fraction: null,
  device_idle_fraction: 0.25,
  step_time_avg_ps: 10e9,
  step_time_min_ps: 8e9,
  step_time_max_ps: 14e9,
  n_steps: 30,
  input_fraction_avg: 0.4,
  input_fraction_min: 0.4,
  input_fraction_max: 0.4,
  error: '',
  remedy: '',
  is_busy: false,
  ...change,
});
const NOTHING = {
  device_idle_fraction: null,
  step_time_avg_ps: null,
  step_time_min_ps: null,
  step_time_max_ps: null,
  n_steps: null,
  input_fraction_avg: null,
  input_fraction_min: null,
  input_fraction_max: null,
};
const plain = (text: string): string => text.replaceAll('\u00a0', ' ');
const running = { source: 'profile', state: 'running' } as const;

describe('the form', () => {
  it('is in the link, and the link is the form', () => {
    const form = { ...NO_TARGETS, targets: 'a:1,b:2', options: { interval_ms: '500' } };
    expect(monitorParams(form)).toEqual({ targets: 'a:1,b:2', interval_ms: '500' });
    expect(restoreMonitor(monitorParams(form), { targets: 'old:1' }, '', [INTERVAL])).toEqual(form);
    const byName = { ...NO_TARGETS, mode: 'tpu' as const, tpu: 'x', tpu_zone: 'z', options: {} };
    expect(restoreMonitor(monitorParams(byName), null, '', [INTERVAL])).toEqual(byName);
  });

  it('is the last one where the link says nothing', () => {
    expect(
      restoreMonitor({}, { targets: 'old:1', options: { interval_ms: '700', gone: '1' } }, 'default:1', [
        INTERVAL,
      ]),
    ).toEqual({ ...NO_TARGETS, targets: 'old:1', options: { interval_ms: '700' } });
    expect(restoreMonitor({}, null, 'default:1', [INTERVAL]).targets).toBe('default:1');
  });

  it('is checked, and becomes a request', () => {
    expect(
      Object.keys(checkMonitor({ ...NO_TARGETS, options: { interval_ms: '5' } }, [INTERVAL])).sort(),
    ).toEqual(['interval_ms', 'targets']);
    expect(monitorRequest({ ...NO_TARGETS, targets: 'a:1', options: {} }, [INTERVAL])).toEqual({
      targets: 'a:1',
      interval_ms: 2000,
    });
  });
});

describe('samples', () => {
  it('come once each, and the oldest go', () => {
    const old = [sample(0), sample(1)];
    expect(joined(old, [sample(1), sample(2)]).map(({ n }) => n)).toEqual([0, 1, 2]);
    expect(joined(old, [sample(1)])).toBe(old);
    expect(joined(old, [sample(2), sample(3)], 3).map(({ n }) => n)).toEqual([1, 2, 3]);
  });

  it('become tiles of the newest, of several targets of the worst', () => {
    const tiles = tilesOf([
      sample(0, { step_time_avg_ps: 99e9 }),
      sample(1, { target: 'b:1', step_time_avg_ps: 20e9, input_fraction_avg: 0.1 }),
      sample(2),
    ]);
    expect(tiles.map(({ title, value }) => [title, value])).toEqual([
      ['Step time', 20e9],
      ['Waiting for input', 0.4],
      ['Device idle', 0.25],
    ]);
    expect(tiles[0]?.note).toContain('b:1');
    expect(tiles[1]?.note).toContain('a:1');
  });

  it('include the matrix unit if one is reported, the least used first', () => {
    const tiles = tilesOf([
      sample(0, { matrix_unit_fraction: 0.5 }),
      sample(1, { target: 'b:1', matrix_unit_fraction: 0.3 }),
    ]);
    expect(tiles.at(-1)).toMatchObject({ title: 'Matrix unit', value: 0.3 });
  });

  it('become a line per target, with gaps where values are unknown', () => {
    const all = [sample(0), sample(1, { target: 'b:1' }), sample(2, NOTHING)];
    const series = seriesOf(all, 'step_time_avg_ps', '--c-compute', {
      low: 'step_time_min_ps',
      high: 'step_time_max_ps',
    });
    expect(series.map(({ name }) => name)).toEqual(['a:1', 'b:1']);
    expect(series[0]?.points.map(([, value]) => value)).toEqual([10e9, null]);
    expect(series[0]?.high?.map(([, value]) => value)).toEqual([14e9, null]);
    expect(new Set(series.map(({ token }) => token)).size).toBe(2);
    expect(seriesOf([sample(0)], 'step_time_avg_ps', '--c-compute')[0]?.token).toBe('--c-compute');
  });

  it('are a table, newest first, without columns that are all unknown', () => {
    const data = tableOf([sample(0), sample(1, { ...NOTHING, error: 'refused' })]);
    expect(data.columns.map(({ name }) => name)).not.toContain('matrix_unit_fraction');
    const [head, first] = toCsv(data.columns, [0, 1]).split('\r\n');
    expect(head).toContain('time_utc,target,device_type,n_cores,step_time_avg_ps');
    expect(first).toMatch(/^2001-09-09T01:46:41\.000Z,a:1,.*refused$/);
  });
});

describe('the sentence', () => {
  it('states step time and input share, and the source of the numbers', () => {
    const { text, details } = verdictOf(running, [sample(0)]);
    expect(plain(text)).toBe('Current step time: 10.0 ms; 40.0% of it waits for input.');
    expect(plain(verdictOf({ ...running, state: 'stopped' }, [sample(0)]).text)).toBe(
      'Last step time: 10.0 ms; 40.0% of it waited for input.',
    );
    expect(details.join()).toContain('short profiles');
    expect(verdictOf({ source: 'monitor_rpc', state: 'running' }, [sample(0)]).details.join()).toContain(
      'The job reports these numbers itself',
    );
  });

  it('reports a sample without steps, and an idle device', () => {
    expect(verdictOf(running, []).text).toContain('Waiting for the first sample');
    expect(verdictOf(running, [sample(0, NOTHING)]).text).toContain('No steps in the last sample');
    expect(verdictOf(running, [sample(0, { ...NOTHING, device_idle_fraction: 1 })]).text).toContain('idle');
  });

  it('names a target once', () => {
    const dead = sample(0, { ...NOTHING, error: 'a:1 refused the connection.', remedy: 'Is it there?' });
    expect(verdictOf(running, [dead]).text).toBe(
      'The target does not answer. a:1 refused the connection. Is it there?',
    );
  });

  it('distinguishes a busy target from an unreachable one', () => {
    const busy = sample(0, {
      ...NOTHING,
      error: 'Another profile is running on a:1.',
      remedy: 'Wait until it ends.',
      is_busy: true,
    });
    expect(verdictOf(running, [busy])).toMatchObject({
      level: 'warn',
      text: 'No numbers just now. Another profile is running on a:1. Wait until it ends.',
    });
    expect(verdictOf(running, [sample(0, { target: 'b:1' }), busy]).details[0]).toContain(
      '1 target of 2 had no data just now. Another profile',
    );
    const dead = sample(1, { ...NOTHING, target: 'b:1', error: 'b:1 refused.' });
    expect(verdictOf(running, [busy, dead])).toMatchObject({ level: 'bad' });
    expect(verdictOf(running, [busy, dead]).text).toContain('does not answer. b:1 refused.');
  });

  it('names the targets that do not answer, and goes on with the others', () => {
    const dead = sample(1, { ...NOTHING, target: 'b:1', error: 'refused.' });
    expect(verdictOf(running, [dead])).toMatchObject({ level: 'bad' });
    expect(verdictOf(running, [dead]).text).toContain('refused');
    const mixed = verdictOf(running, [sample(0), dead]);
    expect(mixed).toMatchObject({ level: 'warn' });
    expect(mixed.text).toContain('Current step time: ');
    expect(mixed.details[0]).toContain('1 target of 2 could not be reached. b:1: refused.');
  });
});

describe('the tooltip', () => {
  it('shows for each line the last sample before the pointer, with its span', () => {
    const series = seriesOf([sample(0), sample(2, NOTHING)], 'step_time_avg_ps', '--c-compute', {
      low: 'step_time_min_ps',
      high: 'step_time_max_ps',
    });
    const at = (ms: number): string =>
      plain(linesAt(series, 'ps', 1_000_000_000_000 + ms, () => 'red')[0]?.value ?? '');
    expect(at(500)).toBe('10.0 ms (8.00–14.0 ms)');
    expect(at(2000)).toBe('unknown');
  });
});
