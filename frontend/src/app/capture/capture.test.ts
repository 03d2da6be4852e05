import { describe, expect, it } from 'vitest';
import type { CaptureInfo, CaptureOption, CaptureStatus, TargetStatus } from '../../api/capture';
import {
  captureRequest,
  changedOptions,
  checkForm,
  checkTargets,
  continuousRequest,
  NO_TARGETS,
  optionError,
  restoreForm,
  runningTargets,
  splitTargets,
  withRecent,
  type CaptureForm,
} from './model';
import { newsOf, rowOf, secondsText, titleOf, wholeFraction } from './progress_model';

const option = (name: string, change: Partial<CaptureOption> = {}): CaptureOption => ({
  name,
  title: name,
  kind: 'int',
  unit: '',
  default: 1,
  min: null,
  max: null,
  choices: [],
  help: '',
  placeholder: '',
  ...change,
});
const DURATION = option('duration_ms', { unit: 'ms', default: 1000, min: 1, max: 600_000 });
const LEVEL = option('host_tracer_level', {
  kind: 'choice',
  default: 2,
  choices: [0, 1, 2, 3].map((value) => ({ value, title: String(value), cost: '' })),
});
const NAME = option('run_name', { kind: 'text', default: '' });
const SETTINGS = option('advanced_configuration', { kind: 'lines', default: '' });
const OFF = { ...LEVEL, default: 0 };
const info: CaptureInfo = {
  enabled: true,
  reason: '',
  token: 't',
  allowed_targets: [],
  default_targets: 'localhost:6009',
  logdirs: [{ name: '', path: '/logs' }],
  options: [DURATION, LEVEL, NAME],
  continuous_options: [OFF, SETTINGS],
  monitor_options: [],
  running: null,
};
const form = (change: Partial<CaptureForm> = {}): CaptureForm => ({
  ...NO_TARGETS,
  logdir: '',
  options: {},
  isContinuous: false,
  continuous: {},
  targets: 'a:1',
  ...change,
});

describe('targets', () => {
  it('are read with commas, spaces and lines between, without the scheme', () => {
    expect(splitTargets(' grpc://a:1, b:2\nGRPC://c:3/ ,, ')).toEqual(['a:1', 'b:2', 'c:3']);
  });

  it.each([
    'localhost:9012',
    'grpc://10.0.0.1:8466',
    'grpcs://w0:443',
    '[::1]:9012',
    'a.b-c_d:65535',
    'a:1,b:1',
  ])('%s is fine', (targets) => {
    expect(checkTargets({ ...NO_TARGETS, targets })).toEqual({});
  });

  it.each([
    ['', 'host:port'],
    [' , ', 'host:port'],
    ['worker', 'needs a port'],
    ['worker:', 'not host:port'],
    ['worker:0', '1 to 65535'],
    ['worker:65536', '1 to 65535'],
    ['http://worker:80', 'not host:port'],
    ['::1', 'in brackets'],
    ['a:1, b:2, grpc://a:1', '"a:1" is listed twice'],
    ['a:1, grpcs://a:1', '"a:1" is listed twice'],
  ])('%j is told why not', (targets, words) => {
    expect(checkTargets({ ...NO_TARGETS, targets })['targets']).toContain(words);
  });

  it('by name need a name, whatever the addresses contain', () => {
    expect(Object.keys(checkTargets({ ...NO_TARGETS, mode: 'tpu', targets: 'a:1' }))).toEqual(['tpu']);
    expect(checkTargets({ ...NO_TARGETS, mode: 'tpu', tpu: 'my-tpu', targets: 'nonsense' })).toEqual({});
  });

  it('used last come first, once', () => {
    expect(withRecent(['b:1', 'a:1, c:2', 7], 'grpc://a:1,c:2')).toEqual(['a:1, c:2', 'b:1']);
    expect(withRecent('broken', '')).toEqual([]);
    expect(withRecent(['1:1', '2:1', '3:1', '4:1', '5:1', '6:1'], 'x:1')).toHaveLength(6);
  });
});

describe('options', () => {
  it.each([
    ['1000', ''],
    [' 1 ', ''],
    ['600000', ''],
    ['0', 'A whole number, 1 to 600,000 ms.'],
    ['600001', 'A whole number, 1 to 600,000 ms.'],
    ['1.5', 'A whole number, 1 to 600,000 ms.'],
    ['', 'A whole number, 1 to 600,000 ms.'],
    ['1 s', 'A whole number, 1 to 600,000 ms.'],
  ])('%j as a duration: %j', (text, error) => expect(optionError(DURATION, text)).toBe(error));

  it('of a choice are one of those offered', () => {
    expect(optionError(LEVEL, '3')).toBe('');
    expect(optionError(LEVEL, '4')).not.toBe('');
  });

  it('are sent all of them, as numbers where they are numbers', () => {
    expect(captureRequest(form({ options: { host_tracer_level: '3', run_name: ' my run ' } }), info)).toEqual(
      {
        targets: 'a:1',
        options: { duration_ms: 1000, host_tracer_level: 3, run_name: 'my run' },
      },
    );
  });

  it('that are wrong are named, and the targets with them', () => {
    expect(Object.keys(checkForm(form({ targets: '', options: { duration_ms: 'x' } }), info)).sort()).toEqual(
      ['duration_ms', 'targets'],
    );
  });
});

describe('a request', () => {
  it('by TPU name leaves out empty fields and the addresses', () => {
    expect(
      captureRequest(form({ mode: 'tpu', tpu: ' my-tpu ', tpu_zone: 'z' }), { ...info, options: [] }),
    ).toEqual({ tpu: 'my-tpu', tpu_zone: 'z', options: {} });
  });

  it('names the log directory where there are several', () => {
    const logdirs = [
      { name: 'train', path: '/a' },
      { name: 'eval', path: '/b' },
    ];
    expect(captureRequest(form({ logdir: 'eval' }), { ...info, options: [], logdirs }).logdir).toBe('eval');
    expect('logdir' in captureRequest(form({ logdir: 'eval' }), info)).toBe(false);
  });
});

describe('continuous profiling', () => {
  const both = form({
    isContinuous: true,
    targets: 'grpc://A:1, b:2',
    workers_list: 'w:1',
    options: { run_name: 'slow', duration_ms: '5' },
    continuous: { host_tracer_level: '3', advanced_configuration: ' k=1\nb=true ' },
  });

  it('starts with its own options, and stops with none', () => {
    expect(continuousRequest('start', both, info)).toEqual({
      action: 'start',
      targets: 'A:1,b:2',
      options: { host_tracer_level: 3, advanced_configuration: 'k=1\nb=true' },
    });
    expect(continuousRequest('stop', both, info)).toEqual({
      action: 'stop',
      targets: 'A:1,b:2',
      options: {},
    });
    expect(continuousRequest('start', form(), info).options).toEqual({
      host_tracer_level: 0,
      advanced_configuration: '',
    });
  });

  it('saves snapshots with the options of saving only', () => {
    expect(captureRequest(both, info)).toEqual({
      targets: 'A:1,b:2',
      options: { run_name: 'slow' },
      is_snapshot: true,
    });
    const running = [{ target: 'b:2', started_unix_ms: 5 }];
    expect(captureRequest(both, info, running).targets).toBe('b:2');
    expect(captureRequest({ ...both, targets: 'c:3' }, info, running).targets).toBe('c:3');
    expect('is_snapshot' in captureRequest({ ...both, isContinuous: false }, info)).toBe(false);
  });

  it('checks the options that it sends', () => {
    const wrong = form({ options: { duration_ms: 'x' }, continuous: { host_tracer_level: '9' } });
    expect(Object.keys(checkForm(wrong, info))).toEqual(['duration_ms']);
    expect(Object.keys(checkForm({ ...wrong, isContinuous: true }, info))).toEqual(['host_tracer_level']);
  });

  it('shows the typed targets that run, of TPU names all', () => {
    const running = ['a:1', 'c:3', 'grpcs://b:2'].map((target) => ({ target, started_unix_ms: null }));
    const named = (change: Partial<CaptureForm>): string[] =>
      runningTargets(form(change), running).map(({ target }) => target);
    expect(named({ targets: 'A:1, b:2' })).toEqual(['a:1']);
    expect(named({ targets: 'grpcs://b:2 c:3' })).toEqual(['c:3', 'grpcs://b:2']);
    expect(named({ mode: 'tpu', tpu: 'x', targets: '' })).toHaveLength(3);
  });
});

describe('the remembered form', () => {
  it('has the options that differ from the defaults', () => {
    expect(changedOptions({ duration_ms: '1000', host_tracer_level: '3' }, info.options)).toEqual({
      host_tracer_level: '3',
    });
  });

  it('is used where it still makes sense; a run has its name once', () => {
    const known = {
      targets: 'b:2',
      mode: 'tpu',
      tpu: 7,
      logdir: 'gone',
      options: { duration_ms: '0', host_tracer_level: '3', run_name: 'old', nonsense: '1' },
      isContinuous: true,
      continuous: { host_tracer_level: '1', advanced_configuration: 'k=1', duration_ms: '5' },
    };
    expect(restoreForm(known, info)).toEqual({
      ...form({ mode: 'tpu', targets: 'b:2' }),
      options: { host_tracer_level: '3' },
      isContinuous: true,
      continuous: { host_tracer_level: '1', advanced_configuration: 'k=1' },
    });
  });

  it('gives way to the defaults where there is nothing, or nonsense', () => {
    for (const known of [null, 'x', 3, [], { options: null, isContinuous: 'yes', continuous: 5 }])
      expect(restoreForm(known, info)).toEqual(form({ targets: 'localhost:6009' }));
  });
});

const target = (state: TargetStatus['state'], change: Partial<TargetStatus> = {}): TargetStatus => ({
  target: 'a:1',
  host: 'a',
  state,
  attempt: 1,
  n_attempts: 3,
  profiling_ms: 1000,
  remaining_ms: null,
  received_bytes: 0,
  size_bytes: null,
  message: '',
  remedy: '',
  ...change,
});
const status = (state: CaptureStatus['state'], ...targets: TargetStatus[]): CaptureStatus => ({
  capture: 'c',
  state,
  run: '',
  elapsed_ms: 0,
  message: '',
  remedy: '',
  targets,
});
const plain = (text: string): string => text.replaceAll('\u00a0', ' ');

describe('the row of a target', () => {
  it.each([
    [target('connecting'), 'Connecting', null],
    [target('connecting', { attempt: 2 }), 'Connecting, attempt 2 of 3', null],
    [target('profiling', { remaining_ms: 250 }), 'Profiling, 0.3 s left', 0.75],
    [target('profiling'), 'Profiling', null],
    [target('receiving'), 'Waiting for the profile', null],
    [target('receiving', { received_bytes: 2048 }), 'Receiving 2.00 KiB', null],
    [target('receiving', { received_bytes: 1024, size_bytes: 4096 }), 'Receiving 1.00 KiB of 4.00 KiB', 0.25],
    [target('retrying'), 'Waiting, then attempt 2 of 3', null],
    [target('saved', { received_bytes: 2048 }), 'Saved, 2.00 KiB', 1],
    [target('failed', { attempt: 3 }), 'Failed after 3 attempts', 1],
    [target('cancelled'), 'Cancelled', 0],
  ])('%#', (one, words, fraction) => {
    const row = rowOf(one);
    expect(plain(row.words)).toBe(words);
    expect(row.fraction).toBe(fraction);
    expect(row.icon).not.toBe('');
  });
});

describe('a capture', () => {
  it('is described by its outcome', () => {
    expect(titleOf(status('running', target('saved'), target('connecting')))).toBe('Capturing 2 targets');
    expect(titleOf(status('done', target('saved')))).toBe('Profile saved');
    expect(titleOf(status('done', target('saved'), target('failed')))).toBe(
      'Profile saved, but 1 of 2 targets failed',
    );
    expect(titleOf(status('failed', target('failed'), target('failed')))).toContain('all 2 targets failed');
    expect(titleOf(status('cancelled', target('cancelled')))).toBe('Capture cancelled');
  });

  it('reports states to a screen reader, not ticks and bytes', () => {
    const at = (ms: number): string =>
      newsOf(
        status(
          'running',
          target('profiling', { remaining_ms: ms }),
          target('receiving', { received_bytes: ms }),
        ),
      );
    expect(at(900)).toBe(at(100));
    expect(newsOf(status('running', target('retrying')))).not.toBe(
      newsOf(status('running', target('profiling'))),
    );
  });

  it('is as far as its targets on average', () => {
    expect(wholeFraction(status('running', target('saved'), target('connecting')))).toBe(0.5);
    expect(wholeFraction(status('running'))).toBe(0);
  });

  it('counts down in words that do not jump', () => {
    expect([40, 9960, 12_400, 119_000, 125_000].map(secondsText)).toEqual([
      '0.0 s',
      '10.0 s',
      '12 s',
      '119 s',
      '2 min 5 s',
    ]);
    expect(secondsText(-5)).toBe('0.0 s');
  });
});
