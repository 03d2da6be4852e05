// @vitest-environment happy-dom
import { describe, expect, it } from 'vitest';
import { isTyping } from './keys';

describe('isTyping', () => {
  it('leaves letters to text fields, not to check boxes', () => {
    const input = (type: string): HTMLElement => Object.assign(document.createElement('input'), { type });
    expect(
      [
        input('text'),
        input('search'),
        document.createElement('textarea'),
        document.createElement('select'),
      ].every(isTyping),
    ).toBe(true);
    expect([input('checkbox'), document.createElement('button'), document.body, null].some(isTyping)).toBe(
      false,
    );
  });
});
