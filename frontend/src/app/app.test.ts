import { describe, expect, it } from 'vitest';
import type { RunInfo, ToolInfo } from '../api/types';
import { viewOf } from '../app';
import { defaultRun } from '../state/catalog';
import { toggled } from './host_list';
import { damageOf, findRuns, runNote } from './run_picker';
import { titleOf } from './title';
import { groupTools } from './tool_list';

const run = (name: string, state: RunInfo['state'] = 'ok'): RunInfo => ({
  run: name,
  captured_at: '2026-11-20T22:13:00Z',
  n_hosts: 2,
  size_bytes: 2048,
  state,
  message: '',
});
const info = (name: string, group: string): ToolInfo => ({
  name,
  title: name,
  group,
  summary: '',
  hosts: 'many',
  available: true,
  reason: '',
  remedy: '',
  short_reason: '',
  params: [],
});

describe('runs', () => {
  it('are found by words of name and date', () => {
    const all = [run('train/2026_11_20'), run('eval/2026_11_19')];
    expect(findRuns(all, 'NOV train').map((found) => found.run)).toEqual(['train/2026_11_20']);
    expect(findRuns(all, '')).toHaveLength(2);
  });
  it('say when, how many hosts, on which devices, in which framework', () => {
    expect(runNote(run('a', 'legacy'))).toBe('20 Nov 2026 22:13 · 2 hosts · saved pages');
    expect(runNote(run('a', 'memory'))).toBe('20 Nov 2026 22:13 · 2 memory snapshots');
    const card = { run: 'a', device: 'TPU v5e', n_devices: 8, framework: 'TensorFlow', damaged: [] };
    expect(runNote(run('a'), card)).toBe('20 Nov 2026 22:13 · 2 hosts · 8\u00a0×\u00a0TPU v5e · TensorFlow');
    expect(runNote(run('a'), { ...card, device: 'CPU', n_devices: 0, framework: '' })).toBe(
      '20 Nov 2026 22:13 · 2 hosts · CPU',
    );
  });
  it('say which hosts are damaged', () => {
    const card = { run: 'a', device: '', n_devices: 0, framework: '', damaged: ['h'] };
    expect(damageOf(run('a'), undefined)).toBe('');
    expect(damageOf(run('a'), card)).toBe('1 of 2 hosts damaged');
    expect(damageOf(run('a'), { ...card, damaged: ['h', 'i'] })).toBe('damaged');
    expect(damageOf({ ...run('a'), n_hosts: 1, size_bytes: 0 }, undefined)).toBe('damaged');
  });
  it('default to the newest that can be opened', () => {
    expect(
      defaultRun({ plugin: 'p', version: '', runs: [run('new', 'legacy'), run('old')], tools: [] }),
    ).toBe('old');
    expect(defaultRun({ plugin: 'p', version: '', runs: [run('new', 'empty')], tools: [] })).toBe('new');
    expect(defaultRun({ plugin: 'p', version: '', runs: [], tools: [] })).toBe('');
  });
});

describe('hosts', () => {
  it('toggle, all of them being the empty list', () => {
    const all = ['a', 'b', 'c'];
    expect(toggled(all, [], 'b')).toEqual(['a', 'c']);
    expect(toggled(all, ['a', 'c'], 'b')).toEqual([]);
    expect(toggled(all, ['c'], 'a')).toEqual(['a', 'c']);
    expect(toggled(all, ['a'], 'a')).toEqual(['a']);
  });
});

describe('tools', () => {
  it('are in groups, in order', () => {
    expect(
      groupTools([info('a', 'Start'), info('b', 'Time'), info('c', 'Start')]).map(({ group, tools }) => [
        group,
        tools.map(({ name }) => name),
      ]),
    ).toEqual([
      ['Start', ['a', 'c']],
      ['Time', ['b']],
    ]);
  });
});

describe('the title', () => {
  it('names tool, run and site', () =>
    expect(titleOf('Overview', 'train/1', 'TensorBoard')).toBe('Overview · train/1 · TensorBoard'));
  it('leaves out unknown parts', () => expect(titleOf('', '', 'TensorBoard')).toBe('TensorBoard'));
});

describe('the view of a tool', () => {
  it('is the generic page for members of every object, which a link can name', () => {
    const generic = viewOf('a tool of tomorrow');
    for (const name of ['constructor', '__proto__', 'toString', 'hasOwnProperty']) {
      expect(viewOf(name)).toBe(generic);
    }
    expect(viewOf('kernel_stats')).not.toBe(generic);
    expect(viewOf('inference_profile')).not.toBe(generic);
  });
});
