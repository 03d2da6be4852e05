import { describe, expect, it } from 'vitest';
import { payloadOf } from '../../tools/testing';
import { blocksOf, introductionOf, type Inline } from '../../widgets/markdown';
import { definitionsOf } from './definitions';
import { documentOf, GLOSSARY, hasDocument, placeOf, readDocument } from './documents';

const TOOLS = [
  'framework_op_stats',
  'graph_viewer',
  'hlo_stats',
  'input_pipeline_analyzer',
  'kernel_stats',
  'memory_profile',
  'memory_viewer',
  'op_profile',
  'overview_page',
  'pod_viewer',
  'roofline_model',
  'saved_pages',
  'tf_data_bottleneck_analysis',
  'tpu_compatibility',
  'trace_viewer',
];

describe('documents', () => {
  it('of every tool come with the page and begin with what the page answers', async () => {
    for (const tool of TOOLS) {
      const path = documentOf(tool);
      expect(path, tool).toBe(`tools/${tool}.md`);
      const introduction = introductionOf(await readDocument(path ?? ''));
      expect(introduction.length, tool).toBeGreaterThan(40);
      expect(introduction.length, tool).toBeLessThan(700);
    }
    expect(hasDocument(GLOSSARY)).toBe(true);
  });

  it('resolve links as folders do', () => {
    expect(placeOf('tools/overview_page.md', '../causes/README.md#on-the-other-pages')).toEqual({
      path: 'causes/README.md',
      heading: 'on-the-other-pages',
    });
    expect(placeOf('tools/overview_page.md', 'hlo_stats.md')?.path).toBe('tools/hlo_stats.md');
    expect(placeOf('glossary.md', '#events')).toEqual({ path: 'glossary.md', heading: 'events' });
    expect(placeOf('tools/x.md', '../../../etc/passwd')).toBeNull();
    expect(placeOf('tools/x.md', 'constructor')).toBeNull();
  });

  it('link to headings that exist', async () => {
    for (const tool of TOOLS) {
      const path = `tools/${tool}.md`;
      for (const link of links(await readDocument(path))) {
        const place = placeOf(path, link);
        if (!place?.heading) continue;
        const ids = blocksOf(await readDocument(place.path)).flatMap((block) =>
          block.kind === 'heading' ? [block.id] : [],
        );
        expect(ids, `${path}: ${link}`).toContain(place.heading);
      }
    }
  });
});

function links(markdown: string): string[] {
  const of = (parts: readonly Inline[]): string[] =>
    parts.flatMap((part) => (part.kind === 'link' ? [part.to] : []));
  return blocksOf(markdown).flatMap((block) =>
    block.kind === 'paragraph' ? of(block.text) : block.kind === 'list' ? block.items.flatMap(of) : [],
  );
}

describe('definitions', () => {
  const head = { title: 'Share', unit: 'fraction' as const, description: 'Of all', formula: 'a ÷ b' };
  const column = { name: 'share', kind: 'number' as const, values: [1], ...head };

  it('are those of tiles, then of tables with rows; ids and texts are left out', () => {
    const groups = definitionsOf(
      payloadOf({
        scalars: {
          n: { value: 1, unit: 'count', title: 'Steps', note: '', description: 'Number of steps' },
          id: { value: 1, unit: 'id', title: 'Row', note: '', description: 'Of a table' },
        },
        tables: {
          ops: {
            title: 'Operations',
            note: '',
            description: 'Every operation',
            n_rows: 1,
            columns: [
              { name: 'op', kind: 'text', title: 'Op', unit: '', strings: ['x'], codes: [0] },
              column,
            ],
          },
          empty: { title: 'Empty', note: '', n_rows: 0, columns: [column] },
        },
      }),
    );
    expect(groups).toEqual([
      {
        title: '',
        description: '',
        numbers: [{ title: 'Steps', unit: 'number', description: 'Number of steps', formula: '' }],
      },
      {
        title: 'Operations',
        description: 'Every operation',
        numbers: [{ title: 'Share', unit: '%', description: 'Of all', formula: 'a ÷ b' }],
      },
    ]);
  });

  it('list equal tables once', () => {
    const table = { title: 'By kernel', note: '', n_rows: 1, columns: [column] };
    expect(definitionsOf(payloadOf({ tables: { a: table, b: { ...table } } }))).toHaveLength(1);
  });
});
