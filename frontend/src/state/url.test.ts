import { describe, expect, it } from 'vitest';
import { changeParams, formatHash, parseUrl } from './url';

const selection = {
  run: 'train/2026_11_20',
  tool: 'trace_viewer',
  hosts: ['worker-0', 'a,b%'],
  params: { start_ps: '0', q: 'a&b=c #1' },
};

describe('the hash', () => {
  it('keeps every choice, whatever its characters', () => {
    const hash = formatHash(selection, 'profile');
    expect(hash.startsWith('#profile&p.profile.run=train%2F2026_11_20&')).toBe(true);
    expect(parseUrl(hash, '', 'profile')).toEqual({ tab: 'profile', others: [], selection });
  });

  it("can be read by TensorBoard: one '=' a pair, the plugin first and alone", () => {
    const parts = formatHash(selection, 'profile').slice(1).split('&');
    expect(parts[0]).toBe('profile');
    for (const part of parts.slice(1)) expect(part.split('=')).toHaveLength(2);
  });

  it("keeps pairs of others, and another plugin's tab", () => {
    const parsed = parseUrl('#scalars&tagFilter=loss&p.profile.run=r', '', 'profile');
    expect(parsed.tab).toBe('scalars');
    expect(parsed.others).toEqual([['tagFilter', 'loss']]);
    expect(formatHash(parsed.selection, 'profile', parsed.others)).toBe(
      '#profile&tagFilter=loss&p.profile.run=r',
    );
  });

  it('reads only keys of its own plugin name', () => {
    expect(parseUrl('#tpuprof&p.profile.run=theirs&p.tpuprof.run=ours', '', 'tpuprof').selection.run).toBe(
      'ours',
    );
  });

  it('falls back to the query only where the hash says nothing', () => {
    expect(parseUrl('#profile', '?run=r&tool=t&hosts=a,b&darkMode=true', 'profile').selection).toEqual({
      run: 'r',
      tool: 't',
      hosts: ['a', 'b'],
      params: {},
    });
    expect(parseUrl('#profile&p.profile.run=hash', '?run=query', 'profile').selection.run).toBe('hash');
  });

  it('survives a broken escape', () => {
    expect(parseUrl('#profile&p.profile.run=%zz', '', 'profile').selection.run).toBe('%zz');
  });
});

describe('changeParams', () => {
  it('merges, and removes undefined or empty values', () => {
    expect(changeParams({ a: '1', b: '2' }, { a: undefined, b: '', c: '3' })).toEqual({ c: '3' });
  });
});
