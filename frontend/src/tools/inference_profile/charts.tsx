/** The charts of the page: the histogram of latency with its percentiles, and batches by size. */
import type { VNode } from 'preact';
import { plural } from '../../base/units';
import type { HistogramDrawing, SizesDrawing } from './model';

const percent = (share: number): string => `${(share * 100).toFixed(3)}%`;

export function Histogram({ drawing }: { drawing: HistogramDrawing }): VNode {
  const rows = Math.max(0, ...drawing.marks.map(({ row }) => row)) + 1;
  const label = `Latency: ${drawing.marks.map(({ name, text }) => `${name} ${text}`).join(', ')}`;
  return (
    <div class="latency-chart" role="img" aria-label={label} style={{ '--label-rows': `${rows}` }}>
      <div class="plot">
        {drawing.counts.map(({ text, place }) => (
          <div key={text} class="count-tick" style={{ bottom: percent(place) }}>
            <span>{text}</span>
          </div>
        ))}
        {drawing.bars.map(({ left, width, height, tip }) => (
          <div
            key={left}
            class="bar"
            data-tip={tip}
            style={{ left: percent(left), width: percent(width), height: percent(height) }}
          />
        ))}
        {drawing.marks.map(({ name, text, left, row }) => (
          <div key={name} class="mark" style={{ left: percent(left), '--row': `${row}` }}>
            <span>
              <b>{name}</b> {text}
            </span>
          </div>
        ))}
        {drawing.times.map(({ text, place }) => (
          <span key={place} class="time-tick" style={{ left: percent(place) }}>
            {text}
          </span>
        ))}
      </div>
    </div>
  );
}

export function Sizes({ drawing }: { drawing: SizesDrawing }): VNode {
  const label = `Batch size: ${drawing.bars.map(({ tip }) => tip).join('; ')}`;
  return (
    <div>
      <div class="sizes-chart" role="img" aria-label={label}>
        {drawing.counts.map(({ text, place }) => (
          <div key={text} class="count-tick" style={{ bottom: `calc(${place} * var(--bars))` }}>
            <span>{text}</span>
          </div>
        ))}
        {drawing.bars.map(({ size, examples, padding, tip }) => (
          <div key={size} class="size" data-tip={tip}>
            <div class="column">
              <i style={{ height: percent(padding), background: 'var(--c-idle)' }} />
              <i style={{ height: percent(examples), background: 'var(--c-compute)' }} />
            </div>
            <span>{size}</span>
          </div>
        ))}
      </div>
      <p class="part-legend">
        <span>
          <i class="dot" style={{ background: 'var(--c-compute)' }} /> {drawing.unit}
        </span>
        {drawing.hasPadding && (
          <span>
            <i class="dot" style={{ background: 'var(--c-idle)' }} /> Padding
          </span>
        )}
        {drawing.nMore > 0 && (
          <span class="muted">
            and {plural(drawing.nMore, 'size')} with fewer {drawing.unit.toLowerCase()}
          </span>
        )}
      </p>
    </div>
  );
}
