import { expect, test } from 'vitest';
import { format } from '../base/units';
import { readingText } from './progress';

const reading = {
  host: 'host41',
  n_hosts: 256,
  n_done: 64,
  size_bytes: 4 * 2 ** 30,
  done_bytes: 2 ** 30,
  seconds: 3,
};

test('many hosts: how many, how much, which one, and a fraction', () => {
  expect(readingText(reading)).toEqual({
    text: `64 of 256 hosts, ${format(2 ** 30, 'bytes')} of ${format(2 ** 32, 'bytes')}: host41`,
    fraction: 0.25,
  });
});

test('all are read: no host is named', () => {
  expect(readingText({ ...reading, host: '' }).text).toBe(
    `64 of 256 hosts, ${format(2 ** 30, 'bytes')} of ${format(2 ** 32, 'bytes')}`,
  );
});

test('one host: its name and size, and no unknown fraction', () => {
  expect(readingText({ ...reading, n_hosts: 1, n_done: 0 })).toEqual({
    text: `host41, ${format(2 ** 32, 'bytes')}`,
    fraction: null,
  });
});

test('files of no size have no fraction', () => {
  expect(readingText({ ...reading, size_bytes: 0, done_bytes: 0 }).fraction).toBeNull();
});
