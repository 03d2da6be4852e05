import { describe, expect, it } from 'vitest';
import { placeOfFrame, sourceLink } from './source_link';

const RULES = [
  { prefix: '/app/vendor', address: 'https://code.example.org/{path}?line={line}#{line}' },
  { prefix: '/app', address: 'https://github.com/me/p/blob/abc/' },
  { prefix: '', address: 'http://intranet/src' },
];

describe('the link of a place', () => {
  it.each([
    ['/app/train.py:12', 'https://github.com/me/p/blob/abc/train.py#L12'],
    ['/app/a b/x#y.py:7:3', 'https://github.com/me/p/blob/abc/a%20b/x%23y.py#L7'],
    ['/app/vendor/lib/z.py:3', 'https://code.example.org/lib/z.py?line=3#3'],
    ['/app/vendor/$&.py:3', 'https://code.example.org/%24%26.py?line=3#3'],
    ['model/net.py:1', 'http://intranet/src/model/net.py#L1'],
    // The prefix ends with a folder's name.
    ['/application/train.py:12', null],
    ['/app:12', null],
    // No line, or none that a file has.
    ['/app/train.py', null],
    ['/app/train.py:12345678', null],
    // Out of the folder.
    ['/app/../etc/passwd:1', null],
    ['/app/./x.py:1', null],
    ['/app//evil.example/x.py:1', null],
    ['/app/..\\..\\x.py:1', null],
    ['/app/\ud800.py:1', null],
    [`/app/${'a'.repeat(5000)}.py:1`, null],
  ])('%s', (place, address) => {
    expect(sourceLink(place, RULES)).toBe(address);
  });

  it('is one of the web only', () => {
    const rules = [{ prefix: '/app', address: 'javascript:alert(1)//' }];
    expect(sourceLink('/app/x.py:1', rules)).toBeNull();
    expect(sourceLink('/app/x.py:1', [])).toBeNull();
  });
});

it('reads the place of a frame of PyTorch', () => {
  expect(placeOfFrame('/app/train.py(15): step')).toBe('/app/train.py:15');
  expect(placeOfFrame('$train.py:15 step')).toBe('');
});
