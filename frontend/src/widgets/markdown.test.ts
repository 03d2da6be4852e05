import { describe, expect, it } from 'vitest';
import { blocksOf, headingId, inlineOf, introductionOf } from './markdown';

describe('inline parts', () => {
  it('are code, bold, emphasis and links; everything else stays text', () => {
    expect(inlineOf('Run `a*b*` **now**, *or* see [the docs](tools/x.md#top).')).toEqual([
      { kind: 'text', text: 'Run ' },
      { kind: 'code', text: 'a*b*' },
      { kind: 'text', text: ' ' },
      { kind: 'strong', text: 'now' },
      { kind: 'text', text: ', ' },
      { kind: 'emphasis', text: 'or' },
      { kind: 'text', text: ' see ' },
      { kind: 'link', text: 'the docs', to: 'tools/x.md#top' },
      { kind: 'text', text: '.' },
    ]);
  });

  it('leave HTML, lone marks and products alone', () => {
    const text = '<img src=x onerror=alert(1)> 2 * 3 * 4 and `open';
    expect(inlineOf(text)).toEqual([{ kind: 'text', text }]);
  });
});

describe('blocks', () => {
  const markdown = [
    '# Title',
    '',
    'One paragraph',
    'in two lines.',
    '<!-- a remark -->',
    '## The verdict: why?',
    '| a | b |',
    '|---|---|',
    '| `x|y` | 2 |',
    '',
    '1. first',
    '   and more',
    '2. second',
    '',
    '```sh',
    '# no heading',
    '```',
    '* point',
  ].join('\n');

  it('are read in order', () => {
    const blocks = blocksOf(markdown);
    expect(blocks.map(({ kind }) => kind)).toEqual([
      'heading',
      'paragraph',
      'heading',
      'table',
      'list',
      'code',
      'list',
    ]);
    expect(blocks[1]).toEqual({
      kind: 'paragraph',
      text: [{ kind: 'text', text: 'One paragraph in two lines.' }],
    });
    expect(blocks[2]).toMatchObject({ level: 2, id: 'the-verdict-why' });
    expect(blocks[3]).toEqual({
      kind: 'table',
      head: [[{ kind: 'text', text: 'a' }], [{ kind: 'text', text: 'b' }]],
      rows: [[[{ kind: 'code', text: 'x|y' }], [{ kind: 'text', text: '2' }]]],
    });
    expect(blocks[4]).toMatchObject({
      isOrdered: true,
      items: [[{ text: 'first and more' }], [{ text: 'second' }]],
    });
    expect(blocks[5]).toEqual({ kind: 'code', text: '# no heading' });
    expect(blocks[6]).toMatchObject({ isOrdered: false });
  });

  it('end, whatever the text', () => {
    for (const text of ['', '|', '```', '- ', '#', '| a |\n', '1.', '**'.repeat(5000)])
      expect(blocksOf(text).length).toBeLessThan(3);
  });
});

it('ids of headings are those that links name', () => {
  expect(headingId('On the other pages')).toBe('on-the-other-pages');
  expect(headingId('Differences from XProf 2.24.2')).toBe('differences-from-xprof-2242');
});

it('the introduction ends at the first heading and loses its label', () => {
  const text = '# tf.data\n\n**Question.** Which stage\nis slow?\n\nWorks on hosts.\n\n## What\n\nMore.';
  expect(introductionOf(text)).toBe('Which stage is slow? Works on hosts.');
});
