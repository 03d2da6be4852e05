import { describe, expect, it } from 'vitest';
import { payloadOf, tableFor } from '../testing';
import { histogramOf, idleSides, mixOf, mixText, modelsOf, onTimeline, sizesOf, TABLES } from './model';

const MS = 1e9;

function latencies(
  bins: readonly [number, number, number][],
  marks: readonly [string, number, number | null][],
): ReturnType<typeof payloadOf> {
  const models = tableFor(TABLES.models, { n_requests: [1] });
  return payloadOf({
    tables: {
      histogram: tableFor(TABLES.histogram, {
        low_ps: bins.map(([low]) => low),
        high_ps: bins.map(([, high]) => high),
        n_requests: bins.map(([, , n]) => n),
      }),
      percentiles: tableFor(TABLES.percentiles, {
        percentile: marks.map(([name]) => name),
        latency_ps: marks.map(([, ps]) => ps),
        request: marks.map(([, , request]) => request),
      }),
      models: { ...models, columns: models.columns.map((column) => ({ ...column, title: 'Requests' })) },
    },
  });
}

describe('parts of a request', () => {
  const times = {
    latency_ps: 100,
    host_ps: 20,
    queue_ps: 0,
    transfer_ps: 5,
    device_ps: 70,
    wait_ps: null,
  };

  it('are shares of the longest latency, in order, without those of no time', () => {
    expect(mixOf(times, 200)).toEqual([
      { token: '--c-host', fraction: 0.1 },
      { token: '--c-output', fraction: 0.025 },
      { token: '--c-compute', fraction: 0.35 },
    ]);
    expect(mixOf(times, 0)).toEqual([]);
  });

  it('are idle where no request spends time on them', () => {
    const row = {
      host_ps: [3, 5],
      queue_ps: [0, 0],
      transfer_ps: [null, 4],
      device_ps: [1, 0],
      wait_ps: [0, 9],
    };
    const percentiles = tableFor(TABLES.percentiles, { ...row, percentile: ['Average', 'p50'] });
    expect(idleSides(payloadOf({ tables: { percentiles } }))).toEqual(['queue_ps', 'transfer_ps', 'wait_ps']);
    expect(idleSides(payloadOf({ tables: { percentiles: tableFor(TABLES.percentiles, {}) } }))).toEqual([]);
  });

  it('are named with their times', () => {
    expect(mixText(times)).toBe('Host 20\u00a0ps, Transfer 5\u00a0ps, Device 70\u00a0ps');
  });
});

describe('the histogram', () => {
  it('draws few requests on a linear scale, empty bins not at all', () => {
    const drawing = histogramOf(
      latencies(
        [
          [0, 10 * MS, 4],
          [10 * MS, 20 * MS, 0],
          [20 * MS, 30 * MS, 8],
          [30 * MS, 40 * MS, 1],
        ],
        [],
      ),
    );
    expect(drawing?.bars.map(({ left, width, height }) => [left, width, height])).toEqual([
      [0, 0.25, 0.5],
      [0.5, 0.25, 1],
      [0.75, 0.25, 0.125],
    ]);
    expect(drawing?.bars[1]?.tip).toBe('20.0\u00a0ms to 30.0\u00a0ms: 8');
    expect(drawing?.counts.map(({ text }) => text)).toEqual(['2', '4', '6', '8']);
    expect(drawing?.note).toBe('requests per 10.0\u00a0ms');
    expect(drawing?.times.map(({ text, place }) => [text, place])).toEqual([
      ['0\u00a0s', 0],
      ['10.0\u00a0ms', 0.25],
      ['20.0\u00a0ms', 0.5],
      ['30.0\u00a0ms', 0.75],
    ]);
  });

  it('draws many on a logarithmic scale, so that one stays visible', () => {
    const drawing = histogramOf(
      latencies(
        [
          [0, MS, 100],
          [MS, 2 * MS, 10],
          [2 * MS, 3 * MS, 1],
        ],
        [],
      ),
    );
    const [most, ten, one] = drawing?.bars.map(({ height }) => height) ?? [];
    expect(most).toBe(1);
    expect(ten).toBeCloseTo(1.3 / 2.3);
    expect(one).toBeCloseTo(0.3 / 2.3);
    expect(drawing?.counts.map(({ text }) => text)).toEqual(['1', '10', '100']);
    expect(drawing?.note).toBe('requests per 1.00\u00a0ms, log scale');
  });

  it('marks percentiles but no means, and keeps their labels apart', () => {
    const bins: [number, number, number][] = [
      [0, 50 * MS, 3],
      [50 * MS, 100 * MS, 2],
    ];
    const marks: [string, number, number | null][] = [
      ['Average', 30 * MS, null],
      ['p50', 20 * MS, 1],
      ['p90', 30 * MS, 2],
      ['p99', 38 * MS, 3],
      ['p99.9', 90 * MS, 4],
    ];
    const drawn = histogramOf(latencies(bins, marks))?.marks;
    expect(drawn?.map(({ name, left, row }) => [name, left, row])).toEqual([
      ['p50', 0.2, 0],
      ['p90', 0.3, 1],
      ['p99', 0.38, 0],
      ['p99.9', 0.9, 0],
    ]);
  });

  it('places bins that grow by their logarithm', () => {
    const drawing = histogramOf(
      latencies(
        [
          [MS, 10 * MS, 1],
          [10 * MS, 100 * MS, 2],
        ],
        [['p50', 10 * MS, 1]],
      ),
    );
    expect(drawing?.bars.map(({ width }) => width.toFixed(3))).toEqual(['0.500', '0.500']);
    expect(drawing?.marks[0]?.left).toBeCloseTo(0.5);
    expect(drawing?.note).toBe('requests per bin, bins grow with the latency');
  });

  it('is left out for a single bin', () => {
    expect(histogramOf(latencies([[0, 1, 5]], []))).toBeNull();
  });
});

describe('batch sizes', () => {
  it('are examples and padding as shares of the tallest', () => {
    const payload = payloadOf({
      tables: {
        sizes: tableFor(TABLES.sizes, {
          size: [1, 5, 8],
          n: [3, 2, 4],
          examples: [3, 10, 32],
          padding: [0, 6, 0],
          mean_ps: [MS, 2 * MS, 3 * MS],
        }),
      },
    });
    const drawing = sizesOf(payload);
    expect(drawing?.bars.map(({ size, examples, padding }) => [size, examples, padding])).toEqual([
      ['1', 3 / 32, 0],
      ['5', 10 / 32, 6 / 32],
      ['8', 1, 0],
    ]);
    expect(drawing?.counts).toEqual([
      { text: '10', place: 10 / 32 },
      { text: '20', place: 20 / 32 },
      { text: '30', place: 30 / 32 },
    ]);
    expect(drawing?.bars[1]?.tip).toBe('2 n of 5, 2.00\u00a0ms on average; 6 slots of padding');
    expect([drawing?.hasPadding, drawing?.nMore]).toEqual([true, 0]);
  });

  it('counts one batch in the singular', () => {
    const sizes = tableFor(TABLES.sizes, { size: [4, 8], n: [1, 2], examples: [4, 16], mean_ps: [MS, MS] });
    const columns = sizes.columns.map((column) =>
      column.name === 'n' ? { ...column, title: 'Batches' } : column,
    );
    const drawing = sizesOf(payloadOf({ tables: { sizes: { ...sizes, columns } } }));
    expect(drawing?.bars.map(({ tip }) => tip.split(',')[0])).toEqual(['1 batch of 4', '2 batches of 8']);
  });

  it('of many sizes those with the most slots are drawn, in order of size', () => {
    const sizes = Array.from({ length: 20 }, (_, i) => i + 1);
    const payload = payloadOf({
      tables: {
        sizes: tableFor(TABLES.sizes, { size: sizes, n: sizes.map(() => 1), examples: sizes }),
      },
    });
    const drawing = sizesOf(payload);
    expect(drawing?.bars.map(({ size }) => size)).toEqual(sizes.slice(4).map(String));
    expect([drawing?.hasPadding, drawing?.nMore]).toEqual([false, 4]);
  });

  it('are left out where they are unknown', () => {
    expect(sizesOf(payloadOf({ tables: {} }))).toBeNull();
  });
});

describe('links', () => {
  it('show a request with a tenth of its time around it', () => {
    expect(onTimeline('h', 50, 100)).toEqual({ hosts: 'h', start_ps: '40', end_ps: '160' });
    expect(onTimeline('h', 5, 100)).toEqual({ hosts: 'h', start_ps: '0', end_ps: '115' });
    expect(onTimeline('', 5, 100)).toBeNull();
    expect(onTimeline('h', null, 100)).toBeNull();
  });

  it('choose among models if there are several', () => {
    const models = (names: string[], n: number[]): ReturnType<typeof modelsOf> =>
      modelsOf(payloadOf({ tables: { models: tableFor(TABLES.models, { model: names, n_requests: n }) } }));
    expect(models(['a'], [3])).toEqual([]);
    expect(models(['a', 'b'], [1000, 200])).toEqual([
      { name: '', title: 'All models (1,200)' },
      { name: 'a', title: 'a (1,000)' },
      { name: 'b', title: 'b (200)' },
    ]);
  });
});
