// @vitest-environment happy-dom
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { sentence, tipOf, whyUnknown } from './definition';
import { serveTooltips } from './tooltip';

describe('the tooltip', () => {
  let stop: () => void;
  const tip = (): HTMLElement => document.getElementById('tooltip') as HTMLElement;
  const focus = (selector: string): void => {
    document.querySelector(selector)?.dispatchEvent(new FocusEvent('focusin', { bubbles: true }));
    vi.advanceTimersByTime(300);
  };

  beforeEach(() => {
    vi.useFakeTimers();
    document.body.replaceChildren();
    const tile = document.createElement('div');
    tile.setAttribute('data-tip', 'Share of the step.');
    tile.setAttribute('data-tip-formula', '1 − a ÷ b');
    tile.setAttribute('data-tip-more', '60.1%');
    const value = document.createElement('b');
    value.tabIndex = 0;
    tile.append(value);
    const grid = document.createElement('table');
    grid.tabIndex = 0;
    grid.setAttribute('aria-activedescendant', 'cell');
    const cell = document.createElement('td');
    cell.id = 'cell';
    cell.className = 'unknown';
    cell.setAttribute('data-tip', 'Unknown: no steps were found.');
    grid.append(cell);
    document.body.append(tile, grid);
    stop = serveTooltips(document.body);
  });
  afterEach(() => {
    stop();
    vi.useRealTimers();
  });

  it('shows sentence, formula and more of the tile around the focus, and describes what has it', () => {
    focus('b');
    expect(tip().hidden).toBe(false);
    expect([...tip().children].map((part) => [part.tagName, part.textContent])).toEqual([
      ['P', 'Share of the step.'],
      ['CODE', '1 − a ÷ b'],
      ['SMALL', '60.1%'],
    ]);
    expect(document.querySelector('b')?.getAttribute('aria-describedby')).toBe('tooltip');
  });

  it('is hidden by Escape', () => {
    focus('b');
    document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape', bubbles: true }));
    expect(tip().hidden).toBe(true);
    expect(document.querySelector('b')?.hasAttribute('aria-describedby')).toBe(false);
  });

  it('of an unknown cell appears when the keys reach it', () => {
    const grid = document.querySelector('table') as HTMLElement;
    grid.dispatchEvent(new KeyboardEvent('keyup', { key: 'ArrowDown', bubbles: true }));
    vi.advanceTimersByTime(300);
    expect(tip().textContent).toBe('Unknown: no steps were found.');
  });

  it('never makes HTML of a text', () => {
    document.querySelector('[data-tip]')?.setAttribute('data-tip', '<img src=x>');
    focus('b');
    expect(tip().querySelector('img')).toBeNull();
  });
});

describe('definitions', () => {
  it('end in one period', () => {
    expect(sentence('Of the steps')).toBe('Of the steps.');
    expect(sentence('Why?')).toBe('Why?');
    expect(sentence('')).toBe('');
  });

  it('say why a value is unknown', () => {
    expect(whyUnknown('no steps were found')).toBe('Unknown: no steps were found.');
    expect(whyUnknown('')).toBe('Unknown.');
  });

  it('prefer the formula with numbers, and put the exact value last', () => {
    expect(tipOf({ description: 'A share', formula: 'a ÷ b', working: '1 ÷ 2 = 50%' }, '50%')).toEqual({
      'data-tip': 'A share.',
      'data-tip-formula': '1 ÷ 2 = 50%',
      'data-tip-more': '50%',
    });
    expect(tipOf({}, '5 ps')).toEqual({ 'data-tip': '5 ps' });
    expect(tipOf({})).toEqual({});
  });
});
